"""Parses lines of alignment files into arrays, with numpy, many lines at a time.

Every parser takes pieces of whole lines (:class:`~alignment_eval.formats.text.TextFile`), keeps the indices of the
file, and raises InputError with ``file:line`` at the first line that is not in its format.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Callable, NamedTuple, Optional

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.links.table import packed

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: A longer number is damage, not a word index.
_MAX_DIGITS = 6
_LINK = re.compile(rb"0*[0-9]{1,6}[-p]0*[0-9]{1,6}")
NUMBER = rb"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
SCORED = re.compile(rb"[0-9]+[-p][0-9]+:\S+")
_SCORED_LINK = re.compile(rb"(%s):(%s)" % (_LINK.pattern, NUMBER))
_SOFT = re.compile(rb"[0-9.,eE+-]*,[0-9.,eE+-]*")
_FAIRSEQ_LINE = re.compile(rb"A-([0-9]{1,9})(?:[ \t](.*))?")

_DIGIT, _SEPARATOR, _BLANK, _OTHER = range(4)
_KINDS = np.full(256, _OTHER, dtype=np.uint8)
_KINDS[list(b"0123456789")] = _DIGIT
_KINDS[list(b"-p")] = _SEPARATOR
_KINDS[list(b" \t\n")] = _BLANK
_TO_KINDS = _KINDS.tobytes()
_TO_DIGITS = bytes(byte - ord("0") if byte in b"0123456789" else 0 for byte in range(256))
_SPACE, _COLON, _NEWLINE = b" :\n"
_NUMBER_BYTES = np.isin(np.arange(256), list(b"0123456789.eE+-"))


class _Columns(NamedTuple):
    """Arrays [links]: the line in the piece, the indices, whether the link is possible only, the score."""

    line: NDArray[np.intp]
    source: IntArray
    target: IntArray
    possible: NDArray[np.bool_]
    confidence: FloatArray | None = None


_Read = Callable[[bytes], Optional[_Columns]]


@dataclass(frozen=True, eq=False)
class RawLinks:
    """All links of a file, duplicates included, as arrays [links]; and the number of sentences.

    ``keys`` pack the sentence, from 0, with the indices of the file (:func:`~links.table.packed`); ``confidence`` is
    None if the file has no scores.
    """

    keys: IntArray
    possible: NDArray[np.bool_]
    sentences: int
    confidence: FloatArray | None = None


class Collector:
    """Collects the links of all pieces in buffers that grow in place; joining pieces would hold all of them twice."""

    def __init__(self) -> None:
        self._keys, self._possible = bytearray(), bytearray()
        self._confidence: bytearray | None = None

    def add(self, piece: RawLinks) -> None:
        """Add the links of a piece; either all pieces have confidences or none has."""
        keys, possible, confidence = piece.keys, piece.possible, piece.confidence
        if not (keys[1:] >= keys[:-1]).all():  # sorted here: later it would take a second array of all links
            order = np.argsort(keys, kind="stable")
            keys, possible = keys[order], possible[order]
            confidence = None if confidence is None else confidence[order]
        self._keys += keys.tobytes()
        self._possible += possible.tobytes()
        if confidence is not None:
            self._confidence = bytearray() if self._confidence is None else self._confidence
            self._confidence += confidence.tobytes()

    def links(self, sentences: int) -> RawLinks:
        """All links that were added; afterwards nothing can be added."""
        return RawLinks(
            np.frombuffer(self._keys, dtype=np.int64),
            np.frombuffer(self._possible, dtype=np.bool_),
            sentences,
            None if self._confidence is None else np.frombuffer(self._confidence, dtype=np.float64),
        )


def parse_pairs(chunks: Iterable[bytes], name: str, allow_possible: bool) -> RawLinks:
    """Parse Pharaoh and talp: ``i-j ipj …``, one line per sentence.

    Args:
        chunks: pieces of whole lines.
        name: the file, for messages.
        allow_possible: whether ``ipj`` may occur.
    """
    return _parse_lines(chunks, name, allow_possible, _pair_columns)


def parse_scored(chunks: Iterable[bytes], name: str, allow_possible: bool = False) -> RawLinks:
    """Parse scored Pharaoh: ``i-j:p i-j:p …``, one line per sentence; p is a finite decimal number on any scale.

    Args:
        chunks: pieces of whole lines.
        name: the file, for messages.
        allow_possible: whether ``ipj:p`` may occur.
    """
    return _parse_lines(chunks, name, allow_possible, _scored_columns)


def _parse_lines(chunks: Iterable[bytes], name: str, allow_possible: bool, read: _Read) -> RawLinks:
    links = Collector()
    lines = 0
    for chunk in chunks:
        numbers = range(lines, lines + chunk.count(b"\n"))
        links.add(_pairs(chunk, name, numbers, numbers, allow_possible, read))
        lines = numbers.stop
    return links.links(lines)


def parse_fairseq(chunks: Iterable[bytes], name: str, allow_possible: bool = False) -> RawLinks:
    """Parse the ``A-<id>`` lines in the output of fairseq-generate; all other lines are ignored.

    Ids count from 0 and come in any order.  In an n-best list every id has the same number of A- lines, next to each
    other; the first is the best.

    Args:
        chunks: pieces of whole lines.
        name: the file, for messages.
        allow_possible: ignored; A- lines have no possible links.
    """
    ids: list[int] = []
    lines: list[int] = []
    bodies: list[bytes] = []
    number = 0
    for chunk in chunks:
        for line in chunk.split(b"\n")[:-1]:
            if line.startswith(b"A-"):
                match = _FAIRSEQ_LINE.fullmatch(line)
                if not match:
                    raise InputError(f"{name}:{number + 1}: expected A-<id>, a tab and links i-j, found {shown(line)}")
                ids.append(int(match[1]))
                lines.append(number)
                bodies.append(match[2] or b"")
            number += 1
    if not ids:
        raise InputError(f"{name}: the file has no A- lines; run fairseq-generate with --print-alignment hard")
    best = _first_of_each(ids, lines, name)
    chunk = b"".join(bodies[k] + b"\n" for k in best)
    links = _pairs(chunk, name, [ids[k] for k in best], [lines[k] for k in best], False, _pair_columns)
    return replace(links, sentences=len(best))


def _first_of_each(ids: Sequence[int], lines: Sequence[int], name: str) -> list[int]:
    """Positions of the first A- line of each id."""
    best: list[int] = []
    seen: set[int] = set()
    for k, id_ in enumerate(ids):
        if k and ids[k - 1] == id_:
            continue
        if id_ in seen:
            raise InputError(
                f"{name}:{lines[k] + 1}: duplicate A-{id_}; each id must occur once, or its n-best lines must stand "
                f"together; check that the file is the output of a single run"
            )
        seen.add(id_)
        best.append(k)
    missing = next(id_ for id_ in range(len(seen) + 1) if id_ not in seen)
    if missing < len(seen):
        raise InputError(
            f"{name}: id {missing} has no A- line, but id {max(seen)} has one; if the sentence was "
            f"skipped as too long, run fairseq-generate without --skip-invalid-size-inputs-valid-test"
        )
    sizes = np.diff([*best, len(ids)])
    if (odd := np.flatnonzero(sizes != sizes[0])).size:
        k = best[int(odd[0])]
        raise InputError(
            f"{name}:{lines[k] + 1}: id {ids[k]} has {sizes[odd[0]]} A- lines, but id {ids[0]} has {sizes[0]}; every "
            f"id must have the same number (--nbest); check that the file is the output of a single run"
        )
    return best


def _pairs(
    chunk: bytes, name: str, sentences: Sequence[int], numbers: Sequence[int], allow_possible: bool, read: _Read
) -> RawLinks:
    """The links of lines ``i-j ipj …``; line k is sentence ``sentences[k]`` and line ``numbers[k]`` of the file."""
    columns = read(chunk)
    if columns is None:
        raise _bad_token(chunk, name, numbers, read is _scored_columns)
    if not allow_possible and columns.possible.any():
        place = f"{name}:{numbers[int(columns.line[columns.possible.argmax()])] + 1}"
        raise possible_error(place, "p")
    keys = packed(np.asarray(sentences, dtype=np.int64)[columns.line], columns.source, columns.target)
    return RawLinks(keys, columns.possible, 0, columns.confidence)


def _pair_columns(chunk: bytes) -> _Columns | None:
    """Every link ``i-j`` or ``ipj`` in ``chunk``, whole lines; None if any token is not a link."""
    text = np.frombuffer(chunk, dtype=np.uint8)
    kinds = np.frombuffer(chunk.translate(_TO_KINDS), dtype=np.uint8)
    separators = np.flatnonzero(kinds == _SEPARATOR)
    blank = kinds == _BLANK
    starts = np.flatnonzero(~blank & np.concatenate([[True], blank[:-1]]))
    ends = np.flatnonzero(blank[1:] & ~blank[:-1]) + 1
    # A link is a token of digits with one separator between two numbers.
    if (kinds == _OTHER).any() or len(starts) != len(separators):
        return None
    if (starts >= separators).any() or (separators + 1 >= ends).any():
        return None
    digits = np.frombuffer(chunk.translate(_TO_DIGITS), dtype=np.uint8)
    source, target = _numbers(digits, starts, separators), _numbers(digits, separators + 1, ends)
    if source is None or target is None:
        return None
    newlines = np.flatnonzero(text == _NEWLINE)
    line = np.repeat(np.arange(len(newlines)), np.diff(np.searchsorted(separators, newlines), prepend=0))
    return _Columns(line, source, target, text[separators] == ord("p"))


def _numbers(digits: NDArray[np.uint8], starts: NDArray[np.intp], ends: NDArray[np.intp]) -> IntArray | None:
    """The numbers whose digits are at ``starts`` to ``ends``; None if one is too large.

    ``digits`` is 0 outside of numbers.  No number is empty, and such a 0 separates any two.
    """
    length = ends - starts
    # Almost all have one or two digits; the byte before a single digit is 0.
    numbers: IntArray = digits[ends - 1] + 10 * digits[ends - 2].astype(np.int64)
    for place in range(2, min(_MAX_DIGITS, int(length.max(initial=0)))):
        longer = np.flatnonzero(length > place)
        numbers[longer] += 10**place * digits[ends[longer] - 1 - place].astype(np.int64)
    for k in np.flatnonzero(length > _MAX_DIGITS):
        if digits[starts[k] : ends[k] - _MAX_DIGITS].any():  # only zeros may lead
            return None
    return numbers


def _scored_columns(chunk: bytes) -> _Columns | None:
    """Every link ``i-j:p`` in ``chunk``; None if any token is not such a link."""
    text = np.frombuffer(chunk, dtype=np.uint8)
    blank = _KINDS[text] == _BLANK
    begins = ~blank & np.concatenate([[True], blank[:-1]])
    starts, colons = np.flatnonzero(begins), np.flatnonzero(text == _COLON)
    # One colon per token, with a link before it and a number after it.
    if len(starts) != len(colons) or (starts > colons).any() or (starts[1:] < colons[:-1]).any():
        return None
    score = ~blank & (np.cumsum(begins) == np.cumsum(text == _COLON))
    links = _pair_columns(np.where(score, np.uint8(_SPACE), text).tobytes())
    score[colons] = False
    if links is None or len(links.line) != len(starts) or not score[colons + 1].all():
        return None
    if not _NUMBER_BYTES[text[score]].all():
        return None
    confidence = _floats(np.where(score, text, np.uint8(_SPACE)).tobytes(), len(starts))
    return None if confidence is None else links._replace(confidence=confidence)


def _floats(text: bytes, count: int) -> FloatArray | None:
    """The ``count`` blank-separated tokens of ``text`` as finite numbers; None if a token is not a finite number.

    The tokens have no letters but e and E, so only the NaN appended here can be read as NaN.  If it was read, all
    text before it was read too, and an equal number of values and tokens means one value per token.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # for unread text; numpy will make it a ValueError
        try:
            values = np.fromstring(text + b" nan", dtype=np.float64, sep=" ")
        except ValueError:
            return None
    if len(values) != count + 1 or not np.isnan(values[-1]) or not np.isfinite(values[:-1]).all():
        return None
    return values[:-1]


def _is_pair(token: bytes) -> bool:
    return bool(_LINK.fullmatch(token))


def _is_scored(token: bytes) -> bool:
    match = _SCORED_LINK.fullmatch(token)
    return match is not None and math.isfinite(float(match[2]))


def _bad_token(chunk: bytes, name: str, numbers: Sequence[int], scored: bool) -> InputError:
    """The error for the first token of ``chunk`` that is not a link, or not a link with a score."""
    for number, line in zip(numbers, chunk.split(b"\n")):
        for token in line.replace(b"\t", b" ").split(b" "):
            if token and not (_is_scored if scored else _is_pair)(token):
                return InputError(f"{name}:{number + 1}: {shown(token)} {_wanted(token, scored)}")
    raise RuntimeError(f"{name}: the two parsers of links disagree")  # cannot happen; tests compare them


def _wanted(token: bytes, scored: bool) -> str:
    if scored and _LINK.fullmatch(token):
        return "has no score, but other links have; give every link a score, i-j:p, or give no link one"
    if scored:
        return "is not a link i-j:p, with i and j below 1000000 and p a finite number such as 0.5 or 1e-05"
    if SCORED.fullmatch(token):
        return "is a link with a score, but links i-j are expected; choose the format scored to read the scores"
    if token == b"|||":
        return "precedes the score of a sentence (fast_align -s); remove it with sed 's/ *|||.*//'"
    if _SOFT.fullmatch(token):
        return "is a list of weights, not a link i-j; generate with --print-alignment hard"
    return "is not a link i-j (sure, such as 2-3) or ipj (possible, such as 2p3) with numbers below 1000000"


def possible_error(place: str, mark: str) -> InputError:
    """The error of a possible link with ``mark`` in a hypothesis."""
    return InputError(
        f"{place}: found a possible link ({mark}) where only sure links are allowed; check that gold and hypothesis "
        f"are not exchanged; to allow possible links, give --hyp-allow-possible (or the like) for a hypothesis, "
        f"--gold-format talp for gold"
    )


def shown(text: bytes) -> str:
    """``text`` for a message, shortened if it is long."""
    shown = text.decode("utf-8", errors="replace")
    return repr(shown if len(shown) <= 40 else f"{shown[:40]}…")
