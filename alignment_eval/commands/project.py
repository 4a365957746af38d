"""``align-eval project``: labels of the source words onto the words of the translation.

Files of labels have columns, as CoNLL's tasks have them, a word and its label a line and blank lines between sentences;
or they are JSON lines with spans of characters: ``{"text": …, "spans": [[start, end, label], …]}``, or SQuAD's
``{"context": …, "answers": {"text": [answer, …], "answer_start": [start, …]}}``.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from alignment_eval.characters import character_spans, is_unspaced
from alignment_eval.command_line import add_output, file_name, positive_integer
from alignment_eval.errors import InputError, UsageError, progress_bar, say, shown, warn_on_stderr
from alignment_eval.files import check_new, is_stream, write_lines
from alignment_eval.links.files import Texts, read_hypothesis
from alignment_eval.maps.sentence import Span, is_punctuation
from alignment_eval.options import add_links_arguments, read_options, reading_fields
from alignment_eval.reading import TextFile, file_hash
from alignment_eval.signature import signature
from alignment_eval.transfer.labels import (
    SCHEMES,
    LabelSpan,
    WeightedLinks,
    labels_of,
    mismatch,
    project_spans,
    spans_of,
)

EPILOG = """\
Example, after make demo:
  align-eval project --labels data/demo/demo.de.conll --links out/demo/both.pharaoh --target-text data/demo/demo.en

A span, such as B-TYPE I-TYPE, becomes one span of target words or none;
how many have none goes to stderr, and so does the signature.
"""

_LABEL = re.compile(rb"O|[BIESLU]-\S+")
_DOCUMENT = b"-DOCSTART-"
#: Words, as :func:`alignment_eval.reading.token_lines` cuts them.
_WORD = re.compile(r"[^ \t\n\r\v\f]+")
#: The scheme of labels of JSON lines.
_CHARACTERS = "characters"
#: What words are: those that whitespace separates, or also the characters of scripts without spaces.
_WORDS: dict[str, Callable[[str], list[Span]]] = {
    "whitespace": lambda text: [found.span() for found in _WORD.finditer(text)],
    "characters": character_spans,
}
#: A word of a script without spaces has no mark of sentences behind it, and at most so many characters.
_OF_SENTENCES, _LONGEST_WORD = frozenset("。！？，、；：｡､.!?,;:"), 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    group.add_argument(
        "--labels",
        required=True,
        type=file_name,
        metavar="FILE",
        help="source words and their labels (BIO, IOB1, BIOES or BILOU) in columns, a blank line between sentences; or "
        'JSON lines {"text": TEXT, "spans": [[START, END, LABEL], …]}, counted in characters, or as SQuAD has them',
    )
    group.add_argument(
        "--column",
        type=positive_integer,
        metavar="N",
        help="column of the labels, from 1; words are in the first (default: 2, the last)",
    )
    add_links_arguments(group, "--links", "links", required=True, metavar="FILE")
    group.add_argument(
        "--target-text",
        required=True,
        type=file_name,
        metavar="FILE",
        help="target words, separated by whitespace, one sentence a line",
    )
    group.add_argument(
        "--words",
        choices=tuple(_WORDS),
        help="what the links count, as norm-align --words has it: what whitespace separates, or each character where a "
        "script has no spaces (default: whitespace; with --links FILE.jsonl of norm-align, the words of that file)",
    )
    add_output(parser.add_argument_group("output"), "target words and their labels", standard=True)


def run(args: argparse.Namespace) -> None:
    check_new(args.output, args.overwrite)
    rows = _aligned_lines(args.links)
    if rows is not None and args.words:
        raise UsageError(f"--words with {args.links}, which has the words: leave it out")
    cut = Cut(args.words or "whitespace", rows)
    scheme, sentences = _read_labels(args.labels, args.column, cut)
    if rows is not None and len(rows) != len(sentences):
        raise InputError(f"{args.links}: {len(rows)} sentences, but {args.labels} has {len(sentences)}")
    for sentence, row in zip(sentences, rows or ()):
        if sentence.words != (words := [row.texts[0][start:end] for start, end in row.spans[0]]):
            raise InputError(
                f"{args.labels}:{sentence.line}: {shown(' '.join(sentence.words))}, but the links are of "
                f"{shown(' '.join(words))}: expected the words that were aligned"
            )
    source = np.array([len(sentence.words) for sentence in sentences])
    target = np.array([len(spans) for _, spans in cut.lines(args.target_text)])
    if scheme != _CHARACTERS and not target.all():
        raise InputError(
            f"{args.target_text}:{int(np.argmin(target)) + 1}: a blank line: expected words, as CoNLL files have no "
            f"sentence without words; remove the pair from all files"
        )
    if len(sentences) != len(target):
        raise InputError(
            f"{args.labels}: {len(sentences)} sentences, but {args.target_text} has {len(target)} lines: expected one "
            f"line a sentence; separate sentences by blank lines"
        )
    links: Iterable[WeightedLinks]
    if rows is None:
        texts = Texts(args.labels, source, args.target_text, target)
        file = read_hypothesis(args.links, read_options(args, "links", allow_possible=True), texts)
        links = (each.possible if each.confidence is None else each.confidence for each in file)
        fields, places = reading_fields("links", file), [file.where(n) for n in range(len(file))]
    else:
        links = (row.links for row in rows)
        fields = {"links": file_hash(args.links), "links_format": "jsonl"}
        places = [f"{args.links}:{number}" for number in range(1, len(rows) + 1)]
    pairs = zip(sentences, links, cut.lines(args.target_text), places)
    lost: list[int] = []
    write_lines(args.output, _projected(scheme, progress_bar(pairs, len(sentences), "sentences"), lost))
    spans = sum(len(group) for sentence in sentences for group in sentence.groups)
    if parts := [sentence.line for sentence in sentences for _ in range(sentence.parts)]:
        warn_on_stderr(
            f"{len(parts)} of {spans} spans are a part of a word, the first at {args.labels}:{parts[0]}; the "
            f"whole word is taken for them"
        )
    if lost:
        warn_on_stderr(
            f"{len(lost)} of {spans} spans have no counterpart, the first in the sentence at {args.labels}:{lost[0]}; "
            f"their labels are left out"
        )
    say(
        signature(
            labels=file_hash(args.labels),
            scheme=scheme,
            **fields,
            text=file_hash(args.target_text),
            spans=spans,
            projected=spans - len(lost),
        )
    )


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
        parts: how many spans are a part of a word.
    """

    words: list[str]
    groups: list[list[LabelSpan]]
    line: int
    row: dict[str, Any] | None = None
    quoted: Sequence[str] = ()
    parts: int = 0


class AlignedLine(NamedTuple):
    """A line of norm-align's JSON: source and target, the words of each by character, and their links."""

    texts: tuple[str, str]
    spans: tuple[list[Span], list[Span]]
    links: WeightedLinks


def _aligned_lines(path: str) -> list[AlignedLine] | None:
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
    """Finds the words of a line: by a rule of :data:`_WORDS`, or as they were aligned."""

    def __init__(self, rule: str, aligned: Sequence[AlignedLine] | None = None) -> None:
        self._aligned = aligned
        self._find = _WORDS[rule]
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


def _read_labels(path: str, column: int | None, cut: Cut) -> tuple[str, list[LabelledText]]:
    """The scheme of the labels of a file, and its sentences."""
    file = TextFile(path, expected="lines with a word and a label, or JSON lines with text and spans")
    if re.match(rb'\s*\{\s*"', next(iter(file))):
        return _CHARACTERS, list(parse_json(file.lines(), path, cut))
    sentences = list(parse_conll(file.lines(), path, column))
    scheme = scheme_of(sentences, path)
    return scheme, [LabelledText(words, [spans_of(labels, scheme)], line) for words, labels, line in sentences]


def _projected(
    scheme: str,
    pairs: Iterable[tuple[LabelledText, WeightedLinks, tuple[str, list[Span]], str]],
    lost: list[int],
) -> Iterator[str]:
    """The lines of the target side; ``lost`` gets, for each span without a counterpart, the line of its sentence."""
    for source, links, (text, places), where in pairs:
        words = [text[start:end] for start, end in places]
        sides, sizes = (source.words, words), (len(source.words), len(words))
        try:
            found = [span for spans in source.groups for span in project_spans(spans, links, sizes, sides)]
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        lost += [source.line] * found.count(None)
        if source.row is None:
            yield from map("\t".join, zip(words, labels_of(found, len(words), scheme)))
            yield ""
        else:
            yield format_json(text, places, found, source.row, source.quoted)


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
