"""Pictures of one panel, and what a printed figure must be."""

import io
from itertools import combinations

import numpy as np
from matplotlib.text import Text

from alignment_eval.figures.maps import Panel, Picture
from alignment_eval.maps.sentence import SentenceSide


def plain(tokens):
    """Words, and at the end specials in angle brackets."""
    numbers = [-1 if token.startswith("<") else n for n, token in enumerate(tokens.split())]
    return SentenceSide(tuple(tokens.split()), np.array(numbers, dtype=np.int32))


def picture(source="a b", target="x y z", gold=None, **panel):
    """One panel, of 0.0, 0.1, … unless values are given."""
    sides = plain(source), plain(target)
    shape = len(sides[1].tokens), len(sides[0].tokens)
    panel = {"title": "weights", "values": np.arange(shape[0] * shape[1]).reshape(shape) / 10, **panel}
    return Picture("title", *sides, ((Panel(**panel),),), gold)


def check_print(figure, apart=True, least=7.0):
    """All text has at least ``least`` points, lies within the page and, if ``apart``, on no other text."""
    figure.savefig(io.BytesIO(), format="png", dpi=72)
    texts = [t for t in figure.findobj(Text) if isinstance(t, Text) and t.get_visible() and t.get_text().strip()]
    shown = [text for text in texts if text.get_figure() is not None and text.stale is False]
    assert shown
    width, height = figure.get_size_inches() * 72
    boxes = []
    for text in shown:
        assert text.get_fontsize() >= least, text.get_text()
        box = text.get_window_extent(dpi=72)
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, (text.get_text(), box, width, height)
        boxes.append((text.get_text(), box.shrunk(0.9, 0.8)))
    for (one, a), (other, b) in combinations(boxes, 2) if apart else ():
        assert not a.overlaps(b), (one, other, a, b)
