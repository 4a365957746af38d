"""Words with labels of spans in columns, as CoNLL's tasks have them; blank lines between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from alignment_eval.errors import InputError, shown
from alignment_eval.transfer.labels import SCHEMES, Span, labels_of, mismatch

_LABEL = re.compile(rb"O|[BIESLU]-\S+")
_DOCUMENT = b"-DOCSTART-"


class LabelledSentence(NamedTuple):
    """The words of a sentence, the label of each, and the line of its first word, from 1."""

    words: list[str]
    labels: list[str]
    line: int


def parse_conll(lines: Iterable[tuple[int, bytes]], name: str, column: int | None = None) -> Iterator[LabelledSentence]:
    """The sentences of a file; blank lines in a row separate as one does.

    Lines of -DOCSTART- are skipped, and so are comments: lines before the first word of a sentence that begin with #
    and have no label.

    Args:
        lines: number of each line, from 1, and the line in UTF-8 without its end.
        name: the file, for messages.
        column: that of the labels, from 1, whitespace between columns; the words are in the first.  None: the second,
            and there is no third.
    """
    words: list[str] = []
    labels: list[str] = []
    first = 0
    for number, line in lines:
        columns = line.split()
        if not columns:
            if words:
                yield LabelledSentence(words, labels, first)
                words, labels = [], []
            continue
        label = columns[(column or 2) - 1 :][:1]
        if columns[0] == _DOCUMENT or (
            line.startswith(b"#") and not words and not (label and _LABEL.fullmatch(label[0]))
        ):
            continue
        if not label or (column is None and len(columns) > 2):
            found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            raise InputError(
                f"{name}:{number}: {found} in {shown(line.decode())}: expected a word and a label in column "
                f"{column or 2}; name the column of the labels by --column"
            )
        if not _LABEL.fullmatch(label[0]):
            raise InputError(
                f"{name}:{number}: label {shown(label[0].decode())}: expected O, or a type behind one of B-, I-, E-, "
                f"S-, L-, U-; name the column of the labels by --column"
            )
        first = first if words else number
        words.append(columns[0].decode())
        labels.append(label[0].decode())
    if words:
        yield LabelledSentence(words, labels, first)


def scheme_of(sentences: Iterable[LabelledSentence], name: str) -> str:
    """The scheme of :data:`~alignment_eval.transfer.labels.SCHEMES` that the labels of the file ``name`` follow."""
    left = list(SCHEMES)
    for sentence in sentences:
        fitting = [scheme for scheme in left if mismatch(sentence.labels, scheme) is None]
        if not fitting:
            places = {scheme: mismatch(sentence.labels, scheme) or (0, "") for scheme in left}
            nearest = max(left, key=lambda scheme: places[scheme][0])
            n, expected = places[nearest]
            raise InputError(
                f"{name}:{sentence.line + n}: label {shown(sentence.labels[n])} after "
                f"{shown(sentence.labels[n - 1] if n else 'O')}: expected {expected}, as in the labels so far "
                f"({nearest.upper()}); give one of the schemes {', '.join(SCHEMES).upper()}"
            )
        left = fitting
    return left[0]


def format_conll(words: Sequence[str], spans: Iterable[Span | None], scheme: str) -> Iterator[str]:
    """The lines of one sentence, a blank line at the end."""
    yield from map("\t".join, zip(words, labels_of(spans, len(words), scheme)))
    yield ""
