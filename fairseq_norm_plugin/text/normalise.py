"""Normalises raw text as the text of a model's training was; the places in the raw line stay known."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from fairseq_norm_plugin.text.offsets import TracedText

#: How raw text is normalised.
NORMALIZATIONS = ("none", "nfc", "moses")
#: Characters that are not printed: controls that are no whitespace, soft hyphens, zero-width characters, marks of
#: direction, byte order marks, fillers, variation selectors, tags.
_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLES = re.compile(f"[{_INVISIBLE}]+")
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
    **{
        "…": "...",
        "‥": "..",
        "。": ". ",
        "、": ",",
        "∶": ":",
        "〈": "<",
        "〉": ">",
        "【": "[",
        "】": "]",
        "\u3000": " ",
    },
    **{
        chr(code): unicodedata.normalize("NFKC", chr(code)) for code in (*range(0xFF01, 0xFF5F), *range(0xFB00, 0xFB07))
    },
    "＇": "'",
}
_PUNCTUATION = re.compile(rf"['{_SINGLE}]{{2}}|[\u00a0\u202f]+(?=[:;!?%])|[{re.escape(''.join(_PLAIN))}]")


def is_visible(text: str) -> bool:
    """Whether a text has a character that is printed."""
    return _VISIBLE.search(text) is not None


def normalised(raw: str, how: str) -> TracedText:
    """A raw line as a model reads it, before it is tokenised.

    Args:
        raw: the line.
        how: one of :data:`~NORMALIZATIONS`.  ``nfc``: characters are composed, and those
            that are not printed are left out.  ``moses``: punctuation is plain, too: quotes, apostrophes, dashes,
            ellipses, full-width forms and ligatures.  No rule changes the order of characters or joins two words.
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
