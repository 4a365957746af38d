"""The picture of the README: the word map that both bundled models make of a sentence, its links, and the gold.

word_map.py SENTENCE OUT.png        # SENTENCE counts from 0
"""

import sys
from pathlib import Path

from alignment_eval import read_gold
from alignment_eval.figures.drawing import Panel, Picture, draw
from alignment_eval.figures.style import save_figure
from alignment_eval.maps.sentence import SentenceSide
from alignment_eval.maps.words import two_way_shares
from fairseq_norm_plugin import load


def main(sentence: int, out: str) -> None:
    """Draw one sentence of the demo."""
    texts = (Path(f"data/demo/demo.{side}").read_text("utf-8").split("\n")[sentence] for side in ("de", "en"))
    alignment = load("demo", tokenizer="none").align(*texts)
    panel = Panel("", two_way_shares(alignment.word_map.to_numpy()[:, :-1]), frozenset(alignment.links))
    columns, rows = map(SentenceSide.of_words, (alignment.source_words, alignment.target_words))
    gold = read_gold("data/demo/demo.talp", base=1)[sentence]
    save_figure(draw(Picture("", columns, rows, ((panel,),), gold)), out)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
