"""The picture of the README: the word map that both bundled models make of a sentence, its links, and the gold.

word_map.py SENTENCE OUT.png        # SENTENCE counts from 0
"""

import sys
from pathlib import Path

from alignment_eval import read_gold
from alignment_eval.extraction.corpus import one_map
from alignment_eval.extraction.extract import pair_map
from alignment_eval.figures.drawing import draw
from alignment_eval.figures.sentence import Panel, Picture
from alignment_eval.figures.style import save_figure
from alignment_eval.maps.sentence import SentenceSide
from alignment_eval.maps.words import two_way_shares
from alignment_eval.profiles.profile import read_profile
from fairseq_norm_plugin import load


def main(sentence: int, out: str) -> None:
    """Draw one sentence of the demo."""
    model = load("demo", tokenizer="none")
    method = read_profile("data/demo/checkpoint.pt.align.json").both
    assert method is not None
    assert method.reverse is not None
    assert model.reverse is not None
    source, target = (Path(f"data/demo/demo.{side}").read_text("utf-8").split("\n")[sentence] for side in ("de", "en"))
    forward = pair_map(model.maps(source, target), method.forward)
    whole = one_map((forward, pair_map(model.reverse.maps(target, source), method.reverse)), method)
    assert whole.scores is not None
    panel = Panel("", two_way_shares(whole.scores[:, :-1]), whole.links(method.forward).links)
    columns, rows = (SentenceSide.of_words(line.split()) for line in (source, target))
    gold = read_gold("data/demo/demo.talp", base=1)[sentence]
    save_figure(draw(Picture("", columns, rows, ((panel,),), gold)), out)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
