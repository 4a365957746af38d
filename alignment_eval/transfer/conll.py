"""Files of labelled words: columns as CoNLL's tasks have them, or JSON lines with spans of characters.

Columns: a word and its label a line, blank lines between sentences.  JSON lines: ``{"text": …, "spans": [[start, end,
label], …]}``, or SQuAD's ``{"context": …, "answers": {"text": [answer, …], "answer_start": [start, …]}}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from alignment_eval.errors import InputError, shown
from alignment_eval.maps.subwords import is_punctuation
from alignment_eval.transfer.labels import SCHEMES, Span, labels_of, mismatch

_LABEL = re.compile(rb"O|[BIESLU]-\S+")
_DOCUMENT = b"-DOCSTART-"
#: Words, as :func:`alignment_eval.files.token_lines` cuts them.
_WORD = re.compile(r"[^ \t\n\r\v\f]+")


class LabelledSentence(NamedTuple):
    """The words of a sentence, the label of each, and the line of its first word, from 1."""

    words: list[str]
    labels: list[str]
    line: int


class LabelledText(NamedTuple):
    """A sentence with labelled spans.

    Attributes:
        words: its words.
        groups: spans of the words; those of a group share no word.
        line: its line in the file, from 1.
        row: the row of JSON; None for columns.
        quoted: what each span says, letter by letter; empty for columns.
    """

    words: list[str]
    groups: list[list[Span]]
    line: int
    row: dict[str, Any] | None = None
    quoted: Sequence[str] = ()


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


def parse_json(lines: Iterable[tuple[int, bytes]], name: str) -> Iterator[LabelledText]:
    """The texts of a file; a span of characters is one of the words that it touches.  Arguments as for parse_conll.

    Answers may overlap, so each is a group of its own.
    """
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if is_squad := "answers" in row:
                text, answers = row["context"], row["answers"]
                starts = zip(answers["text"], answers["answer_start"], strict=True)
                given = [(int(start), int(start) + len(answer), "") for answer, start in starts]
            else:
                text, given = (
                    row["text"],
                    sorted((int(start), int(end), str(label)) for start, end, label in row["spans"]),
                )
            words = list(_WORD.finditer(text))
        except (ValueError, TypeError, KeyError):
            raise InputError(
                f'{name}:{number}: {shown(line.decode())}: expected {{"text": TEXT, "spans": [[START, END, LABEL], …]}}'
                f' or SQuAD\'s {{"context": TEXT, "answers": {{"text": […], "answer_start": […]}}}}'
            ) from None
        spans: list[Span] = []
        for start, end, label in given:
            touched = [n for n, word in enumerate(words) if word.start() < end and start < word.end()]
            if not 0 <= start < end <= len(text) or not touched:
                raise InputError(f"{name}:{number}: span {start} to {end} has no words of {len(text)} characters")
            if is_squad and text[start:end] not in row["answers"]["text"]:
                raise InputError(
                    f"{name}:{number}: the answer at {start} is {shown(text[start:end])} in the context: expected one "
                    f"of the answers; count characters from 0"
                )
            if not is_squad and spans and touched[0] < spans[-1].end:
                raise InputError(
                    f"{name}:{number}: span {start} to {end} shares a word with the one before: expected spans of "
                    f"different words; give one of the two in a file of its own"
                )
            spans.append(Span(touched[0], touched[-1] + 1, label))
        groups = [[span] for span in spans] if is_squad else [spans]
        yield LabelledText(
            [word[0] for word in words], groups, number, row, [text[start:end] for start, end, _ in given]
        )


def format_json(text: str, spans: Iterable[Span | None], row: dict[str, Any], quoted: Sequence[str]) -> str:
    """The line of a text and the counterparts of the spans of ``row``, None for one without.

    Punctuation at the ends of a span is left out, unless its source, in ``quoted``, has some at that end.
    """
    words = list(_WORD.finditer(text))
    found = []
    for span, source in zip(spans, quoted):
        if span is not None:
            start, end = words[span.start].start(), words[span.end - 1].end()
            while end - start > 1 and is_punctuation(text[start]) and not is_punctuation(source[0]):
                start += 1
            while end - start > 1 and is_punctuation(text[end - 1]) and not is_punctuation(source[-1]):
                end -= 1
            found.append((start, end, span.type))
    if "answers" in row:
        answers = {"text": [text[start:end] for start, end, _ in found], "answer_start": [start for start, *_ in found]}
        row = row | {"context": text, "answers": answers}
    else:
        row = row | {"text": text, "spans": sorted(found)}
    return json.dumps(row, ensure_ascii=False)
