"""Is a file read as it was meant: the index base, the bounds of the texts.

A wrong base or direction gives a wrong number without any error of its own (GIZA++'s AER of 21 becomes 63 or
82), so what the data tell about them is always looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.formats.detection import AlignmentFile
from alignment_eval.links.table import LinkTable, first_with

IntArray = NDArray[np.int64]
Warn = Callable[[str], None]

#: A file that uses index 1 in so many sentences and index 0 in none is not 0-based: reading it so is an error …
CONTRADICTED = 5
#: … and with ``auto`` it takes so many to call it 1-based.
DECIDED = 20


@dataclass(frozen=True, eq=False)
class Texts:
    """The number of tokens of each line, [sentences] a side, and the names of the files."""

    source_name: str
    source: IntArray
    target_name: str
    target: IntArray

    @property
    def exchanged(self) -> Texts:
        """The texts of the other direction."""
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

    An index 0 shows base 0.  Without any, base 1 is shown by an index that equals its sentence's length, or, where
    the lengths are unknown, by :data:`DECIDED` sentences that use index 1.

    Args:
        file: the links with the indices of the file.
        wanted: ``0``, ``1`` or ``auto``.
        role: ``gold`` or ``hyp``, for the option names in messages.
        sides: the sentence lengths that bound first and second index, if known.
        unused_zero: accept base 0 although no link uses index 0.
        stated: whether the user stated ``wanted``.
        warn: takes the warnings.

    Raises:
        InputError: the data contradict the base, or ``auto`` cannot tell it.
    """
    links = file.links.possible
    zero = first_with(links, 0)
    if wanted == "auto":
        return _detect_base(file, zero, role, sides, warn)
    if wanted == "1" and zero is not None:
        null = " (0 stands for NULL in some NAACL files: then remove those lines)" if file.format == "naacl" else ""
        raise InputError(
            f"{_place(file, zero)}: an index 0 in a file read as 1-based: expected indices from 1; state "
            f"--{role}-base 0{null}"
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
        base, reason = 0, f"index 0 is used, first at {_place(file, zero)}"
    elif sides is not None:
        ends = np.flatnonzero((links.source == sides[0][links.sentence]) | (links.target == sides[1][links.sentence]))
        if not ends.size:
            raise InputError(
                f"{file.name}: no index is 0 and none equals its sentence's length, so the index base cannot be told: "
                f"expected it to be stated; give --{role}-base 0 or --{role}-base 1"
            )
        base, reason = 1, f"no index is 0, and one equals its sentence's length, first at {_place(file, int(ends[0]))}"
    elif (ones := sentences_with_one(links)) >= DECIDED:
        base, reason = 1, f"index 1 is used in {ones} sentences, index 0 in none"
    else:
        raise InputError(
            f"{file.name}: no index is 0, but only {ones} sentences use index 1, so the index base cannot be told: "
            f"expected it to be stated; give --{role}-base 0 or --{role}-base 1"
        )
    warn(f"{file.name}: read as {base}-based, because {reason}; state --{role}-base {base} to be sure")
    return base


def _doubt_zero(file: AlignmentFile, role: str, stated: bool, warn: Warn) -> None:
    """Raise or warn about a file that is read as 0-based but uses no index 0."""
    links = file.links.possible
    ones = sentences_with_one(links)
    linked = int(np.count_nonzero(links.per_sentence()))
    if ones >= CONTRADICTED:
        raise InputError(
            f"{file.name}: index 1 is used in {ones} sentences and index 0 in none, which a file read as 0-based "
            f"would hardly show: expected some index 0; state --{role}-base 1, or --{role}-unused-zero if it is "
            f"0-based all the same"
        )
    if not stated or linked >= DECIDED:
        warn(
            f"{file.name}: read as 0-based, but none of its {linked} sentences with links uses an index 0; "
            f"state --{role}-base 1 if it is 1-based"
        )


def sentences_with_one(links: LinkTable) -> int:
    """The number of sentences that use an index 1 on either side."""
    sentences = links.sentence[(links.source == 1) | (links.target == 1)]
    return int(np.count_nonzero(np.diff(sentences, prepend=-1)))


def _place(file: AlignmentFile, link: int) -> str:
    """Where the link at position ``link`` stands."""
    return file.where(int(file.links.possible.sentence[link]))


def check_range(file: AlignmentFile, base: int, role: str, sides: tuple[IntArray, IntArray], swap: bool) -> None:
    """Check that every link of ``file``, read with ``base``, lies inside its sentence pair.

    Args:
        file: the links with the indices of the file.
        base: its index base.
        role: ``gold`` or ``hyp``, for the option names in messages.
        sides: the sentence lengths that bound first and second index.
        swap: whether the file is said to hold target-source links.

    Raises:
        InputError: links lie outside; the text says if the other direction or the other base would fit.
    """
    links = file.links.possible
    outside = np.flatnonzero(_outside(links, base, sides))
    if not outside.size:
        return
    first = int(outside[0])
    sentence = int(links.sentence[first])
    if not _outside(links, base, (sides[1], sides[0])).any():
        advice = f"transposed, all links are inside, so the direction looks swapped: {swap_advice(role, swap)}"
    elif base == 0 and not _outside(links, 1, sides).any():
        advice = f"read as 1-based, all links are inside: state --{role}-base 1"
    else:
        advice = "is it the alignment of these texts, tokenised in the same way?"
    raise InputError(
        f"{file.where(sentence)}: link {links.source[first]}-{links.target[first]} is outside its sentence pair of "
        f"{sides[0][sentence]} and {sides[1][sentence]} words, as are {outside.size} of {len(links)} links: expected "
        f"{base}-based indices of words; {advice}"
    )


def _outside(links: LinkTable, base: int, sides: tuple[IntArray, IntArray]) -> NDArray[np.bool_]:
    """Which links have an index below ``base`` or beyond the end of the sentence."""
    first, second = links.source - base, links.target - base
    above: NDArray[np.bool_] = (first >= sides[0][links.sentence]) | (second >= sides[1][links.sentence])
    return above | (first < 0) | (second < 0)


def swap_advice(role: str, swap: bool) -> str:
    """What to do about a direction that is the other one."""
    return f"leave --{role}-swap out" if swap else f"give --{role}-swap"
