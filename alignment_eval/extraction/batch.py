"""Word maps and links of many sentence pairs at once, the same as those of each pair alone.

A batch takes some dozens of operations on long arrays, instead of some dozens on short arrays for each pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.extract import DeferredLinks, SentenceLinks, WordLinks, named_map, word_links
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.extraction.rules import rule_of
from alignment_eval.maps.padded import PaddedMaps
from alignment_eval.maps.ragged import (
    RaggedShape,
    balanced_shares,
    counted,
    joined_cells,
    row_shares,
    two_way_shares,
)
from alignment_eval.maps.ragged_words import RaggedMaps, RaggedSides
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import SETTINGS, combined, terms_of

#: The cells that are worked on together: arrays of half a megabyte stay in the caches.
CELLS = 2**16

Item = TypeVar("Item")


def grouped(items: Iterable[Item], cells: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Consecutive items, as many together as have :data:`CELLS` cells."""
    group: list[Item] = []
    total = 0
    for item in items:
        group.append(item)
        total += cells(item)
        if total >= CELLS:
            yield group
            group, total = [], 0
    if group:
        yield group


def read_batch(batch: PaddedMaps, options: ExtractionOptions) -> list[WordLinks]:
    """:func:`alignment_eval.extraction.extract.word_links` of every pair, with its errors."""
    if rule_of(options.rule).units != "words":
        return [word_links(sentence, options) for sentence in batch]
    maps = [named_map(batch.together, options.kind, name.layer, name.head) for name in options.maps]
    sizes = [len(s.source.tokens) * len(s.target.tokens) for s in batch.sentences]
    groups = grouped(range(len(sizes)), sizes.__getitem__)
    return [links for group in groups for links in _read_places(batch, group, maps, options)]


def _read_places(
    batch: PaddedMaps, places: Sequence[int], maps: Sequence[NDArray[np.float64]], options: ExtractionOptions
) -> list[WordLinks]:
    """The links of the pairs at ``places``, from the named maps [B, T, S]."""
    sentences = [batch.sentences[place] for place in places]
    sources, targets = RaggedSides([s.source for s in sentences]), RaggedSides([s.target for s in sentences])
    offsets = [SETTINGS[name.setting or options.setting] for name in options.maps]
    _, rows, columns = maps[0].shape
    sound = sources.sound & targets.sound & (targets.last + max(offsets) < targets.lengths)
    if sound.all():
        origins = np.array(places) * (rows * columns) + np.array(batch.columns)[places]
        merger = RaggedMaps(sources, targets, origins, columns)
        cells = merger.cells([(one.reshape(-1), offset) for one, offset in zip(maps, offsets)])
        if np.isfinite(cells).all():
            return _deferred(
                _combined(merger.merged(cells), merger.shape, options.combine), merger.shape, sentences, options
            )
    # one of them is an error, which names its pair
    return [word_links(batch.sentence(place), options) for place in places]


def _combined(cells: NDArray[np.float64], shape: RaggedShape, how: str) -> NDArray[np.float64]:
    """:func:`alignment_eval.maps.words.combine` of M maps of every pair, [M, cells] to [cells]."""
    first, *others = cells if len(cells) == 1 else terms_of(row_shares(cells, shape), how)
    return combined(reduce(np.add, others, first), len(cells), how) if others else first


def _deferred(
    scores: NDArray[np.float64], shape: RaggedShape, sentences: Sequence[SentenceMaps], options: ExtractionOptions
) -> list[WordLinks]:
    """Links that are chosen from word maps when they are read."""
    views = zip(sentences, shape.views(scores), shape.views(row_shares(scores, shape)))
    return [DeferredLinks(mine, (s.source, s.target), options, shares) for s, mine, shares in views]


def word_maps_links(
    maps: Sequence[NDArray[np.float64]], sentences: Sequence[SentenceMaps], options: ExtractionOptions
) -> list[WordLinks]:
    """:func:`alignment_eval.extraction.extract.word_map_links` of every pair."""
    return _deferred(*joined_cells(maps), sentences, options)


def join_word_maps(
    how: str,
    sentences: Sequence[SentenceMaps],
    options: ExtractionOptions,
    forward: Sequence[WordLinks],
    reverse: Sequence[WordLinks],
) -> list[WordLinks]:
    """:func:`alignment_eval.extraction.bidirectional.join_all` by ``average`` or ``product``."""
    words, shape = joined_cells([links.shares for links in forward])
    others, other = joined_cells([links.shares for links in reverse])
    is_null = np.zeros(len(words), dtype=np.bool_)
    is_null[shape.row_starts + shape.widths - 1] = True
    # a cell of the other direction, whose rows are source words; there is none for null
    of_columns = counted(shape.columns) * np.repeat(other.columns, shape.columns)
    index = shape.outer(np.repeat(other.starts, shape.rows) + counted(shape.rows), of_columns)
    index[is_null] = 0
    back = others[index] if len(others) else np.zeros(len(words))
    back[is_null] = 0
    return _deferred((words + back) / 2 if how == "average" else words * back, shape, sentences, options)


def choose_links(links: Iterable[SentenceLinks | None]) -> None:
    """Choose the links of many pairs that are not chosen yet, where their rule can do so for all at once."""
    unread = [(each, *found) for each in links if isinstance(each, DeferredLinks) and (found := each.two_way)]
    for balanced, shares_of in ((False, two_way_shares), (True, balanced_shares)):
        alike = [each for each in unread if each[2].balanced == balanced]
        for group in grouped(alike, lambda each: each[1].size):
            cells, shape = joined_cells([scores for _, scores, *_ in group])
            cells[_barred(shape, [final for *_, final in group])] = 0
            for (each, _, two_way, final), shares in zip(group, shape.views(shares_of(cells, shape))):
                matrix = two_way.linked(shares)[:, :-1]  # null is masked
                if final:
                    matrix[:, -1] = matrix[-1] = False
                    matrix[-1, -1] = True
                each.choose(matrix.T)


def _barred(shape: RaggedShape, final: Sequence[bool]) -> NDArray[np.intp]:
    """Cells that do not count in any sum: null, and the last source word, except in the last row, if it is final."""
    nulls = shape.row_starts + shape.widths - 1
    others = np.repeat(final, shape.rows)
    others[np.cumsum(shape.rows)[shape.rows > 0] - 1] = False
    return np.concatenate([nulls, nulls[others] - 1])
