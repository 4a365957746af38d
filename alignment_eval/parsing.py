"""Lines of alignment files -> arrays, by numpy over pieces of many lines.

Every parser takes pieces of whole lines (:class:`~alignment_eval.textfiles.TextFile`), takes the indices as they
stand, and raises InputError with ``file:line`` at the first line that is not of its format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError

IntArray = NDArray[np.int64]

#: Longer numbers are taken for damage, not for word indices.
_MAX_NUMBER = 10**6 - 1
_LINK = re.compile(rb"0*[0-9]{1,6}[-p]0*[0-9]{1,6}")
_SCORED = re.compile(rb"[0-9]+-[0-9]+:\S+")
_SOFT = re.compile(rb"[0-9.,eE+-]*,[0-9.,eE+-]*")
_FAIRSEQ_LINE = re.compile(rb"A-([0-9]{1,9})(?:[ \t](.*))?")
NAACL_LINE = re.compile(
    rb"^[ \t]*([0-9]{1,6})[ \t]+([0-9]{1,6})[ \t]+([0-9]{1,6})(?:[ \t]+([SP]))?"
    rb"(?:[ \t]+(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)?[ \t]*$",
    re.MULTILINE,
)

_DIGIT, _SEPARATOR, _BLANK, _OTHER = range(4)
_KINDS = np.full(256, _OTHER, dtype=np.uint8)
_KINDS[list(b"0123456789")] = _DIGIT
_KINDS[list(b"-p")] = _SEPARATOR
_KINDS[list(b" \t\n")] = _BLANK
_NO_SEPARATORS = bytes.maketrans(b"-p", b"  ")


@dataclass(frozen=True, eq=False)
class RawLinks:
    """Links as they stand in a file: arrays [links], the sentence counted from 0; and the number of sentences."""

    sentence: IntArray
    source: IntArray
    target: IntArray
    possible: NDArray[np.bool_]
    sentences: int

    @classmethod
    def joined(cls, pieces: Sequence[RawLinks], sentences: int) -> RawLinks:
        """The links of all pieces."""
        none = np.empty(0, dtype=np.int64)
        return cls(
            np.concatenate([none, *(piece.sentence for piece in pieces)]),
            np.concatenate([none, *(piece.source for piece in pieces)]),
            np.concatenate([none, *(piece.target for piece in pieces)]),
            np.concatenate([np.empty(0, dtype=np.bool_), *(piece.possible for piece in pieces)]),
            sentences,
        )


def parse_pairs(chunks: Iterable[bytes], name: str, allow_possible: bool) -> RawLinks:
    """Pharaoh and talp: ``i-j ipj …``, one line a sentence.

    Args:
        chunks: pieces of whole lines.
        name: the file, for messages.
        allow_possible: whether ``ipj`` may occur.
    """
    pieces = []
    lines = 0
    for chunk in chunks:
        count = chunk.count(b"\n")
        pieces.append(_pairs(chunk, name, range(lines, lines + count), range(lines, lines + count), allow_possible))
        lines += count
    return RawLinks.joined(pieces, lines)


def parse_fairseq(chunks: Iterable[bytes], name: str, allow_possible: bool = False) -> RawLinks:
    """The ``A-<id>`` lines in the output of fairseq-generate; all other lines are passed over.

    Ids count from 0 and come in any order.  With an n-best list every id has the same number of A- lines, one
    after the other; the first is the best.

    Args:
        chunks: pieces of whole lines.
        name: the file, for messages.
        allow_possible: A- lines know no possible links; not read.
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
                    raise InputError(f"{name}:{number + 1}: {_shown(line)}: expected A-<id>, a tab and links i-j")
                ids.append(int(match[1]))
                lines.append(number)
                bodies.append(match[2] or b"")
            number += 1
    if not ids:
        raise InputError(f"{name}: no A- lines in it: expected those of fairseq-generate --print-alignment hard")
    best = _first_of_each(ids, lines, name)
    chunk = b"".join(bodies[k] + b"\n" for k in best)
    links = _pairs(chunk, name, [ids[k] for k in best], [lines[k] for k in best], False)
    return RawLinks.joined([links], len(best))


def _first_of_each(ids: Sequence[int], lines: Sequence[int], name: str) -> list[int]:
    """Positions of the first A- line of each id."""
    best: list[int] = []
    seen: set[int] = set()
    for k, id_ in enumerate(ids):
        if k and ids[k - 1] == id_:
            continue
        if id_ in seen:
            raise InputError(
                f"{name}:{lines[k] + 1}: A-{id_} is there a second time: expected each id once (or its n-best lines "
                f"in one piece); are these the outputs of several runs?"
            )
        seen.add(id_)
        best.append(k)
    missing = next(id_ for id_ in range(len(seen) + 1) if id_ not in seen)
    if missing < len(seen):
        raise InputError(
            f"{name}: no A- line for id {missing}, but one for id {max(seen)}: expected every id from 0; generate "
            f"the whole set, without --skip-invalid-size-inputs-valid-test"
        )
    sizes = np.diff([*best, len(ids)])
    if (odd := np.flatnonzero(sizes != sizes[0])).size:
        k = best[int(odd[0])]
        raise InputError(
            f"{name}:{lines[k] + 1}: {sizes[odd[0]]} A- lines for id {ids[k]}, but {sizes[0]} for id {ids[0]}: "
            f"expected as many for each (--nbest); are these the outputs of several runs?"
        )
    return best


def parse_naacl(chunks: Iterable[bytes], name: str, allow_possible: bool) -> RawLinks:
    """NAACL/WPT: ``sentence i j [S|P] [confidence]``, one line a link; sentences count from 1, blank lines do not.

    The number of sentences is the highest that occurs.

    Args:
        chunks: pieces of whole lines.
        name: the file, for messages.
        allow_possible: whether ``P`` may occur.
    """
    pieces = []
    lines = sentences = 0
    for chunk in chunks:
        rows = NAACL_LINE.findall(chunk)
        count = chunk.count(b"\n")
        # Only what is wrong needs the lines one by one.
        possible = np.array([row[3] == b"P" for row in rows], dtype=np.bool_)
        columns = np.array([row[:3] for row in rows], dtype="S6").astype(np.int64).reshape(len(rows), 3).T
        wrong = (columns[0] < 1).any() or (possible.any() and not allow_possible)
        if wrong or len(rows) != count:
            _check_naacl(chunk, name, lines, allow_possible)
        pieces.append(RawLinks(columns[0] - 1, columns[1], columns[2], possible, 0))
        sentences = max(sentences, int(columns[0].max(initial=0)))
        lines += count
    if not sentences:
        raise InputError(f"{name}: no links in it: expected NAACL lines 'sentence i j [S|P] [confidence]'")
    return RawLinks.joined(pieces, sentences)


def _check_naacl(chunk: bytes, name: str, start: int, allow_possible: bool) -> None:
    """Raise InputError at the first line of ``chunk`` that is not blank and not a NAACL link."""
    for number, line in enumerate(chunk.split(b"\n")[:-1], start + 1):
        if not line.strip(b" \t"):
            continue
        match = NAACL_LINE.fullmatch(line)
        if not match:
            raise InputError(
                f"{name}:{number}: {_shown(line)}: expected a NAACL line 'sentence i j [S|P] [confidence]'"
            )
        if int(match[1]) < 1:
            raise InputError(f"{name}:{number}: sentence number 0: expected numbers from 1, as NAACL files have them")
        if match[4] == b"P" and not allow_possible:
            raise _possible_error(f"{name}:{number}", "P")


def _pairs(chunk: bytes, name: str, sentences: Sequence[int], numbers: Sequence[int], allow_possible: bool) -> RawLinks:
    """The links of lines ``i-j ipj …``; line k is of sentence ``sentences[k]`` and stands on line ``numbers[k]``."""
    columns = _pair_columns(chunk)
    if columns is None:
        raise _bad_pair(chunk, name, numbers)
    line, source, target, possible = columns
    if not allow_possible and possible.any():
        raise _possible_error(f"{name}:{numbers[int(line[possible.argmax()])] + 1}", "p")
    return RawLinks(np.asarray(sentences, dtype=np.int64)[line], source, target, possible, 0)


def _pair_columns(chunk: bytes) -> tuple[IntArray, IntArray, IntArray, NDArray[np.bool_]] | None:
    """Line, source, target, possible of every link in ``chunk``; None if anything in it is not a link."""
    text = np.frombuffer(chunk, dtype=np.uint8)
    kinds = _KINDS[text]
    separators = np.flatnonzero(kinds == _SEPARATOR)
    blank = kinds == _BLANK
    starts = np.flatnonzero(~blank & np.concatenate([[True], blank[:-1]]))
    # A link is a token of digits with one separator that leaves two numbers.
    if (kinds == _OTHER).any() or len(starts) != len(separators):
        return None
    if (starts > separators).any() or (starts[1:] < separators[:-1]).any():
        return None
    if not len(separators):  # np.fromstring makes a 0 of blanks alone
        return separators, separators, separators, np.empty(0, dtype=np.bool_)
    numbers = np.fromstring(chunk.translate(_NO_SEPARATORS), dtype=np.int64, sep=" ")
    if len(numbers) != 2 * len(separators) or not 0 <= numbers.min() <= numbers.max() <= _MAX_NUMBER:
        return None
    line = np.searchsorted(np.flatnonzero(text == ord("\n")), separators)
    return line, numbers[::2], numbers[1::2], text[separators] == ord("p")


def _bad_pair(chunk: bytes, name: str, numbers: Sequence[int]) -> InputError:
    """The error of the first token of ``chunk`` that is no link."""
    for number, line in zip(numbers, chunk.split(b"\n")):
        for token in line.replace(b"\t", b" ").split(b" "):
            if token and not _LINK.fullmatch(token):
                place = f"{name}:{number + 1}: {_shown(token)}"
                if _SCORED.fullmatch(token):
                    return InputError(f"{place}: a link with a score: expected links i-j; cut the scores off")
                if _SOFT.fullmatch(token):
                    return InputError(
                        f"{place}: weights, not links: expected i-j; generate with --print-alignment hard"
                    )
                return InputError(f"{place}: expected links i-j (sure) or ipj (possible) of numbers below 1000000")
    raise RuntimeError(f"{name}: the two parsers of links disagree")  # cannot happen; tests compare them


def _possible_error(place: str, mark: str) -> InputError:
    return InputError(
        f"{place}: a possible link ({mark}): expected sure links only, as in a hypothesis; are gold and hypothesis "
        f"exchanged? (--hyp-allow-possible or the like takes possible links for links, --gold-format talp those of "
        f"gold)"
    )


def _shown(text: bytes) -> str:
    """``text`` for a message, cut if long."""
    shown = text.decode("utf-8", errors="replace")
    return repr(shown if len(shown) <= 40 else f"{shown[:40]}…")
