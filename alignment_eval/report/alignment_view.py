"""How a notebook shows word alignments: lines, tables and plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alignment_eval.alignment import Alignment, Alignments
from alignment_eval.figures.drawing import Panel, draw_map
from alignment_eval.figures.names import shortened
from alignment_eval.maps.sentence import SentenceSide
from alignment_eval.report.notebook_tables import heat_table, text_of, text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

#: How many pairs a notebook cell lists.
_LISTED = 10


def line(alignment: Alignment) -> str:
    """An alignment on one line."""
    found = repr(shortened(alignment.to_pharaoh().split())) if alignment.ok else f"status={alignment.status!r}"
    return f"Alignment({shortened(alignment.source_words)!r}, {shortened(alignment.target_words)!r}, {found})"


def plot(alignment: Alignment, ax: Axes | None) -> Axes:
    """The links as marked cells; ``ax``: where to plot, None: on a new figure."""
    source, target = map(SentenceSide.of_words, (alignment.source_words, alignment.target_words))
    bar = "confidence" if alignment.confidences else None
    return draw_map(Panel("", _strengths(alignment), frozenset(alignment.links)), source, target, ax, bar)


def table(alignment: Alignment) -> str:
    """A table for a notebook that shows the confidence of each link in %, or a mark if it has none.

    If the pair was scored, words are shaded that the other side does not say.
    """
    if not alignment.ok:
        return f"<p>{text_of(line(alignment))}</p>"
    strengths, confidences = _strengths(alignment), alignment.confidences
    texts = [["" for _ in alignment.source_spans] for _ in alignment.target_spans]
    for link in alignment.links:
        texts[link[1]][link[0]] = f"{100 * confidences[link]:.0f}" if link in confidences else "●"
    words, scores = (alignment.source_words, alignment.target_words), alignment.scores
    if scores is None or scores.unsupported is None:
        return heat_table(*words, strengths.tolist(), texts)
    marks = scores.omitted_words or [], scores.unsupported_words or []
    answers = f"<p>unsupported {scores.unsupported:.2f}, omitted {scores.omitted:.2f}</p>"
    return answers + heat_table(*words, strengths.tolist(), texts, marks)


def list_of(alignments: Alignments) -> str:
    """A table of the first pairs and their links, for a notebook."""
    rows = [
        (str(k), shortened(a.source_words), shortened(a.target_words), a.to_pharaoh() if a.ok else a.status)
        for k, a in enumerate(alignments[:_LISTED])
    ]
    more = f"<p>and {len(alignments) - _LISTED} more</p>" if len(alignments) > _LISTED else ""
    return f"<p>{text_of(repr(alignments))}</p>{text_table(('', 'source', 'target', 'links'), rows)}{more}"


def _strengths(alignment: Alignment) -> NDArray[np.float64]:
    """The confidence of each link, 1 where it has none, [target words, source words]."""
    strengths = np.zeros((len(alignment.target_spans), len(alignment.source_spans)))
    for i, j in alignment.links:
        strengths[j, i] = alignment.confidences.get((i, j), 1.0)
    return strengths
