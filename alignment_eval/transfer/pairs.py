"""Carries markup and labels over the alignments of pairs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from html import unescape

from alignment_eval.alignment import Alignment
from alignment_eval.errors import InputError, UsageError, warn_user
from alignment_eval.transfer.labels import project_labels, spans_of
from alignment_eval.transfer.markup import transfer_markup
from alignment_eval.transfer.pieces import Strings
from alignment_eval.transfer.tags import MarkedLine, Syntax, parse_markup

#: What looks like a tag in a line whose markup is damaged.
_TAG = re.compile(r"</?[A-Za-z!?][^<>]*>")


def with_elements(marked: MarkedLine, alignment: Alignment) -> str:
    """The target line with the elements of the source line."""
    links = alignment.weights or alignment.confidences or alignment.links
    return transfer_markup(marked, alignment.source_spans, alignment.target, alignment.target_spans, links)


@dataclass(frozen=True)
class Markup:
    """How lines with markup are read; ``opaque`` names further elements whose content is no text.

    If the model translates, it leaves out ``strings``.
    """

    syntax: Syntax
    opaque: tuple[str, ...] = ()
    strings: Strings | None = None

    @classmethod
    def of(cls, syntax: str, opaque: Collection[str] = (), strings: Strings | None = None) -> Markup:
        """Check the options; raises UsageError."""
        if syntax not in ("xml", "html"):
            raise UsageError(f"syntax {syntax}: choose xml or html")
        if isinstance(opaque, str) or not all(isinstance(name, str) and name.strip() == name != "" for name in opaque):
            raise UsageError(f"opaque {opaque!r}: expected names of elements, such as code, without < and >")
        names = tuple(name.lower() if syntax == "html" else name for name in opaque)
        return cls("xml" if syntax == "xml" else "html", names, strings)

    def read(self, line: str) -> MarkedLine:
        """A line without its markup."""
        return parse_markup(line, self.syntax, self.opaque, self.strings)

    def plain(self, line: str, name: str = "", keep_going: bool = False) -> str:
        """A line without its markup, which is what a model reads.

        ``name`` is the line's in messages; if it is empty, the caller adds it.  ``keep_going``: if the markup is
        damaged, drop what looks like a tag.
        """
        try:
            return self.read(line).text
        except InputError as error:
            if keep_going:
                return re.sub(r"[\r\n]", " ", unescape(_TAG.sub("", line)))  # one line, as of markup that is whole
            raise InputError(f"{name}: {error}") if name else error from error

    def put(self, source: str, alignment: Alignment, name: str) -> Alignment:
        """The alignment, with the target ``marked`` by the markup of the source line (alignment_eval.transfer.markup).

        ``alignment`` is of the source line without markup and of the target line, ``name`` the target's in messages.
        """
        try:
            marked = self.read(source)
            if marked.elements and alignment.status.startswith("longer"):
                raise InputError(f"found a line with tags that is {alignment.status}; cut it into sentences")
            if marked.elements and alignment.source != marked.text:  # its words would be at other places
                raise InputError(
                    "found a line in subwords with tags; expected whole words with one blank between them: give the "
                    "text before it was cut"
                )
            return replace(alignment, marked=with_elements(marked, alignment))
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
    """The words of each target, each with its BIO label, of the ``labels`` of the source words.

    A warning counts the spans without a counterpart.
    """
    projected = []
    for of_line, pair in zip(labels, alignments):
        words = pair.source_words, pair.target_words
        projected.append(project_labels(of_line, pair.confidences or pair.links, len(pair.target_spans), words))
    before, after = (sum(label.startswith("B-") for line in lines for label in line) for lines in (labels, projected))
    if after < before:
        warn_user(f"{before - after} of {before} spans have no counterpart; their labels are left out")
    return [list(zip(pair.target_words, of_line)) for pair, of_line in zip(alignments, projected)]
