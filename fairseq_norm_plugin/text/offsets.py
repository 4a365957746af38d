"""Where the text that a model reads comes from: the characters of the raw line behind each of its characters."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import regex
from numpy.typing import NDArray

from alignment_eval.maps.sentence import Span

#: Blanks are ASCII white space only; other Unicode spaces may be part of a word.
_WORD = re.compile(r"[^ \t\n\r\v\f]+")
#: What Moses writes for a mark that it has cut out of a word, such as ``@-@``.
_CUT_OUT = re.compile(r"@(\W)@")
#: How far behind its neighbour a token is looked for once a tokenizer has rewritten the token between them.
_NEAR = 100
#: Characters that are not printed: controls that are no whitespace, soft hyphens, zero-width characters, marks of
#: direction, byte order marks, fillers, variation selectors, tags.
_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: Scripts that spell with joiners (U+200C, U+200D): between letters and signs, and behind a virama.
_JOINED = "Arabic Syriac Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala"
_JOINED = "".join(map(r"\p{scx=%s}".__mod__, _JOINED.split()))
_LETTER = rf"(?:(?=[{_JOINED}])[\p{{L}}\p{{M}}])"
_JOINER = rf"[\u200c\u200d](?:(?<={_LETTER}.)(?=[{_INVISIBLE}]*{_LETTER})|(?<=(?=[{_JOINED}])\p{{InSC=Virama}}.))"
_INVISIBLES = regex.compile(rf"(?:(?!{_JOINER})[{_INVISIBLE}])+")
_VISIBLE = re.compile(rf"[^\s{_INVISIBLE}]")
#: What composes with the character before it, besides marks: vowels and final consonants of Hangul.
_JAMO = re.compile("[\u1161-\u1175\u11a8-\u11c2]")

#: Single quotes and apostrophes.  Two in a row are a double quote.
_SINGLE = "`´‘’‚‛ʼ′＇"
#: Typographic characters, and what Moses' normalize-punctuation writes for them or for others of their kind.
_PLAIN = {
    **dict.fromkeys("„“”‟«»″〝〞《》「」『』", '"'),
    **dict.fromkeys(f"{_SINGLE}‹›", "'"),
    **dict.fromkeys("‐‑‒–−━", "-"),
    **dict.fromkeys("—―", " - "),
    **dict(zip("…‥。、∶〈〉【】\u3000", ("...", "..", ". ", ",", ":", "<", ">", "[", "]", " "))),
    **{
        chr(code): unicodedata.normalize("NFKC", chr(code)) for code in (*range(0xFF01, 0xFF5F), *range(0xFB00, 0xFB07))
    },
    "＇": "'",
}
_PUNCTUATION = re.compile(rf"['{_SINGLE}]{{2}}|[\u00a0\u202f]+(?=[:;!?%])|[{re.escape(''.join(_PLAIN))}]")


@dataclass(frozen=True, eq=False)
class TracedText:
    """Text that was made from a raw line.

    Attributes:
        text: the text.
        starts: where in the raw line what became each character begins, int32 [len(text)].
        ends: where it ends; equal to the start for a character that was inserted, such as a space.
    """

    text: str
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    @classmethod
    def of(cls, raw: str) -> TracedText:
        """The raw line itself."""
        places = np.arange(len(raw) + 1, dtype=np.int32)
        return cls(raw, places[:-1], places[1:])

    def lowercased(self) -> TracedText:
        """The text in lower case, in which some characters become two."""
        text = self.text.lower()
        if len(text) == len(self.text):
            return TracedText(text, self.starts, self.ends)
        counts = [len(character.lower()) for character in self.text]
        return TracedText(text, np.repeat(self.starts, counts), np.repeat(self.ends, counts))

    def replaced(self, changes: Iterable[tuple[int, int, str]]) -> TracedText:
        """The text with other characters in some places.

        Args:
            changes: start and end in the text, and what stands there instead; disjoint, in order.  Its first character
                that is no space takes the whole place and the others come from nothing, so that no two words overlap.
        """
        texts, starts, ends = list[str](), list[NDArray[np.int32]](), list[NDArray[np.int32]]()
        at = 0
        for start, end, text in changes:
            first, last = self.span(start, end)
            spaces = len(text) - len(text.lstrip())
            places = np.full(len(text) + 1, last, dtype=np.int32)
            places[: spaces + 1] = first
            texts += [self.text[at:start], text]
            starts += [self.starts[at:start], places[:-1]]
            ends += [self.ends[at:start], np.where(np.arange(len(text)) < spaces, first, last)]
            at = end
        text = "".join([*texts, self.text[at:]])
        return TracedText(
            text, *(np.concatenate([*of, rest]) for of, rest in ((starts, self.starts[at:]), (ends, self.ends[at:])))
        )

    def after(self, before: TracedText) -> TracedText:
        """This text, which was made from ``before.text``, as made from the raw line of ``before``."""
        places = [before.span(start, end) for start, end in zip(self.starts.tolist(), self.ends.tolist())]
        starts, ends = np.array(places, dtype=np.int32).reshape(-1, 2).T
        return TracedText(self.text, starts, ends)

    def span(self, start: int, end: int) -> Span:
        """The span of the raw line that ``text[start:end]`` comes from."""
        if end > start:
            return int(self.starts[start]), int(self.ends[end - 1])
        place = int(self.starts[start]) if start < len(self.starts) else int(self.ends[-1]) if len(self.ends) else 0
        return place, place

    def tokens(self) -> list[Span]:
        """The spans of the raw line of the tokens that whitespace separates; without tokens that come from nothing.

        A token that is not printed, such as a joiner that was cut off, belongs to the words that it touches.
        """
        spans: list[Span] = []
        joins = False  # whether the next token belongs to the word before it if it touches it
        for start, end in word_spans(self.text):
            span, before = self.span(start, end), joins
            if span[0] == span[1]:
                continue
            joins = not is_visible(self.text[start:end])
            if (
                (joins or (before and unicodedata.category(self.text[start])[0] in "LMN"))
                and spans
                and spans[-1][1] == span[0]
            ):
                span = spans.pop()[0], span[1]
            spans.append(span)
        return spans


def is_visible(text: str) -> bool:
    """Whether a text has a character that is printed."""
    return _VISIBLE.search(text) is not None


def normalised(raw: str, how: str) -> TracedText:
    """A raw line as a model reads it, before it is tokenised.

    ``nfc``: characters are composed, and those that are not printed are left out, but for the joiners of Persian and
    Indic scripts, which are spelling.  ``moses``: punctuation is plain, too: quotes, apostrophes, dashes, ellipses,
    full-width forms and ligatures.  No rule changes the order of characters or joins two words.
    """
    text = TracedText.of(raw)
    if how == "none":
        return text
    if _INVISIBLES.search(raw):
        text = text.replaced((*found.span(), "") for found in _INVISIBLES.finditer(raw))
    if not unicodedata.is_normalized("NFC", text.text):
        text = text.replaced(_composed(text.text))
    if how == "moses" and _PUNCTUATION.search(text.text):
        text = text.replaced((*found.span(), _plain(found[0])) for found in _PUNCTUATION.finditer(text.text))
    return text


def _composed(text: str) -> Iterator[tuple[int, int, str]]:
    """What NFC changes in a text: start, end, and what stands there instead."""
    starts = [
        place
        for place, character in enumerate(text)
        if not (place and (unicodedata.category(character)[0] == "M" or _JAMO.match(character)))
    ]
    for start, end in zip(starts, [*starts[1:], len(text)]):
        composed = unicodedata.normalize("NFC", text[start:end])
        if composed != text[start:end]:
            yield start, end, composed


def _plain(found: str) -> str:
    if len(found) == 2 and found[0] in f"'{_SINGLE}":
        return '"'
    return _PLAIN.get(found, "")  # nothing for a no-break space before a mark


def word_spans(text: str) -> list[Span]:
    """The words that whitespace separates."""
    return [match.span() for match in _WORD.finditer(text)]


class Tokenizer:
    """Normalises and tokenises, and knows where its tokens are in the raw line.

    ``encode`` gives the tokens of a line with spaces between (None: it is only normalised), ``decode`` the line.
    """

    def __init__(
        self, encode: Callable[[str], str] | None, decode: Callable[[str], str], normalize: str = "none"
    ) -> None:
        self._encode = encode
        self.decode = decode
        self._normalize = normalize
        # both directions and the reader of words ask for the same line one after the other
        self.trace = lru_cache(maxsize=64)(self._trace)

    def _trace(self, raw: str) -> TracedText:
        text = normalised(raw, self._normalize)
        if self._encode is None:
            return text
        tokens = trace_tokens(text.text, self._encode(text.text))
        return tokens if text.text == raw else tokens.after(text)


def trace_tokens(raw: str, tokenized: str) -> TracedText:
    """Find the tokens of a tokenizer in the raw line that it has read.

    A tokenizer inserts spaces, drops white space and control characters, escapes characters (``&amp;``) and marks
    those that it cuts out of a word (``@-@``).  A token that it has rewritten in another way gets what lies between
    its neighbours.
    """
    traced, missed = _trace(raw, tokenized, escapes=True)
    if missed and "&" in tokenized:  # a tokenizer that does not escape leaves the line's own &amp; as it is
        plain, fewer = _trace(raw, tokenized, escapes=False)
        return plain if fewer < missed else traced
    return traced


def _trace(raw: str, tokenized: str, escapes: bool) -> tuple[TracedText, int]:
    """:func:`trace_tokens`, and how much was not found: tokens, and characters of the line."""
    starts = np.zeros(len(tokenized), dtype=np.int32)
    ends = np.zeros(len(tokenized), dtype=np.int32)
    end = 0  # of the token before, in the raw line
    lost: list[Span] = []  # tokens since then that were not found
    missed = 0

    def fill_gap(until: int) -> None:
        nonlocal missed
        gap = raw[end:until]
        missed += len(lost) + sum(not _is_dropped(character) for character in gap)
        first = end + len(gap) - len(gap.lstrip())
        for number, (a, b) in enumerate(lost):  # the first takes all of it, so that no two spans overlap
            starts[a:b] = first if number == 0 else until
            ends[a:b] = max(first, end + len(gap.rstrip())) if number == 0 else until
        lost.clear()

    for a, b in word_spans(tokenized):
        places = _find(tokenized[a:b], raw, end, _NEAR if lost else 0, escapes)
        if places is None:
            lost.append((a, b))
            continue
        fill_gap(places[0])
        if len(places) == b - a:
            starts[a:b] = places
            ends[a:b] = [place + 1 for place in places]
        else:
            starts[a:b], ends[a:b] = places[0], places[-1] + 1
        end = places[-1] + 1
    fill_gap(len(raw))
    space = ends == 0  # spaces come from nothing: they are at the end of the token before
    ends = np.maximum.accumulate(ends)
    return TracedText(tokenized, np.where(space, ends, starts), ends), missed


def _find(token: str, raw: str, start: int, near: int, escapes: bool) -> list[int] | None:
    """Where the characters of a token are in ``raw``, from ``start`` or up to ``near`` characters behind it on."""
    forms = [token]  # what the token may be in the raw line
    if cut_out := _CUT_OUT.fullmatch(token):
        forms.insert(0, cut_out[1])
    if escapes and (plain := html.unescape(token)) != token:
        forms.insert(0, plain)
    for form in forms:
        for begin in range(start, min(start + near, len(raw)) + 1):
            if near and (begin == len(raw) or raw[begin] != form[0]):
                continue
            if places := _places(form, raw, begin):
                return places
    return None


def _places(form: str, raw: str, at: int) -> list[int] | None:
    """Where each character of ``form`` is in ``raw`` from ``at`` on, with nothing but dropped characters between."""
    places = []
    for character in form:
        while at < len(raw) and raw[at] != character and _is_dropped(raw[at]):
            at += 1
        if at == len(raw) or raw[at] != character:
            return None
        places.append(at)
        at += 1
    return places


def _is_dropped(character: str) -> bool:
    """Whether tokenizers may drop a character: white space, control characters."""
    return character.isspace() or unicodedata.category(character) == "Cc"
