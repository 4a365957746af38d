"""Checks that a file is read as it was meant: its index base, and its links against the lengths of the sentences.

A wrong base or direction raises no error by itself, it only gives a wrong number (GIZA++'s AER of 21 becomes 63 or
82).  So every file is checked for what its indices reveal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.formats.detection import AlignmentFile
from alignment_eval.links.table import LinkTable, blocks, first_with

IntArray = NDArray[np.int64]
Warn = Callable[[str], None]

#: If at least this many sentences use index 1 and none uses index 0, reading the file as 0-based is an error.
CONTRADICTED = 5
#: With ``auto``, a file is 1-based if at least this many sentences use index 1 and none uses index 0.
DECIDED = 20


@dataclass(frozen=True, eq=False)
class Texts:
    """The number of tokens on each line, [sentences] for each side, and the names of the files."""

    source_name: str
    source: IntArray
    target_name: str
    target: IntArray

    @property
    def exchanged(self) -> Texts:
        """The same texts with source and target exchanged."""
        return Texts(self.target_name, self.target, self.source_name, self.source)

    def sides(self, swap: bool) -> tuple[IntArray, IntArray]:
        """The lengths that bound the first and the second index of a link."""
        return (self.target, self.source) if swap else (self.source, self.target)


def decide_base(
    file: AlignmentFile,
    wanted: str,
    role: str,
    sides: tuple[IntArray, IntArray] | None,
    unused_zero: bool,
    stated: bool,
    warn: Warn,
) -> int:
    """The index base of ``file``, 0 or 1.

    An index 0 proves base 0.  If there is none, an index equal to its sentence's length proves base 1.  Where the
    lengths are unknown, :data:`DECIDED` sentences that use index 1 are taken as proof.

    Args:
        file: the links with the indices of the file.
        wanted: ``0``, ``1`` or ``auto``.
        role: ``gold`` or ``hyp`` (in training ``aer-gold``), for the option names in messages.
        sides: the sentence lengths that bound the first and the second index, if known.
        unused_zero: accept base 0 although no link uses index 0.
        stated: whether the user chose ``wanted``.
        warn: called with each warning.

    Raises:
        InputError: the data contradict the base, or ``auto`` cannot decide it.
    """
    links = file.links.possible
    zero = first_with(links, 0)
    if wanted == "auto":
        return _detect_base(file, zero, role, sides, warn)
    if wanted == "1" and zero is not None:
        null = " (some NAACL files write 0 for NULL; if so, remove those lines)" if file.format == "naacl" else ""
        raise InputError(
            f"{_place(file, zero)}: the file uses index 0, but it is read as 1-based; give --{role}-base 0{null}"
        )
    if wanted == "0" and len(links) and zero is None and not unused_zero:
        _doubt_zero(file, role, stated, warn)
    return int(wanted)


def _detect_base(
    file: AlignmentFile, zero: int | None, role: str, sides: tuple[IntArray, IntArray] | None, warn: Warn
) -> int:
    links = file.links.possible
    if not len(links):
        return 0
    if zero is not None:
        base, reason = 0, f"it uses index 0 (first at {_place(file, zero)})"
    elif sides is not None:
        ends = _positions(links, sides, np.equal)
        if not ends.size:
            raise InputError(
                f"{file.name}: cannot detect the index base, because no index is 0 and none equals its sentence's "
                f"length; give --{role}-base 0 or --{role}-base 1"
            )
        base, reason = 1, f"no index is 0 and one equals its sentence's length (first at {_place(file, int(ends[0]))})"
    elif (ones := sentences_with_one(links)) >= DECIDED:
        base, reason = 1, f"{ones} sentences use index 1 and none uses index 0"
    else:
        raise InputError(
            f"{file.name}: cannot detect the index base, because no index is 0 and only {ones} sentences use index 1; "
            f"give --{role}-base 0 or --{role}-base 1"
        )
    warn(f"{file.name}: read as {base}-based, because {reason}; give --{role}-base {base} to be sure")
    return base


def _doubt_zero(file: AlignmentFile, role: str, stated: bool, warn: Warn) -> None:
    """Refuse a file, or warn of it, that is read as 0-based but uses no index 0."""
    links = file.links.possible
    ones = sentences_with_one(links)
    linked = int(np.count_nonzero(links.per_sentence()))
    if ones >= CONTRADICTED:
        # training has no such option
        unused = "" if role == "aer-gold" else f", or --{role}-unused-zero if the file really is 0-based"
        raise InputError(
            f"{file.name}: the file is read as 0-based, but {ones} sentences use index 1 and none uses index 0; give "
            f"--{role}-base 1{unused}"
        )
    if not stated or linked >= DECIDED:
        warn(
            f"{file.name}: read as 0-based, but none of its {linked} sentences with links uses index 0; "
            f"give --{role}-base 1 if it is 1-based"
        )


def sentences_with_one(links: LinkTable) -> int:
    """The number of sentences that use index 1 on either side."""
    count = 0
    for _, part in blocks(links):
        sentences = part.sentence[(part.source == 1) | (part.target == 1)]
        count += int(np.count_nonzero(np.diff(sentences, prepend=-1)))
    return count


def _place(file: AlignmentFile, link: int) -> str:
    """The place in the file of the link at position ``link``, for messages."""
    return file.where(int(file.links.possible.sentence[link]))


def check_range(file: AlignmentFile, base: int, role: str, sides: tuple[IntArray, IntArray], swap: bool) -> None:
    """Check that every link of ``file``, read with ``base``, lies inside its sentence pair.

    Args:
        file: the links with the indices of the file.
        base: its index base.
        role: ``gold`` or ``hyp``, for the option names in messages.
        sides: the sentence lengths that bound the first and the second index.
        swap: whether the user said that the file holds target-source links.

    Raises:
        InputError: some links lie outside; the message says whether the other direction or the other base would fit.
    """
    links = file.links.possible
    outside = _outside(links, base, sides)
    if not outside.size:
        return
    first = int(outside[0])
    sentence = int(links.sentence[first])
    if not _outside(links, base, (sides[1], sides[0])).size:
        advice = f"with source and target exchanged all links are inside; {swap_advice(role, swap)}"
    elif base == 0 and not _outside(links, 1, sides).size:
        advice = f"read as 1-based all links are inside; give --{role}-base 1"
    else:
        advice = "give the texts that the alignment was made from, with the same tokenisation"
    raise InputError(
        f"{file.where(sentence)}: link {links.source[first]}-{links.target[first]} is outside its sentence pair, which "
        f"has {sides[0][sentence]} and {sides[1][sentence]} words; {outside.size} of {len(links)} links are outside, "
        f"read as {base}-based; {advice}"
    )


def _outside(links: LinkTable, base: int, sides: tuple[IntArray, IntArray]) -> NDArray[np.intp]:
    """The positions of the links that have an index below ``base`` or beyond the end of the sentence."""
    return _positions(links, sides, lambda index, length: (index < base) | (index - base >= length))


def _positions(
    links: LinkTable, sides: tuple[IntArray, IntArray], test: Callable[[IntArray, IntArray], NDArray[np.bool_]]
) -> NDArray[np.intp]:
    """The positions of the links of which either index, with the length of its side, passes ``test``."""
    found, before = [], 0
    for at, part in blocks(links):
        first, second = (side[at][part.sentence] for side in sides)
        found.append(before + np.flatnonzero(test(part.source, first) | test(part.target, second)))
        before += len(part)
    return np.concatenate(found)


def swap_advice(role: str, swap: bool) -> str:
    """The advice for a file whose links have the other direction."""
    return f"omit --{role}-swap" if swap else f"give --{role}-swap"
