"""Word maps: the rows and columns of a map merged from subwords to words.

A word map is [target words, source words + 1]; the last column stands for null.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.maps import Array, Side

#: Setting -> how many rows after its own index a target token's row lies.  Row r of a map predicts target
#: token r and has decoder input r, the token before it.
SETTINGS: dict[str, int] = {"awo": 0, "awi": 1}


def require_known(what: str, name: str, known: Iterable[str]) -> None:
    """Check an option's value.

    Raises:
        UsageError: ``name`` is not among ``known``.
    """
    if name not in (names := list(known)):
        raise UsageError(f"unknown {what} {name!r}: expected one of {', '.join(names)}")


def word_map(maps: Array, source: Side, target: Side, setting: str) -> NDArray[np.float64]:
    """Merge the subwords of maps into words (Kobayashi et al. 2020, section 5).

    Columns: SUM over the subwords of a source word; one more column, the last, is the sum over the special source
    tokens (``</s>``, tags) and stands for null.  Rows: MEAN over the rows of a target word's subwords.

    Args:
        maps: [..., T, S]; row r predicts target token r.
        source: the S source tokens.
        target: the T target tokens.
        setting: ``awo``: token t has row t; ``awi``: row t + 1.

    Returns:
        float64 [..., target words, source words + 1].

    Raises:
        UsageError: the setting is unknown.
        InputError: the maps' shape is not that of the tokens, word indices are no count from 0, or AWI asks for a
            row beyond the map.
    """
    check_pair(maps, source, target)
    rows = token_rows(target, setting)
    # Sums over contiguous pieces, in one fixed order: equal pieces stay exact ties, which BLAS does not promise.
    starts = run_starts(source.words)
    pieces = np.add.reduceat(maps.astype(np.float64), starts, axis=-1)
    special = source.special[starts]
    null = np.add.reduce(pieces[..., special], axis=-1, keepdims=True)
    columns = np.concatenate([pieces[..., ~special], null], axis=-1)[..., rows, :]
    words = target.words[~target.special]
    lengths = np.bincount(words, minlength=target.word_count)
    merged: NDArray[np.float64] = np.add.reduceat(columns, run_starts(words), axis=-2) / lengths[:, None]
    return merged


def token_rows(target: Side, setting: str) -> NDArray[np.intp]:
    """The map rows of the ordinary target tokens under ``setting``.

    Raises:
        UsageError: the setting is unknown.
        InputError: AWI asks for a row beyond the map.
    """
    require_known("setting", setting, SETTINGS)
    rows = np.flatnonzero(~target.special) + SETTINGS[setting]
    if rows.size and rows[-1] >= len(target.tokens):
        raise InputError(
            "target without </s> at its end: AWI of the last token needs the row that predicts </s>; "
            "record with </s> or take setting 'awo'"
        )
    return rows


def check_pair(maps: Array, source: Side, target: Side) -> None:
    """Check that maps and tokens fit.

    Raises:
        InputError: the maps [..., T, S] are not of as many tokens, or the word indices of a side are not 0, 1, 2, …
            with each word in one piece.
    """
    if maps.shape[-2:] != (len(target.tokens), len(source.tokens)):
        raise InputError(
            f"a map of shape {'×'.join(map(str, maps.shape[-2:]))}: expected target × source tokens, "
            f"{len(target.tokens)}×{len(source.tokens)}; the records are damaged, record again"
        )
    for side in (source, target):
        runs = side.words[run_starts(side.words)]
        runs = runs[runs >= 0]
        if not np.array_equal(runs, np.arange(len(runs))):
            raise InputError(
                f"word indices of the tokens run {' '.join(map(str, runs))}: expected 0, 1, 2, … with each word in "
                f"one piece; the records are damaged, record again"
            )


def run_starts(words: Array) -> NDArray[np.intp]:
    """Where runs of one word index (or of -1) begin."""
    return np.flatnonzero(np.diff(words, prepend=-2))
