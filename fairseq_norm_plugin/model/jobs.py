"""What an alignment carries over to the translation: inline markup, and labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape

from alignment_eval.errors import InputError, UsageError
from alignment_eval.report.alignment_view import Alignment
from alignment_eval.transfer.labels import project_labels
from alignment_eval.transfer.markup import Syntax, parse_markup, transfer_markup

#: The syntaxes of markup.
SYNTAXES: tuple[Syntax, ...] = ("xml", "html")
#: What looks like a tag in a line whose markup is damaged.
_TAG = re.compile(r"</?[A-Za-z!?][^<>]*>")


def check_syntax(syntax: str) -> None:
    """Check the name of a syntax; raises UsageError."""
    if syntax not in SYNTAXES:
        raise UsageError(f"syntax {syntax}: choose one of {', '.join(SYNTAXES)}")


def plain_text(line: str, syntax: Syntax, keep_going: bool = False) -> str:
    """A line without its markup, which is what a model reads.

    Args:
        line: the line.
        syntax: ``xml`` or ``html``.
        keep_going: drop what looks like a tag if the markup is damaged.

    Raises:
        InputError: the markup is damaged.
    """
    try:
        return parse_markup(line, syntax).text
    except InputError:
        if keep_going:
            return unescape(_TAG.sub("", line))
        raise


def with_markup(source: str, alignment: Alignment, syntax: Syntax, keep_going: bool = False) -> str:
    """The target line with the markup of the source line (alignment_eval.transfer.markup).

    Args:
        source: the source line, with markup.
        alignment: of the source line without markup and of the target line.
        syntax: ``xml`` or ``html``.
        keep_going: leave the target without markup if that of the source is damaged.

    Raises:
        InputError: the markup is damaged, or the target has markup already.
    """
    try:
        marked = parse_markup(source, syntax)
    except InputError:
        if not keep_going:
            raise
        marked = parse_markup("", syntax)
    links = alignment.confidences or alignment.links
    return transfer_markup(marked, alignment.source_spans, alignment.target, alignment.target_spans, links)


def with_labels(labels: Sequence[str], alignment: Alignment) -> list[tuple[str, str]]:
    """The words of the target, each with its BIO label (alignment_eval.transfer.labels).

    Args:
        labels: of the source words.
        alignment: of the sentence pair.

    Raises:
        InputError: there is not one label for each source word, or a label is not BIO.
    """
    source, target = alignment.source_words, alignment.target_words
    if len(labels) != len(source):
        raise InputError(f"{len(labels)} labels, but {len(source)} words ({' '.join(source)[:80]}): expected one each")
    links = alignment.confidences or alignment.links
    return list(zip(target, project_labels(labels, links, len(target), (source, target))))
