"""The picture of one gold sentence at each validation (``--aer-picture``): a file, and in TensorBoard and W&B."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairseq.logging import progress_bar

from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.figures.maps import Picture, draw, panel_of, sides_of
from alignment_eval.figures.style import kind_name, place_name, save_figure
from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps

#: The folder of the pictures in fairseq's ``--save-dir``, and their name in TensorBoard and W&B.
FOLDER, TAG = "aer-picture", "aer_picture"


@dataclass(frozen=True)
class Pictures:
    """Where the pictures of a training run go.

    Attributes:
        subset: the validation subset of the sentence.
        save_dir: the directory of the checkpoints.
        tensorboard: the directory of TensorBoard's logs; None: there are none.
    """

    subset: str
    save_dir: str
    tensorboard: str | None

    def add(self, sentence: SentenceMaps, gold: GoldSentence, map_: ExtractionOptions, aer: float, update: int) -> None:
        """Draw a map of the sentence with the links of the gold and those of the map's rule."""
        (place,) = map_.heads
        what = f"{kind_name(map_.kind)}, {map_.setting.upper()}, {place_name(place.layer)}"
        source, target = sides_of(sentence, "word")
        title = f"Update {update}: AER {100 * aer:.1f} % of all sentences"
        panels = [[panel_of(sentence, map_, "word", what)]]
        path = Path(self.save_dir) / FOLDER / f"{update:06d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_figure(draw(Picture(title, source, target, panels, gold)), path)
        if self.tensorboard is not None and progress_bar.SummaryWriter is not None:
            from matplotlib.image import imread

            # a file of its own beside fairseq's, in the directory of the same subset
            with progress_bar.SummaryWriter(str(Path(self.tensorboard) / self.subset)) as writer:
                writer.add_image(TAG, imread(path)[..., :3], update, dataformats="HWC")
        wandb = progress_bar.wandb
        if wandb is not None and wandb.run is not None:
            wandb.log({f"{self.subset}/{TAG}": wandb.Image(str(path))}, step=update)
