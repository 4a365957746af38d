"""The texts of a gold set: encodings, the markup of the WPT shared tasks, and what makes a word."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from text_files import raw_lines, text_lines

from alignment_eval.errors import InputError

_MARK = re.compile(r"\s*<s\s+snum=")
_MARKED = re.compile(r"\s*<s\s+snum=\"?(\d+)\"?\s*>(.*)</s>\s*")


@dataclass(frozen=True)
class Text:
    """One side of a gold set.

    ``numbers`` are the sentences' numbers in the WPT markup, else 1, 2, …; ``lines`` their line numbers.
    """

    path: Path
    sentences: list[str]
    numbers: list[int]
    lines: list[int]

    @property
    def lengths(self) -> list[int]:
        """Words of each sentence."""
        return [len(sentence.split()) for sentence in self.sentences]


def read_text(path: Path, encoding: str, lowercase: bool) -> Text:
    """Read a text, plain or in WPT markup; words do not change, and one space separates them.

    Raises:
        InputError: the text cannot be read or decoded, its markup is broken, or a word contains white space.
    """
    rows = list(text_lines(path, detect_encoding(path) if encoding == "auto" else encoding))
    if any(_MARK.match(row) for row in rows):
        text = _read_marked(path, rows)
    else:
        counted = list(range(1, len(rows) + 1))
        text = Text(path, rows, counted, counted)
    sentences = [" ".join(_words(path, line, row)) for line, row in zip(text.lines, text.sentences)]
    return Text(path, [s.lower() for s in sentences] if lowercase else sentences, text.numbers, text.lines)


def detect_encoding(path: Path) -> str:
    """UTF-8 if every line is UTF-8; else latin1, unless a byte does not occur in latin1 text.

    Raises:
        InputError: the text is neither.
    """
    try:
        for line in raw_lines(path):
            line.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    for number, line in enumerate(raw_lines(path), 1):
        strange = next((byte for byte in line if 0x7F <= byte < 0xA0), None)
        if strange is not None:
            raise InputError(
                f"{path}:{number}: byte 0x{strange:02x} occurs neither in UTF-8 nor in latin1 text; give the encoding, "
                f"such as --encoding cp1252"
            )
    print(f"{path}: not UTF-8, so it is read as latin1 (give --encoding if it is another)", file=sys.stderr)
    return "latin1"


def check_parallel(source: Text, target: Text) -> None:
    """Raise InputError unless both texts have the same sentence numbers in the same order."""
    if len(source.sentences) != len(target.sentences):
        raise InputError(
            f"{target.path} has {len(target.sentences)} sentences, but {source.path} has {len(source.sentences)}; "
            f"check whether a blank line is missing in one of them"
        )
    for number, other, line in zip(target.numbers, source.numbers, target.lines):
        if number != other:
            raise InputError(
                f"{target.path}:{line}: the sentence has number {number}, but number {other} in {source.path}; both "
                f"files must have the same numbers in the same order"
            )


def _read_marked(path: Path, rows: Sequence[str]) -> Text:
    """The sentences in WPT markup; blank lines between them are ignored."""
    sentences: dict[int, str] = {}
    lines: list[int] = []
    for line, row in enumerate(rows, 1):
        if not row.strip():
            continue
        match = _MARKED.fullmatch(row)
        if match is None:
            raise InputError(
                f"{path}:{line}: expected <s snum=NUMBER> text </s> on one line, like other lines of the file, found "
                f"{row.strip()[:40]!r}; correct the line"
            )
        number = int(match[1])
        if number in sentences:
            raise InputError(f"{path}:{line}: duplicate sentence number {number}; give each sentence its own number")
        sentences[number] = match[2]
        lines.append(line)
    return Text(path, list(sentences.values()), list(sentences), lines)


def _words(path: Path, line: int, sentence: str) -> list[str]:
    """The words of a sentence, split at blanks and tabs only.

    fairseq splits at every Unicode space: a word with, for example, a no-break space would become two words, and every
    later link would point to the wrong word.
    """
    words = [word for word in re.split(r"[ \t]+", sentence) if word]
    for position, word in enumerate(words, 1):
        space = re.search(r"\s", word)
        if space is not None:
            raise InputError(
                f"{path}:{line}: word {position} contains the space character U+{ord(space[0]):04X}, at which fairseq "
                f"would split it; replace the character"
            )
    return words
