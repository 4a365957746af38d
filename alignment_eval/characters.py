"""Scripts that put no spaces between words, and the characters of a text as its readers see them."""

from __future__ import annotations

import regex

_SCRIPTS = (
    *("Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"),
    *("Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet", "Javanese", "Balinese"),
)
_OF_THEM = "".join(map(r"\p{scx=%s}".__mod__, _SCRIPTS))
#: Their characters, the signs that they share with each other but not with Latin, and full-width forms.
_UNSPACED = rf"(?:(?!\p{{scx=Latin}})[{_OF_THEM}]|(?!\s)\p{{ea=F}})"
_IS_UNSPACED = regex.compile(_UNSPACED)
#: A grapheme cluster of such a script, with the vowels of Burmese that Unicode does not count to it; or what else
#: stands together.
_CHARACTER = regex.compile(rf"(?={_UNSPACED})\X\p{{M}}*|(?:(?!{_UNSPACED})[^ \t\n\r\v\f\u3000]\p{{M}}*)+")


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that puts no spaces between words."""
    return _IS_UNSPACED.match(character) is not None


def character_spans(text: str) -> list[tuple[int, int]]:
    """The characters (grapheme clusters) of scripts without spaces; what else stands together is one word."""
    return [found.span() for found in _CHARACTER.finditer(text)]
