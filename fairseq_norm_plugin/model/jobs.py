"""What an alignment carries over to the translation: inline markup, strings that stay as they are, and labels."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import unescape

from alignment_eval.alignment import Alignment
from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from alignment_eval.transfer.labels import project_labels, spans_of
from alignment_eval.transfer.markup import transfer_markup
from alignment_eval.transfer.tags import MarkedLine, Syntax, parse_markup
from fairseq_norm_plugin.model.translator import UNKNOWN

#: What looks like a tag in a line whose markup is damaged.
_TAG = re.compile(r"</?[A-Za-z!?][^<>]*>")
#: Unknown words, side by side.
_UNKNOWN_WORDS = re.compile(rf"{UNKNOWN}(?:\s*{UNKNOWN})*")


@dataclass(frozen=True)
class Markup:
    """How lines with markup are read.

    Attributes:
        syntax: ``xml`` or ``html``.
        opaque: names of further elements whose content is no text.
        strings: the strings that are not translated, if the model translates; else None.
    """

    syntax: Syntax
    opaque: tuple[str, ...] = ()
    strings: re.Pattern[str] | None = None

    @classmethod
    def of(cls, syntax: str, opaque: Collection[str] = (), strings: re.Pattern[str] | None = None) -> Markup:
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

    def put(self, source: str, alignment: Alignment, name: str) -> str:
        """The target line with the markup of the source line (alignment_eval.transfer.markup).

        ``alignment`` is of the source line without markup and of the target line; ``name`` is the target's, in
        messages.
        """
        try:
            marked = self.read(source)
            if marked.elements and alignment.status.startswith("longer"):
                raise InputError(f"found a line with tags that is {alignment.status}; cut it into sentences")
            return _put(marked, alignment)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error


def _put(marked: MarkedLine, alignment: Alignment) -> str:
    links = alignment.confidences or alignment.links
    return transfer_markup(marked, alignment.source_spans, alignment.target, alignment.target_spans, links)


def completed(translation: str, marked: MarkedLine, alignment: Alignment) -> str:
    """A translation with the strings that were taken out of its source, and its unknown words copied from the source.

    ``alignment`` is of the rest of the source and of the translation, with its word maps.
    """
    text = _put(marked, alignment) if marked.elements else translation  # which may be in subwords
    if not alignment.ok:
        return text.replace(UNKNOWN, "<unk>")
    targets = [j for j, word in enumerate(alignment.target_words) for _ in range(word.count(UNKNOWN))]
    sources = iter([_source_of(alignment, j) for j in targets])

    def copy(unknown: re.Match[str]) -> str:
        words = dict.fromkeys(next(sources) for _ in range(unknown[0].count(UNKNOWN)))  # each once
        return " ".join(alignment.source_words[i] for i in words)

    return _UNKNOWN_WORDS.sub(copy, text)


def _source_of(alignment: Alignment, target: int) -> int:
    """The source word of a target word: of its surest link, or of the largest share if it has none."""
    linked = [i for i, j in alignment.links if j == target]
    if linked:
        return max(linked, key=lambda i: alignment.confidences.get((i, target), 0.0))
    return int(alignment.word_map.to_numpy()[target, :-1].argmax())


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
