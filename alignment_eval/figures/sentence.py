"""The maps of a sentence that a picture shows, with gold and predicted links."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import choose, links_of, merged, named_maps
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.figures.names import label_of
from alignment_eval.links.sets import GoldSentence, Link, Links
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.maps.words import LEVELS, require_known

#: The label of the null column of a word map, which stands for the special source tokens.
NULL_LABEL = "(null)"


@dataclass(frozen=True, eq=False)
class Panel:
    """One map to draw: ``values`` [rows, columns] and the word links predicted from it."""

    title: str
    values: NDArray[np.float64]
    predicted: Links = frozenset()


@dataclass(frozen=True, eq=False)
class Picture:
    """Maps of one sentence pair as a grid of panels.

    Attributes:
        title: the heading; empty: none.
        source: the columns; a column of no word (-1) gets no marks.
        target: the rows.
        panels: rows of panels; each panel has a row and a column for each token.
        gold: word links of the gold, or None.
    """

    title: str
    source: SentenceSide
    target: SentenceSide
    panels: tuple[tuple[Panel, ...], ...]
    gold: GoldSentence | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """All text from the data that is drawn."""
        return (self.title, *map(label_of, (*self.source.tokens, *self.target.tokens)))

    def __post_init__(self) -> None:
        shape = (len(self.target.tokens), len(self.source.tokens))
        if not all(shape) or not any(self.panels):
            raise InputError(f"cannot draw a map of {shape[0]}×{shape[1]} cells; both sides need at least one word")
        for panel in (panel for row in self.panels for panel in row):
            if panel.values.shape != shape:
                raise InputError(f"panel {panel.title!r} has the shape {panel.values.shape} instead of {shape}")
            if not (np.isfinite(panel.values).all() and (panel.values >= 0).all()):
                raise InputError(f"panel {panel.title!r} has NaN, infinite or negative values; they must be 0 or more")


def sides_of(sentence: SentenceMaps, level: str) -> tuple[SentenceSide, SentenceSide]:
    """Columns and rows of a picture of ``sentence``.

    These are words, with a column for null; or subword tokens, with the special tokens of the source.
    """
    require_known("level", level, LEVELS)
    source, target = sentence.source, sentence.target
    if level == "token":
        ordinary = np.flatnonzero(~target.special)
        return source, SentenceSide(tuple(target.tokens[i] for i in ordinary), target.words[ordinary])
    columns = (*source.word_strings(), NULL_LABEL)
    numbers = np.append(np.arange(source.word_count, dtype=np.int32), np.int32(-1))
    rows = tuple(target.word_strings())
    return SentenceSide(columns, numbers), SentenceSide(rows, np.arange(target.word_count, dtype=np.int32))


def panel_of(
    sentence: SentenceMaps, options: ExtractionOptions, level: str, title: str, predicted: Links | None = None
) -> Panel:
    """The panel of the map that ``options`` name.

    ``predicted`` are links to show instead of those of the rule.
    """
    require_known("level", level, LEVELS)
    (values,) = named_maps(sentence, options)
    if predicted is None:
        predicted = links_of(choose(values, sentence, options))
    return Panel(title, merged(values, sentence, options.setting, LEVELS[level]), predicted)


def cells(links: Iterable[Link], source: SentenceSide, target: SentenceSide) -> list[tuple[int, int]]:
    """The cells (column, row) of word links: all pairs of tokens of each two linked words."""
    return [
        (column, row)
        for i, j in sorted(links)
        for column in np.flatnonzero(source.words == i).tolist()
        for row in np.flatnonzero(target.words == j).tolist()
    ]
