"""The picture of the README: the word map that both bundled models make of a sentence, its links, and the gold.

word_map.py SENTENCE OUT.png        # SENTENCE counts from 0
"""

from __future__ import annotations

import sys
from pathlib import Path

import fairseq_norm_plugin
from alignment_eval import read_gold
from alignment_eval.extraction.corpus import align_pair, one_map
from alignment_eval.extraction.extract import pair_map
from alignment_eval.figures.drawing import draw
from alignment_eval.figures.sentence import Panel, Picture
from alignment_eval.figures.style import save_figure
from alignment_eval.maps.sentence import SentenceSide
from alignment_eval.maps.words import two_way_shares
from alignment_eval.profiles.profile import read_profile

DEMO = Path("data/demo")


def main(sentence: int, out: str) -> None:
    """Draw one sentence of the demo."""
    model = fairseq_norm_plugin.load("demo", tokenizer="none")
    method = read_profile(DEMO / "checkpoint.pt.align.json").both
    assert method is not None
    assert method.reverse is not None
    assert model.reverse is not None
    source, target = ((DEMO / f"demo.{side}").read_text("utf-8").splitlines()[sentence] for side in ("de", "en"))
    forward = pair_map(model.maps(source, target), method.forward)
    pair = forward, pair_map(model.reverse.maps(target, source), method.reverse)
    links = align_pair(pair, method).links
    assert links is not None
    columns, rows = (SentenceSide.of_words(line.split()) for line in (source, target))
    scores = one_map(pair, method).scores
    assert scores is not None
    panel = Panel("", two_way_shares(scores[:, :-1]), links.links)
    gold = read_gold(DEMO / "demo.talp", base=1)[sentence]
    save_figure(draw(Picture("", columns, rows, ((panel,),), gold)), out)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
