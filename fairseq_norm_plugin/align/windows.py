"""The lines of a text, window by window, made in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from alignment_eval.extraction.corpus import AlignedPair
from alignment_eval.formats.writing import LineStyle
from fairseq_norm_plugin.aligning.aligner import Aligner
from fairseq_norm_plugin.aligning.spans import Span
from fairseq_norm_plugin.aligning.text import TokenPair
from fairseq_norm_plugin.output.alignment_parts import AlignmentLine
from fairseq_norm_plugin.pipeline.text import TextPipeline


class Text(Protocol):
    """The sentence pairs that are aligned, from files of lines or of Parquet."""

    @property
    def size(self) -> int:
        """The number of pairs."""

    @property
    def hashes(self) -> tuple[str, ...]:
        """Hashes of the files' content."""

    def through(self, pipelines: tuple[TextPipeline, TextPipeline]) -> Text:
        """The same pairs, whose lines are read by the pipelines of source and target."""

    def check_unchanged(self) -> None:
        """Check that the files still hold what their hashes say."""

    def spans(self, ends: Sequence[int]) -> Sequence[Span]:
        """The stretches of pairs that end before each of ``ends``."""

    def ids(self) -> Iterator[pa.Array]:
        """The ids of all pairs, batch by batch."""

    def __iter__(self) -> Iterator[TokenPair]:
        """The pairs."""


def window_ends(size: int, window: int, counted: int) -> list[int]:
    """The ends of the windows: after every ``window`` pairs, and after the pairs that a lexicon is counted on."""
    return sorted({*range(window, size, window), *([counted] if 0 < counted < size else []), size})


def aligned_windows(
    text: Iterable[TokenPair],
    aligner: Aligner,
    style: LineStyle,
    ends: Sequence[int],
    todo: NDArray[np.bool_],
    progress: Callable[[int], object],
) -> Iterator[list[AlignmentLine]]:
    """Align the pairs of each window that are to be aligned; a window's lines come when it is complete.

    Args:
        text: the pairs.
        aligner: aligns them.
        style: how a line is written.
        ends: where windows end, from the beginning of the text on.
        todo: which pairs are to be aligned, [pairs].
        progress: called with the number of pairs after each batch.
    """
    aligned = aligner.align(_windows(text, ends, todo), progress)
    start = 0
    for end in ends:
        count = int(todo[start:end].sum())
        if count:
            yield [line_of(pair, style) for pair in itertools.islice(aligned, count)]
        start = end


def line_of(pair: AlignedPair, style: LineStyle) -> AlignmentLine:
    """The line of a pair."""
    return AlignmentLine(pair.id, style.line(pair.links), pair.status)


def _windows(
    text: Iterable[TokenPair], ends: Sequence[int], todo: NDArray[np.bool_]
) -> Iterator[Iterator[tuple[int, TokenPair]]]:
    """The pairs of each window that are still to be aligned, with their ids; each must be read before the next."""
    pairs = enumerate(text)
    start = 0
    for end in ends:
        yield (pair for pair in itertools.islice(pairs, end - start) if todo[pair[0]])
        start = end
