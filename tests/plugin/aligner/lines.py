"""Lines that are in subwords already."""

from fairseq_norm_plugin.text.pieces import MarkedPieces
from fairseq_norm_plugin.text.tokenise import TextPipeline

_IN_PIECES = TextPipeline(MarkedPieces("@@"))


def line_of(pieces):
    """The line of these pieces, which ``@@`` marks."""
    return _IN_PIECES.read(" ".join(pieces))


def pair_of(source, target):
    """The lines of the pieces of source and target."""
    return line_of(source), line_of(target)
