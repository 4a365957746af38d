"""Files of labels: words with labels, or texts with spans of characters; and how their words are found.

Files of labels have columns, as CoNLL's tasks have them, a word and its label a line and blank lines between sentences;
or they are JSON lines with spans of characters: ``{"text": …, "spans": [[start, end, label], …]}``, or SQuAD's
``{"context": …, "answers": {"text": [answer, …], "answer_start": [start, …]}}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from alignment_eval.errors import InputError, shown
from alignment_eval.files import is_stream
from alignment_eval.maps.sentence import Span, is_punctuation
from alignment_eval.reading import TextFile
from alignment_eval.transfer.labels import SCHEMES, LabelSpan, WeightedLinks, mismatch, spans_of
from alignment_eval.transfer.units import character_spans, is_unspaced

_LABEL = re.compile(rb"O|[BIESLU]-\S+")
_DOCUMENT = b"-DOCSTART-"
#: Words, as :func:`alignment_eval.reading.token_lines` cuts them.
_WORD = re.compile(r"[^ \t\n\r\v\f]+")
#: The scheme of labels of JSON lines.
CHARACTERS = "characters"
#: What words are: those that whitespace separates, or also the characters of scripts without spaces.
WORDS: dict[str, Callable[[str], list[Span]]] = {
    "whitespace": lambda text: [found.span() for found in _WORD.finditer(text)],
    "characters": character_spans,
}
#: A word of a script without spaces has no mark of sentences behind it, and at most so many characters.
_OF_SENTENCES, _LONGEST_WORD = frozenset("。！？，、；：｡､.!?,;:"), 12


class LabelledSentence(NamedTuple):
    """The words of a sentence, the label of each, and the line of its first word, from 1."""

    words: list[str]
    labels: list[str]
    line: int


class LabelledText(NamedTuple):
    """A sentence with labelled spans."""

    words: list[str]  #: its words
    groups: list[list[LabelSpan]]  #: spans of the words; those of a group share no word
    line: int  #: its line in the file, from 1
    row: dict[str, Any] | None = None  #: the row of JSON; None for columns
    quoted: Sequence[str] = ()  #: what each span says, letter by letter; empty for columns
    parts: int = 0  #: how many spans are a part of a word


class AlignedLine(NamedTuple):
    """A line of norm-align's JSON: source and target, the words of each by character, and their links."""

    texts: tuple[str, str]
    spans: tuple[list[Span], list[Span]]
    links: WeightedLinks


def read_aligned_lines(path: str) -> list[AlignedLine] | None:
    """The lines of a file of norm-align's JSON; None: it is of another kind."""
    if is_stream(path) or not re.match(rb'\s*\{\s*"', next(iter(TextFile(path)))):
        return None
    found = []
    for number, line in TextFile(path).lines():
        try:
            row = json.loads(line)
            source, target = ([(int(a), int(b)) for a, b in row[f"{side}_spans"]] for side in ("source", "target"))
            links = [(int(i), int(j)) for i, j in row["links"]]
            weighted = links if row["confidences"] is None else dict(zip(links, row["confidences"], strict=True))
            found.append(AlignedLine((row["source"], row["target"]), (source, target), weighted))
        except (ValueError, TypeError, KeyError):
            raise InputError(f"{path}:{number}: {shown(line.decode())}: expected a line of norm-align's JSON") from None
    return found


class Cut:
    """Finds the words of a line: by a rule of :data:`WORDS`, or as they were aligned."""

    def __init__(self, rule: str, aligned: Sequence[AlignedLine] | None = None) -> None:
        self._aligned = aligned
        self._find = WORDS[rule]
        #: Words are what whitespace separates.
        self.at_spaces = rule == "whitespace" and aligned is None

    def __call__(self, side: int, number: int, text: str, where: str) -> list[Span]:
        """The words, by character, of the line with this number, from 0, of source (0) or target (1)."""
        if self._aligned is not None:
            if number >= len(self._aligned):
                raise InputError(f"{where}: the links end before this line: expected those of each line")
            if (aligned := self._aligned[number].texts[side]) != text:
                raise InputError(f"{where}: {shown(text)}, but the links are of {shown(aligned)}: expected that text")
            return self._aligned[number].spans[side]
        spans = self._find(text)
        for start, end in spans if self.at_spaces else ():
            places = [at for at in range(start, end) if is_unspaced(text[at])]
            if len(places) > _LONGEST_WORD or any(text[at + 1 : end][:1] in _OF_SENTENCES for at in places[:-1]):
                raise unspaced(where, text[start:end])
        return spans

    def lines(self, path: str) -> Iterator[tuple[str, list[Span]]]:
        """The lines of the target, with their words."""
        for number, line in TextFile(path).lines():
            yield line.decode(), self(1, number - 1, line.decode(), f"{path}:{number}")


def unspaced(where: str, word: str) -> InputError:
    """That a text has no spaces between words."""
    return InputError(
        f"{where}: {shown(word)} has no spaces between words: give --words characters with links that count characters "
        f"(norm-align --words characters), links with their words (norm-align -o FILE.jsonl), or words with spaces"
    )


def read_labels(path: str, column: int | None, cut: Cut) -> tuple[str, list[LabelledText]]:
    """The scheme of the labels of a file, and its sentences."""
    file = TextFile(path, expected="lines with a word and a label, or JSON lines with text and spans")
    if re.match(rb'\s*\{\s*"', next(iter(file))):
        return CHARACTERS, list(parse_json(file.lines(), path, cut))
    sentences = list(parse_conll(file.lines(), path, column))
    scheme = scheme_of(sentences, path)
    return scheme, [LabelledText(words, [spans_of(labels, scheme)], line) for words, labels, line in sentences]


def parse_conll(lines: Iterable[tuple[int, bytes]], name: str, column: int | None = None) -> Iterator[LabelledSentence]:
    """The sentences of the numbered lines of the file ``name``; blank lines in a row separate as one does.

    Lines of -DOCSTART- are skipped, and so are comments: lines before the first word of a sentence that begin with #
    and have no label.  ``column`` is that of the labels, from 1; None: the second, and there is no third.
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
        misfits = {scheme: found for scheme in left if (found := mismatch(sentence.labels, scheme)) is not None}
        if len(misfits) == len(left):
            nearest, (n, expected) = max(misfits.items(), key=lambda misfit: misfit[1][0])
            raise InputError(
                f"{name}:{sentence.line + n}: label {shown(sentence.labels[n])} after "
                f"{shown(sentence.labels[n - 1] if n else 'O')}: expected {expected}, as in the labels so far "
                f"({nearest.upper()}); give one of the schemes {', '.join(SCHEMES).upper()}"
            )
        left = [scheme for scheme in left if scheme not in misfits]
    return left[0]


def parse_json(lines: Iterable[tuple[int, bytes]], name: str, cut: Cut) -> Iterator[LabelledText]:
    """The texts of a file; a span of characters is one of the words that it touches.  Arguments as for parse_conll.

    Answers may overlap, so each is a group of its own.
    """
    for sentence, (number, line) in enumerate((number, line) for number, line in lines if line.strip()):
        try:
            row = json.loads(line)
            if is_squad := "answers" in row:
                text, answers = row["context"], row["answers"]
                starts = zip(answers["text"], answers["answer_start"], strict=True)
                given = [(int(start), int(start) + len(answer), "") for answer, start in starts]
            else:
                text = row["text"]
                given = sorted((int(start), int(end), str(label)) for start, end, label in row["spans"])
            if not isinstance(text, str):
                raise TypeError
        except (ValueError, TypeError, KeyError):
            raise InputError(
                f'{name}:{number}: {shown(line.decode())}: expected {{"text": TEXT, "spans": [[START, END, LABEL], …]}}'
                f' or SQuAD\'s {{"context": TEXT, "answers": {{"text": […], "answer_start": […]}}}}'
            ) from None
        places = cut(0, sentence, text, f"{name}:{number}")
        spans: list[LabelSpan] = []
        parts = 0
        for start, end, label in given:
            touched = [n for n, (first, last) in enumerate(places) if first < end and start < last]
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
            spans.append(LabelSpan(touched[0], touched[-1] + 1, label))
            first, last = places[touched[0]][0], places[touched[-1]][1]
            beside = text[first:start][-1:], text[end:last][:1]
            if cut.at_spaces and any(char.isalnum() and is_unspaced(char) for char in beside):
                raise unspaced(f"{name}:{number}: span {start} to {end} is a part of a word", text[first:last])
            parts += any(map(str.isalnum, text[first:start] + text[end:last]))
        groups = [[span] for span in spans] if is_squad else [spans]
        quoted = [text[start:end] for start, end, _ in given]
        yield LabelledText([text[first:last] for first, last in places], groups, number, row, quoted, parts)


def format_json(
    text: str, places: Sequence[Span], spans: Iterable[LabelSpan | None], row: dict[str, Any], quoted: Sequence[str]
) -> str:
    """The line of a text with words at ``places``, and the counterparts of the spans of ``row``, None for one without.

    Punctuation at the ends of a span is left out, unless its source, in ``quoted``, has some at that end.
    """
    found = []
    for span, source in zip(spans, quoted):
        if span is not None:
            start, end = places[span.start][0], places[span.end - 1][1]
            while end - start > 1 and is_punctuation(text[start]) and not is_punctuation(source[0]):
                start += 1
            while end - start > 1 and is_punctuation(text[end - 1]) and not is_punctuation(source[-1]):
                end -= 1
            found.append((start, end, span.type))
    if "answers" not in row:
        return json.dumps(row | {"text": text, "spans": sorted(found)}, ensure_ascii=False)
    answers = {"text": [text[start:end] for start, end, _ in found], "answer_start": [start for start, *_ in found]}
    return json.dumps(row | {"context": text, "answers": answers}, ensure_ascii=False)
