"""Lines that are in subwords already."""

from __future__ import annotations

from collections.abc import Sequence

from fairseq_norm_plugin.text.pieces import MarkedPieces
from fairseq_norm_plugin.text.tokenise import Line, LinePair, TextPipeline

_IN_PIECES = TextPipeline(MarkedPieces("@@"))


def line_of(pieces: Sequence[str]) -> Line:
    """The line of these pieces, which ``@@`` marks."""
    return _IN_PIECES.read(" ".join(pieces))


def pair_of(source: Sequence[str], target: Sequence[str]) -> LinePair:
    """The lines of the pieces of source and target."""
    return line_of(source), line_of(target)
