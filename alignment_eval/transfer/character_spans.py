"""Texts with labelled spans of characters as JSON lines: {"text": …, "spans": [[start, end, label], …]}."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from alignment_eval.errors import InputError, shown
from alignment_eval.maps.subwords import is_punctuation
from alignment_eval.transfer.labels import Span

#: Words, as :func:`alignment_eval.links.text.token_lines` cuts them.
_WORD = re.compile(r"[^ \t\n\r\v\f]+")


class LabelledText(NamedTuple):
    """The words of a text, spans of them, the number of its line, from 1, and what the spans say, letter by letter."""

    words: list[str]
    spans: list[Span]
    line: int
    quoted: list[str]


def is_json(start: bytes) -> bool:
    """Whether a file begins as JSON lines do."""
    return re.match(rb'\s*\{\s*"', start) is not None


def parse_json(lines: Iterable[tuple[int, bytes]], name: str) -> Iterator[LabelledText]:
    """The texts of a file; a span of characters is one of the words that it touches.  Arguments as for parse_conll."""
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            text, given = row["text"], [(int(start), int(end), str(label)) for start, end, label in row["spans"]]
            words = list(_WORD.finditer(text))
        except (ValueError, TypeError, KeyError):
            raise InputError(
                f'{name}:{number}: {shown(line.decode())}: expected {{"text": TEXT, "spans": [[START, END, LABEL], …]}}'
            ) from None
        spans: list[Span] = []
        for start, end, label in sorted(given):
            touched = [n for n, word in enumerate(words) if word.start() < end and start < word.end()]
            if not 0 <= start < end <= len(text) or not touched:
                raise InputError(f"{name}:{number}: span {start} to {end} has no words of {len(text)} characters")
            if spans and touched[0] < spans[-1].end:
                raise InputError(
                    f"{name}:{number}: span {start} to {end} shares a word with the one before: expected spans of "
                    f"different words; give one of the two in a file of its own"
                )
            spans.append(Span(touched[0], touched[-1] + 1, label))
        quoted = [text[start:end] for start, end, _ in sorted(given)]
        yield LabelledText([word[0] for word in words], spans, number, quoted)


def format_json(text: str, spans: Iterable[Span | None], quoted: Sequence[str]) -> str:
    """The line of a text and the counterparts of its spans, None for one without.

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
            found.append([start, end, span.type])
    return json.dumps({"text": text, "spans": sorted(found)}, ensure_ascii=False)
