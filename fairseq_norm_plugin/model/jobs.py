"""What an alignment carries over to the translation: inline markup, and labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape

from alignment_eval.alignment import Alignment
from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from alignment_eval.transfer.labels import project_labels, spans_of
from alignment_eval.transfer.markup import transfer_markup
from alignment_eval.transfer.tags import Syntax, parse_markup

#: What looks like a tag in a line whose markup is damaged.
_TAG = re.compile(r"</?[A-Za-z!?][^<>]*>")


def check_syntax(syntax: str) -> Syntax:
    """The syntax of this name; raises UsageError if there is none."""
    if syntax not in ("xml", "html"):
        raise UsageError(f"syntax {syntax}: choose xml or html")
    return "xml" if syntax == "xml" else "html"


def plain_text(line: str, syntax: Syntax, name: str = "", keep_going: bool = False) -> str:
    """A line without its markup, which is what a model reads.

    ``name`` is the line's in messages; if it is empty, the caller adds it.  ``keep_going``: if the markup is damaged,
    drop what looks like a tag.
    """
    try:
        return parse_markup(line, syntax).text
    except InputError as error:
        if keep_going:
            return re.sub(r"[\r\n]", " ", unescape(_TAG.sub("", line)))  # one line, as of markup that is whole
        raise InputError(f"{name}: {error}") if name else error from error


def with_markup(source: str, alignment: Alignment, syntax: Syntax, name: str) -> str:
    """The target line with the markup of the source line (alignment_eval.transfer.markup).

    ``alignment`` is of the source line without markup and of the target line; ``name`` is the target's, in messages.
    """
    links = alignment.confidences or alignment.links
    spans = alignment.source_spans, alignment.target_spans
    try:
        return transfer_markup(parse_markup(source, syntax), spans[0], alignment.target, spans[1], links)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def check_labels(labels: Sequence[str], words: Sequence[str], name: str) -> None:
    """Check the labels, called ``name`` in messages, of the ``words`` of a source."""
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise InputError(f"{name}: {labels!r:.40}: expected a list of labels, each of them text")
    if len(labels) != len(words):
        raise InputError(f"{name}: {len(labels)} labels, but the source has {len(words)} words: expected one for each")
    try:
        spans_of(labels)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def with_labels(labels: Sequence[Sequence[str]], alignments: Sequence[Alignment]) -> list[list[tuple[str, str]]]:
    """The words of each target, each with its BIO label (alignment_eval.transfer.labels).

    A warning counts the spans without a counterpart.  ``labels`` are those of the source words (:func:`check_labels`).
    """
    found = []
    for of_line, pair in zip(labels, alignments):
        source, target = pair.source_words, pair.target_words
        links = pair.confidences or pair.links
        found.append(project_labels(of_line, links, len(target), (source, target)))
    before, after = (sum(label.startswith("B-") for line in lines for label in line) for lines in (labels, found))
    if after < before:
        warn_on_stderr(f"{before - after} of {before} spans have no counterpart; their labels are left out")
    return [list(zip(pair.target_words, of_line)) for pair, of_line in zip(alignments, found)]
