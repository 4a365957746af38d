"""Strings that are not translated: URLs, mail addresses, placeholders and emoji, and others that are stated."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alignment_eval.errors import UsageError, shown
from alignment_eval.transfer.units import Span

#: URLs, mail addresses, placeholders of templates and of printf, emoji.
PROTECTED = re.compile(
    r"""\b(?:(?:https?|ftp)://|www\.)(?:[^\s<>()]|\([^\s<>()]*\))*(?:[^\s<>().,;:!?\]}"'»”“]|\([^\s<>()]*\))"""
    r"""|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"""
    r"""|\{\{[^{}]*\}\}|[$%#]?\{[^{}\s]*\}"""
    r"""|%(?:\(\w+\)|\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|z)?[sdiuoxXfFeEgGc@](?!\w)"""
    r"""|(?:[\U0001f000-\U0001faff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff][\ufe0f\u200d\U000e0020-\U000e007f]*)+"""
    r"""|[0-9#*]\ufe0f?\u20e3"""
)
#: Brackets and quotes that go with a string, if they enclose nothing else.
_ENCLOSING = frozenset(("()", "[]", '""', "''", "„“", "“”", "«»", "»«", "‚‘", "‘’", "‹›", "›‹"))
#: The value that protects nothing.
NO_PROTECTION = "none"


def protected_strings(stated: str | None, default: bool = True) -> re.Pattern[str] | None:
    """The strings that are not translated; None: there are none.

    Args:
        stated: a regular expression of further strings besides :data:`PROTECTED`; or :data:`NO_PROTECTION`.
        default: whether :data:`PROTECTED` are protected if nothing is stated.
    """
    if stated is None:
        return PROTECTED if default else None
    if stated == NO_PROTECTION:
        return None
    try:
        re.compile(stated)  # so that an error names a place in what was stated
        return re.compile(f"{PROTECTED.pattern}|(?:{stated})")
    except re.error as error:
        raise UsageError(f"protect {shown(stated)}: no regular expression: {error}") from error


def strings_in(text: str, strings: re.Pattern[str]) -> Iterator[Span]:
    """Where such strings are in a text, each with the brackets and quotes that enclose it."""
    at = 0
    for found in strings.finditer(text):
        start, end = found.span()
        while at < start < end and text[start - 1] + text[end:][:1] in _ENCLOSING:
            start, end = start - 1, end + 1
        if start < end:
            yield start, end
            at = end


def is_inside_word(line: str, start: int, end: int) -> bool:
    """Whether a string of a line stands between two letters, which are of two words without it."""
    return is_letter(line[:start][-1:]) and is_letter(line[end:][:1])


def is_letter(character: str) -> bool:
    """Whether a character is of a word."""
    return character.isalnum() or character == "_"
