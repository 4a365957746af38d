"""Reads and checks alignment files: Pharaoh, talp, NAACL/WPT, fairseq, GIZA and others (docs/formats.md).

A file is read once to count and check what it holds, and then as a stream as often as it is needed.  Only files whose
lines are not in the order of the sentences (NAACL, fairseq, GIZA) are held in memory while they are parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path

from alignment_eval.errors import InputError, warn_on_stderr
from alignment_eval.links.checks import Contents, Texts, Warn, check_range, decide_base, last_line_blank
from alignment_eval.links.parse import GOLD_FORMATS, HYPOTHESIS_FORMATS, TOOL_FORMATS, Tokens, detect_format, parse
from alignment_eval.links.sets import GoldSentence, Links
from alignment_eval.links.text import TextFile, token_counts

_NOTHING = GoldSentence(frozenset())


@dataclass(frozen=True)
class ReadOptions:
    """How to read an alignment file.

    Attributes:
        base: ``0``, ``1``, ``auto`` (detected from the data, with a warning) or ``0-unused`` (0, even if no link uses
            index 0).  None: 1 for NAACL and GIZA, which are defined so; else 0 for a hypothesis and ``auto`` for gold.
        swap: the file has target-source links; exchange them.
        allow_possible: accept possible links of a hypothesis as links.
    """

    base: str | None = None
    swap: bool = False
    allow_possible: bool = False


@dataclass(frozen=True, eq=False)
class AlignmentFile:
    """An alignment file, read and checked.

    Iterating reads its sentences, with links that count from 0, source-target; ``len`` is their number.  The links of
    a hypothesis are those of :meth:`each_links`.
    """

    file: Contents
    base: int
    swap: bool
    sentences: int
    _source: TextFile
    _allow_possible: bool

    def __len__(self) -> int:
        return self.sentences

    def __iter__(self) -> Iterator[GoldSentence]:
        tokens = Tokens(self.base, self.swap)
        parsed = parse(self.file.format, self._source.lines(), self.file.name, tokens, self._allow_possible)
        missing = self.sentences - self.file.sentences
        return chain((sentence for sentence, _ in parsed), repeat(_NOTHING, missing))

    def each_links(self) -> Iterator[Links]:
        """The links of each sentence, possible ones too."""
        return (sentence.possible for sentence in self)


def read_gold(
    path: str | Path,
    options: ReadOptions | None = None,
    texts: Texts | None = None,
    warn: Warn = warn_on_stderr,
    role: str = "gold",
) -> AlignmentFile:
    """Read gold alignments.

    Args:
        path: a file, ``-`` for standard input.
        options: how to read it.
        texts: the texts, to check every index against.
        warn: called with each warning, one sentence.
        role: how the names of the options begin that messages advise (``--gold-base``).
    """
    options = replace(options or ReadOptions(), allow_possible=True)
    return _read(path, options, GOLD_FORMATS, "auto", texts, warn, role)


def read_hypothesis(
    path: str | Path,
    options: ReadOptions | None = None,
    texts: Texts | None = None,
    warn: Warn = warn_on_stderr,
    role: str = "hyp",
) -> AlignmentFile:
    """Read word alignments to be scored; arguments and errors as for :func:`read_gold`.

    Messages advise options whose names begin with ``role`` (``--hyp-base``).
    """
    read = _read(path, options or ReadOptions(), (*HYPOTHESIS_FORMATS, *TOOL_FORMATS), "0", texts, warn, role)
    if read.file.format == "fairseq" and texts is None:
        warn(
            f"{read.file.name}: fairseq's A- lines link tokens, which are read as words here; "
            f"give --source and --target to check this, or extract word alignments from records"
        )
    return read


def _read(
    path: str | Path,
    options: ReadOptions,
    formats: tuple[str, ...],
    default_base: str,
    texts: Texts | None,
    warn: Warn,
    role: str,
) -> AlignmentFile:
    """Read a file in one of the ``formats``; the first is that of lines without marks of another format."""
    source = TextFile(path, "one line per sentence (a blank line: no links)", keep=True)
    format = detect_format(next(iter(source))) or formats[0]
    if format not in formats:
        raise InputError(
            f"{source.name}: the file is in the format {format}, but gold must be in one of the formats "
            f"{', '.join(formats)}; check that gold and hypothesis are not exchanged"
        )
    file = Contents(source.name, format)
    for parsed in parse(format, source.lines(), source.name, Tokens(), options.allow_possible):
        file.add(parsed)
    file.hash = source.hash.short
    sentences = file.sentences if texts is None else len(texts.source)
    # a NAACL file does not state its number of sentences
    if file.sentences > sentences or (file.sentences != sentences and format != "naacl"):
        assert texts is not None
        raise InputError(
            f"{file.name}: the file has {file.sentences} sentences, but {texts.source_name} has {sentences} lines; "
            f"check that it is the alignment of this text and that no line is missing"
            + last_line_blank((file.name, file.sentences, file.blank_end), (texts.source_name, sentences, False))
        )
    if format == "naacl":
        warn_of_gaps(file, sentences, warn)
    wanted = options.base or ("1" if format in ("naacl", "giza") else default_base)
    base = decide_base(file, wanted, options.base is not None, role, warn)
    read = AlignmentFile(file, base, options.swap, sentences, source, options.allow_possible)
    if texts is not None:
        check_range(file, read, base, options.swap, role, texts)
    return read


def read_texts(source: str | Path, target: str | Path) -> Texts:
    """Count the tokens of the two texts; errors as for :class:`Texts` and :func:`token_counts`."""
    return Texts(str(source), token_counts(source), str(target), token_counts(target))


def warn_of_gaps(file: Contents, sentences: int, warn: Warn = warn_on_stderr) -> None:
    """Warn of sentences without a line in a NAACL file, whose lines are links, not sentences."""
    if file.linked < sentences:
        missing = sentences - file.linked
        warn(f"{file.name}: {missing} of {sentences} sentences have no line; they are read as sentences without links")
