"""Words with BIO labels as lines, CoNLL 2002: word, tab, label; blank lines between sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from alignment_eval.errors import InputError, shown
from alignment_eval.transfer.labels import check_label


class LabelledSentence(NamedTuple):
    """The words of a sentence, the BIO label of each, and the line of its first word, from 1."""

    words: list[str]
    labels: list[str]
    line: int


def parse_conll(lines: Iterable[tuple[int, bytes]], name: str) -> Iterator[LabelledSentence]:
    """The sentences of a file; blank lines in a row separate as one does.

    Args:
        lines: number of each line, from 1, and the line in UTF-8 without its end.
        name: the file, for messages.
    """
    words: list[str] = []
    labels: list[str] = []
    first = 0
    for number, line in lines:
        if not line.strip():
            if words:
                yield LabelledSentence(words, labels, first)
                words, labels = [], []
            continue
        word, label = _word_and_label(line.decode(), f"{name}:{number}")
        first = first if words else number
        try:
            check_label(label, labels[-1] if labels else "O")
        except InputError as error:
            raise InputError(f"{name}:{number}: {error}") from None
        words.append(word)
        labels.append(label)
    if words:
        yield LabelledSentence(words, labels, first)


def _word_and_label(line: str, place: str) -> tuple[str, str]:
    columns = line.split("\t")
    if len(columns) != 2:
        raise InputError(
            f"{place}: {len(columns) - 1} tabs in {shown(line)}: expected a word, one tab and a label; of more columns "
            f"choose two with cut -f"
        )
    if len(columns[0].encode().split()) != 1 or len(columns[1].encode().split()) != 1:
        raise InputError(f"{place}: found {shown(line)}: expected one word, one tab and one label, without spaces")
    return columns[0].strip(" "), columns[1].strip(" ")


def format_conll(words: Sequence[str], labels: Sequence[str]) -> Iterator[str]:
    """The lines of one sentence, a blank line at the end."""
    yield from map("\t".join, zip(words, labels))
    yield ""
