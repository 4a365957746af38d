"""Reads alignment files (docs/formats.md), and checks that they are read as they were meant.

A wrong index base or direction raises no error, it only gives a wrong number (GIZA++'s AER of 21 becomes 63 or 82).
So a file is read once to count and check what it holds, and then as a stream as often as it is needed.  Only files
whose lines are not in the order of the sentences (NAACL, fairseq, GIZA) are held in memory while they are parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, warn_user
from alignment_eval.links.formats import FORMATS, GoldSentence, Links, Tokens, detect_format
from alignment_eval.reading import Size, TextFile, check_sizes

IntArray = NDArray[np.int64]
Warn = Callable[[str], None]

#: If at least this many sentences use index 1 and none uses index 0, reading the file as 0-based is an error.
CONTRADICTED = 5
#: With ``auto``, a file is 1-based if at least this many sentences use index 1 and none uses index 0.
DECIDED = 20
#: How the base of a file may be stated.
BASES = ("0", "1", "auto", "0-unused")
_NOTHING = GoldSentence(frozenset())


@dataclass(frozen=True)
class ReadOptions:
    """How to read an alignment file."""

    #: ``0``, ``1``, ``auto`` (detected from the data, with a warning) or ``0-unused`` (0, even if no link uses index
    #: 0).  None: as the format has it, such as 1 of NAACL; else 0 for a hypothesis and ``auto`` for gold.
    base: str | None = None
    swap: bool = False  #: the file has target-source links; exchange them
    allow_possible: bool = False  #: accept possible links of a hypothesis as links
    #: how a message says to ``give`` or ``omit`` one of these options, such as ``base 1`` or ``swap``
    advise: Callable[[str, str], str] = "{} {}".format
    warn: Warn = warn_user  #: called with each warning


AS_IT_STANDS = ReadOptions()


@dataclass(frozen=True, eq=False)
class Texts:
    """The number of tokens on each line, [sentences] for each side, and the names of the files."""

    source_name: str
    source: IntArray
    target_name: str
    target: IntArray

    def __post_init__(self) -> None:
        target = Size(self.target_name, len(self.target), "lines", not self.target[-1:].all())
        check_sizes(self.size, target)

    @property
    def size(self) -> Size:
        """How many lines each side has."""
        return Size(self.source_name, len(self.source), "lines", not self.source[-1:].all())

    @property
    def exchanged(self) -> Texts:
        """The same texts with source and target exchanged."""
        return Texts(self.target_name, self.target, self.source_name, self.source)


def token_counts(path: str | Path) -> IntArray:
    """The number of tokens on each line of a tokenised text, [lines]."""
    return np.fromiter((len(line.split()) for _, line in TextFile(path).lines()), dtype=np.int64)


def read_texts(source: str | Path, target: str | Path) -> Texts:
    """Count the tokens of the two texts."""
    return Texts(str(source), token_counts(source), str(target), token_counts(target))


class AlignmentFile:
    """An alignment file in one of :data:`~alignment_eval.links.formats.FORMATS`, read once and checked.

    Iterating reads its sentences, with links that count from 0, source-target; ``len`` is their number.  The links of
    a hypothesis are those of :meth:`each_links`.

    Attributes:
        name, format, hash: of the file.
        base, swap, advise: how it is read, and how a message says to read it.
        sure: the number of sure links.
        possible: the number of possible links; the ``sure`` ones are among them.
        linked: the number of sentences with links.
        zero: the first sentence that uses index 0 in the file; None: no sentence does.
        ones: the number of sentences that use index 1, up to ``zero``.
        scored: links have confidences.
    """

    def __init__(self, path: str | Path, options: ReadOptions, gold: bool = False, texts: Texts | None = None) -> None:
        self._source = TextFile(path, "one line per sentence (a blank line: no links)", keep=True)
        self.name, self.swap, self.advise = self._source.name, options.swap, options.advise
        self._options = options
        self.format = detect_format(next(iter(self._source)), gold)
        self._is = FORMATS[self.format]
        if gold and not self._is.holds_gold:
            raise InputError(
                f"{self.name}: the file is in the format {self.format}, but gold must be in one of the formats "
                f"{', '.join(name for name, known in FORMATS.items() if known.holds_gold)}; check that gold and "
                f"hypothesis are not exchanged"
            )
        self.sure = self.possible = self.linked = self.ones = self._written = 0
        self.zero: int | None = None
        self.scored = self._blank_end = False
        for sentence in self._parsed(Tokens()):
            self._count(sentence)
        self.hash, self._sentences = self._source.hash, self._written
        if texts is not None:
            self.fit(texts.size)
        if self._is.is_open and len(self) == self._written:
            self._warn_of_gaps()
        self.base = self._find_base(str(self._is.bases[0]) if self._is.bases else "auto" if gold else "0")
        if texts is not None:
            self._check_range(texts)

    def __len__(self) -> int:
        return self._sentences

    def __iter__(self) -> Iterator[GoldSentence]:
        return chain(self._parsed(Tokens(self.base, self.swap)), repeat(_NOTHING, len(self) - self._written))

    def each_links(self) -> Iterator[Links]:
        """The links of each sentence, possible ones too."""
        return (sentence.possible for sentence in self)

    @property
    def size(self) -> Size:
        """How many sentences it has."""
        unit = f"sentences{f' up to its last link ({self.format.upper()}: give the texts)' * self._is.is_open}"
        return Size(self.name, len(self), unit, self._blank_end)

    @property
    def bases(self) -> frozenset[int]:
        """The index bases that the indices allow."""
        if self.zero is not None:
            return frozenset({0})
        return frozenset({1} if self.ones >= CONTRADICTED else {0, 1})

    def fit(self, text: Size) -> None:
        """Check that the file is as long as its text; an open one is filled up."""
        if self._is.is_open and len(self) < text.sentences:
            self._sentences = text.sentences
            self._warn_of_gaps()
        check_sizes(self.size, text)

    def where(self, sentence: int) -> str:
        """The place of a sentence (counted from 0), for messages."""
        if self._is.first is None:
            return f"{self.name}:{sentence + 1}"
        return f"{self.name}: sentence {sentence + self._is.first}"

    def _parsed(self, tokens: Tokens) -> Iterator[GoldSentence]:
        return self._is.parse(self._source.lines(), self.name, tokens, self._options.allow_possible)

    def _count(self, sentence: GoldSentence) -> None:
        links = sentence.possible
        self.sure += len(sentence.sure)
        self.possible += len(links)
        self.linked += bool(links)
        self.scored = self.scored or sentence.confidence is not None
        if self.zero is None:
            indices = set(chain.from_iterable(links))
            self.ones += 1 in indices
            if 0 in indices:
                self.zero = self._written
        self._written += 1
        self._blank_end = not links and self._is.first is None

    def _warn_of_gaps(self) -> None:
        """Warn of sentences without a line in a file whose lines are links, not sentences."""
        if missing := len(self) - self.linked:
            self._options.warn(
                f"{self.name}: {missing} of {len(self)} sentences have no line; they are read as sentences without "
                f"links"
            )

    def _find_base(self, default: str) -> int:
        """The index base, 0 or 1: as the options state it, unless the indices contradict that.

        An index 0 proves base 0.  Without one, :data:`DECIDED` sentences that use index 1 are taken as proof of base 1.
        """
        stated, warn, give = self._options.base, self._options.warn, partial(self.advise, "give")
        wanted, name = stated or default, self.name
        if self.zero is not None:
            first = self.where(self.zero)
            if wanted == "1":
                advice = f"{give('base 0')}; if 0 stands for NULL, remove those links"
                if self._is.is_open:  # naacl: a line is a link, and some files have NULL
                    numbered = ((number, line.split()[1:3]) for number, line in self._source.lines())
                    first = f"{name}:{next(number for number, pair in numbered if 0 in map(int, pair))}"
                    advice = f"if 0 stands for NULL, remove those links (awk '$2 && $3'); else {give('base 0')}"
                raise InputError(f"{first}: the file uses index 0, but it is read as 1-based; {advice}")
            if wanted == "auto":
                warn(
                    f"{name}: read as 0-based, because it uses index 0 (first at {first}); {give('base 0')} to be sure"
                )
            return 0
        if not self.possible or wanted in ("1", "0-unused"):
            return int(wanted == "1")
        seen = f"{self.ones} sentences use index 1 and none uses index 0"
        if wanted == "auto":
            if self.ones < DECIDED:
                raise InputError(
                    f"{name}: cannot detect the index base, because no index is 0 and only {self.ones} sentences use "
                    f"index 1; {give('base 0')} or {give('base 1')}"
                )
            warn(f"{name}: read as 1-based, because {seen}; {give('base 1')} to be sure")
            return 1
        if self.ones >= CONTRADICTED:
            raise InputError(
                f"{name}: the file is read as 0-based, but {seen}; {give('base 1')}; or {give('base 0-unused')} if the "
                f"file really is 0-based"
            )
        if stated is None or self.linked >= DECIDED:
            warn(
                f"{name}: read as 0-based, but none of its {self.linked} sentences with links uses index 0; "
                f"if it is 1-based, {give('base 1')}"
            )
        return 0

    def _check_range(self, texts: Texts) -> None:
        """Check that every link lies inside its sentence pair; the file is read again if one lies outside."""
        lengths = list(zip(texts.source.tolist(), texts.target.tolist()))
        outside = [
            (n, *link, height, width)
            for n, (sentence, (height, width)) in enumerate(zip(self, lengths))
            for link in sorted(sentence.possible)
            if link[0] >= height or link[1] >= width
        ]
        if not outside:
            return
        links = [(*link, *size) for sentence, size in zip(self, lengths) for link in sentence.possible]
        if not any(i >= width or j >= height for i, j, height, width in links):
            advice = self.advise("omit" if self.swap else "give", "swap")
            advice = f"with source and target exchanged all links are inside: exchange the two texts, or {advice}"
        elif self.base == 0 and all(0 < i <= height and 0 < j <= width for i, j, height, width in links):
            advice = f"read as 1-based all links are inside; {self.advise('give', 'base 1')}"
        else:
            advice = (
                "give the texts that it was made from, with the same tokenisation (norm-align --tokens-out); "
                "or make links of words if they are of subwords (align-eval convert --from-subwords auto)"
            )
        n, i, j, height, width = outside[0]
        if self.swap:
            i, j = j, i
        raise InputError(
            f"{self.where(n)}: link {i + self.base}-{j + self.base} is outside its sentence pair, which has {height} "
            f"words in {texts.source_name} and {width} in {texts.target_name}; {len(outside)} of {self.possible} "
            f"links are outside, read as {self.base}-based; {advice}"
        )


def read_gold(path: str | Path, options: ReadOptions = AS_IT_STANDS, texts: Texts | None = None) -> AlignmentFile:
    """Read gold alignments; ``-`` is standard input.  Every index is checked against ``texts``."""
    return AlignmentFile(path, replace(options, allow_possible=True), True, texts)


def read_hypothesis(path: str | Path, options: ReadOptions = AS_IT_STANDS, texts: Texts | None = None) -> AlignmentFile:
    """Read word alignments to be scored, as :func:`read_gold` reads gold."""
    read = AlignmentFile(path, options, False, texts)
    if FORMATS[read.format].of_tokens and texts is None:
        options.warn(
            f"{read.name}: {read.format} links tokens, which are read as words here; if they are subwords, make links "
            f"of words: align-eval convert --from-subwords auto --source FILE --target FILE"
        )
    return read
