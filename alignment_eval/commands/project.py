"""``align-eval project``: labels of the source words onto the words of the translation.

Files of labels have columns, as CoNLL's tasks have them, a word and its label a line and blank lines between sentences;
or they are JSON lines with spans of characters: ``{"text": …, "spans": [[start, end, label], …]}``, or SQuAD's
``{"context": …, "answers": {"text": [answer, …], "answer_start": [start, …]}}``.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from alignment_eval.command_line import add_output, file_name, positive_integer
from alignment_eval.errors import InputError, progress_bar, say, shown, warn_on_stderr
from alignment_eval.files import check_new, write_lines
from alignment_eval.links.files import AlignmentFile, Texts, read_hypothesis, token_counts
from alignment_eval.maps.sentence import is_punctuation
from alignment_eval.options import add_links_arguments, read_options, reading_fields
from alignment_eval.reading import TextFile, file_hash
from alignment_eval.signature import signature
from alignment_eval.transfer.labels import SCHEMES, Span, labels_of, mismatch, project_spans, spans_of

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``project``."""
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
    add_output(parser.add_argument_group("output"), "target words and their labels", standard=True)


def run(args: argparse.Namespace) -> None:
    """Write the labelled target words."""
    check_new(args.output, args.overwrite)
    scheme, sentences = _read_labels(args.labels, args.column)
    target = token_counts(args.target_text)
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
    source = np.array([len(sentence.words) for sentence in sentences])
    texts = Texts(args.labels, source, args.target_text, target)
    links = read_hypothesis(args.links, read_options(args, "links", allow_possible=True), texts)
    lost: list[int] = []
    write_lines(args.output, _projected(scheme, sentences, links, args.target_text, lost))
    spans = sum(len(group) for sentence in sentences for group in sentence.groups)
    if lost:
        warn_on_stderr(
            f"{len(lost)} of {spans} spans have no counterpart, the first in the sentence at {args.labels}:{lost[0]}; "
            f"their labels are left out"
        )
    say(
        signature(
            labels=file_hash(args.labels),
            scheme=scheme,
            **reading_fields("links", links),
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
    """

    words: list[str]
    groups: list[list[Span]]
    line: int
    row: dict[str, Any] | None = None
    quoted: Sequence[str] = ()


def _read_labels(path: str, column: int | None) -> tuple[str, list[LabelledText]]:
    """The scheme of the labels of a file, and its sentences."""
    file = TextFile(path, expected="lines with a word and a label, or JSON lines with text and spans")
    if re.match(rb'\s*\{\s*"', next(iter(file))):
        return _CHARACTERS, list(parse_json(file.lines(), path))
    sentences = list(parse_conll(file.lines(), path, column))
    scheme = scheme_of(sentences, path)
    return scheme, [LabelledText(words, [spans_of(labels, scheme)], line) for words, labels, line in sentences]


def _projected(
    scheme: str, sentences: Sequence[LabelledText], links: AlignmentFile, text: str, lost: list[int]
) -> Iterator[str]:
    """The lines of the target side; ``lost`` gets, for each span without a counterpart, the line of its sentence."""
    triples = zip(sentences, links, TextFile(text).lines())
    for n, (source, sentence, (_, line)) in enumerate(progress_bar(triples, len(links), "sentences")):
        words = [token.decode() for token in line.split()]
        weighted = sentence.possible if sentence.confidence is None else sentence.confidence
        sides, sizes = (source.words, words), (len(source.words), len(words))
        try:
            found = [span for spans in source.groups for span in project_spans(spans, weighted, sizes, sides)]
        except InputError as error:
            raise InputError(f"{links.where(n)}: {error}") from None
        lost += [source.line] * found.count(None)
        if source.row is None:
            yield from map("\t".join, zip(words, labels_of(found, len(words), scheme)))
            yield ""
        else:
            yield format_json(line.decode(), found, source.row, source.quoted)


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
                text = row["text"]
                given = sorted((int(start), int(end), str(label)) for start, end, label in row["spans"])
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
        quoted = [text[start:end] for start, end, _ in given]
        yield LabelledText([word[0] for word in words], groups, number, row, quoted)


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
    if "answers" not in row:
        return json.dumps(row | {"text": text, "spans": sorted(found)}, ensure_ascii=False)
    answers = {"text": [text[start:end] for start, end, _ in found], "answer_start": [start for start, *_ in found]}
    return json.dumps(row | {"context": text, "answers": answers}, ensure_ascii=False)
