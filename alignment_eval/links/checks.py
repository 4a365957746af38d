"""Checks that a file is read as it was meant: its index base, and its links against the lengths of the sentences.

A wrong base or direction raises no error, it only gives a wrong number (GIZA++'s AER of 21 becomes 63 or
82).  So every file is checked for what its indices reveal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.links.parse import Parsed
from alignment_eval.links.sets import GoldSentence

IntArray = NDArray[np.int64]
Warn = Callable[[str], None]

#: If at least this many sentences use index 1 and none uses index 0, reading the file as 0-based is an error.
CONTRADICTED = 5
#: With ``auto``, a file is 1-based if at least this many sentences use index 1 and none uses index 0.
DECIDED = 20
#: How the base of a file may be stated.
BASES = ("0", "1", "auto", "0-unused")


@dataclass(frozen=True, eq=False)
class Texts:
    """The number of tokens on each line, [sentences] for each side, and the names of the files."""

    source_name: str
    source: IntArray
    target_name: str
    target: IntArray

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise InputError(
                f"{self.source_name} has {len(self.source)} lines, but {self.target_name} has {len(self.target)}; give "
                f"the two sides of one text, with one sentence per line"
                + last_line_blank(
                    (self.source_name, len(self.source), not self.source[-1:].all()),
                    (self.target_name, len(self.target), not self.target[-1:].all()),
                )
            )

    @property
    def exchanged(self) -> Texts:
        """The same texts with source and target exchanged."""
        return Texts(self.target_name, self.target, self.source_name, self.source)


@dataclass
class Contents:
    """What a file holds, counted with the indices of the file.

    Attributes:
        name: the file, for messages.
        format: one of those of :mod:`alignment_eval.links.parse`.
        hash: short hash of the content.
        sentences: the number of sentences.
        sure, possible: the number of links; possible ones include sure ones.
        doubled: the number of duplicate links; each link counts once.
        linked: the number of sentences with links.
        zero: the first sentence that uses index 0, from 0; None if no sentence does.
        ones: the number of sentences that use index 1; counted only up to ``zero``.
        scored: whether links have confidences.
        blank_end: whether the last line is blank.
    """

    name: str
    format: str
    hash: str = ""
    sentences: int = 0
    sure: int = 0
    possible: int = 0
    doubled: int = 0
    linked: int = 0
    zero: int | None = None
    ones: int = 0
    scored: bool = False
    blank_end: bool = False

    def add(self, parsed: Parsed) -> None:
        """Count the next sentence."""
        links = parsed.sentence.possible
        self.sure += len(parsed.sentence.sure)
        self.possible += len(links)
        self.doubled += parsed.written - len(links)
        self.linked += bool(links)
        self.scored = self.scored or parsed.sentence.confidence is not None
        if self.zero is None:
            indices = set(chain.from_iterable(links))
            self.ones += 1 in indices
            if 0 in indices:
                self.zero = self.sentences
        self.sentences += 1
        self.blank_end = not parsed.written and self.format in ("pharaoh", "talp", "scored")

    @property
    def bases(self) -> frozenset[int]:
        """The index bases that the indices allow."""
        if self.zero is not None:
            return frozenset({0})
        return frozenset({1} if self.ones >= CONTRADICTED else {0, 1})

    def where(self, sentence: int) -> str:
        """The place of a sentence (counted from 0), for messages."""
        if self.format not in ("naacl", "fairseq", "giza"):
            return f"{self.name}:{sentence + 1}"
        return f"{self.name}: sentence {sentence if self.format == 'fairseq' else sentence + 1}"


def last_line_blank(*files: tuple[str, int, bool]) -> str:
    """What ends a message on different numbers of lines if the last line of the longest file is blank.

    ``files``: the name of each, its number of lines, and whether the last is blank.
    """
    name, _, blank = max(files, key=lambda file: file[1])
    return f" (the last line of {name} is blank: delete it)" if blank else ""


def decide_base(file: Contents, wanted: str, stated: bool, role: str, warn: Warn) -> int:
    """The index base of a file, 0 or 1.

    An index 0 proves base 0.  Without one, :data:`DECIDED` sentences that use index 1 are taken as proof of base 1.

    Args:
        file: what it holds.
        wanted: one of :data:`BASES`.
        stated: whether the user chose ``wanted``.
        role: ``gold`` or ``hyp`` (in training ``aer-gold``), for the option names in messages.
        warn: called with each warning.
    """
    if wanted == "auto":
        return _detect_base(file, role, warn)
    if wanted == "1" and file.zero is not None:
        null = " (some NAACL files write 0 for NULL; if so, remove those lines)" if file.format == "naacl" else ""
        raise InputError(
            f"{file.where(file.zero)}: the file uses index 0, but it is read as 1-based; give --{role}-base 0{null}"
        )
    if wanted == "0" and file.possible and file.zero is None:
        _doubt_zero(file, role, stated, warn)
    return 1 if wanted == "1" else 0


def _detect_base(file: Contents, role: str, warn: Warn) -> int:
    if not file.possible:
        return 0
    if file.zero is not None:
        base, reason = 0, f"it uses index 0 (first at {file.where(file.zero)})"
    elif file.ones >= DECIDED:
        base, reason = 1, f"{file.ones} sentences use index 1 and none uses index 0"
    else:
        raise InputError(
            f"{file.name}: cannot detect the index base, because no index is 0 and only {file.ones} sentences use "
            f"index 1; give --{role}-base 0 or --{role}-base 1"
        )
    warn(f"{file.name}: read as {base}-based, because {reason}; give --{role}-base {base} to be sure")
    return base


def _doubt_zero(file: Contents, role: str, stated: bool, warn: Warn) -> None:
    """Refuse a file, or warn of it, that is read as 0-based but uses no index 0."""
    if file.ones >= CONTRADICTED:
        # training has no such base
        unused = "" if role == "aer-gold" else f", or --{role}-base 0-unused if the file really is 0-based"
        raise InputError(
            f"{file.name}: the file is read as 0-based, but {file.ones} sentences use index 1 and none uses index 0; "
            f"give --{role}-base 1{unused}"
        )
    if not stated or file.linked >= DECIDED:
        warn(
            f"{file.name}: read as 0-based, but none of its {file.linked} sentences with links uses index 0; "
            f"give --{role}-base 1 if it is 1-based"
        )


def check_range(
    file: Contents, sentences: Iterable[GoldSentence], base: int, swap: bool, role: str, texts: Texts
) -> None:
    """Check that every link of a file lies inside its sentence pair.

    Args:
        file: what it holds.
        sentences: the links, source-target from 0; iterated again if one lies outside.
        base: the index base that the file is read with.
        swap: whether the user said that the file holds target-source links.
        role: ``gold`` or ``hyp``, for the option names in messages.
        texts: the lengths of the sentences.
    """
    lengths = list(zip(texts.source.tolist(), texts.target.tolist()))
    outside = [
        (n, *link, height, width)
        for n, (sentence, (height, width)) in enumerate(zip(sentences, lengths))
        for link in sorted(sentence.possible)
        if link[0] >= height or link[1] >= width
    ]
    if not outside:
        return
    every = [(*link, *size) for sentence, size in zip(sentences, lengths) for link in sentence.possible]
    if not any(i >= width or j >= height for i, j, height, width in every):
        advice = f"with source and target exchanged all links are inside; {swap_advice(role, swap)}"
    elif base == 0 and all(0 < i <= height and 0 < j <= width for i, j, height, width in every):
        advice = f"read as 1-based all links are inside; give --{role}-base 1"
    else:
        advice = "give the texts that the alignment was made from, with the same tokenisation"
    n, i, j, height, width = outside[0]
    if swap:
        i, j = j, i
    raise InputError(
        f"{file.where(n)}: link {i + base}-{j + base} is outside its sentence pair, which has {height} words in "
        f"{texts.source_name} and {width} in {texts.target_name}; {len(outside)} of {file.possible} links are outside, "
        f"read as {base}-based; {advice}"
    )


def swap_advice(role: str, swap: bool) -> str:
    """The advice for a file whose links have the other direction."""
    if role == "hyp":  # no option exchanges hypotheses
        return "exchange the hypothesis with align-eval convert --from-swap --to pharaoh"
    return f"omit --{role}-swap" if swap else f"give --{role}-swap"
