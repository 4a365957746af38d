"""Strings that are not translated: URLs, placeholders and the like, and marks of notes."""

from __future__ import annotations

import re

from alignment_eval.errors import UsageError, shown
from alignment_eval.transfer.units import is_letter

#: The types of ICU's messages, ``{name, type, …}``.
_TYPES = "plural|select|selectordinal|number|date|time|choice|spellout|ordinal|duration|list|unit|currency"
#: What is not translated; at one place, the first that matches.  ``<round>``, ``<square>`` and ``<braces>`` stand for
#: balanced brackets with what is inside.
_KINDS = {
    "URLs": r"""\b(?:[A-Za-z][A-Za-z\d+.-]*://|www\.)(?:[^\s<>()\[\]{}]|<round>|<square>|<braces>)+"""
    r"""(?<![.,;:!?'"»”“…])""",
    "mail addresses": r"(?<![\w.+-])(?:mailto:)?[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "Mustache, Jinja, ERB": r"\{\{(?:[^{}]|<braces>)*\}\}|\{%.*?%\}|\{#.*?#\}|<%.*?%>",
    "ICU": rf"(?=\{{\s*[\w.-]+\s*,\s*(?:(?:{_TYPES})\b|\w+\s*,[^{{}}]*\{{))<braces>",
    "Fluent, MessageFormat 2": r"(?=\{\s*(?:\$\w|-?[\w.]+\s*\}|[A-Z]+\())<braces>",
    "Ruby, shell, JavaScript": r"[$%#@]<braces>|(?<!\w)\$(?:[A-Za-z_]\w*|\d(?![.,]?\d))",
    "Python, .NET, Java": r"\{[^{}\s]*\}|\{[\w.\[\]]*(?:![rsa])?:(?!\s+\w)(?:[^{}]|<braces>)*\}",
    "names between percent signs": r"(?<![\w%])%(?:[A-Za-z_][\w.-]+|\d+)%(?![\w%])",
    "printf": r"%(?:\(\w+\)|<\w+>|\d+\$)?[-+#0,']*(?:\d+|\*(?:\d+\$)?)?(?:\.(?:\d+|\*(?:\d+\$)?)?)?"
    r"(?:hh?|ll?|[Lqjzt]|I64|I32)?(?:[sdiuoxXfFeEgGaAcCpSnb@](?![^\W_])|(?<![\d}]%)[sd](?=[A-Za-z]{1,3}\b|[A-Z]|x%))"
    r"|%%",
    "character references, escapes": r"&(?:[A-Za-z][A-Za-z\d]+|#\d+|#[xX][\da-fA-F]+);|\\[nrt](?![a-z])",
    "marks of notes": r"\[\^[^\]\s]+\]|(?<=[^\s\[({])\[(?:\d[\d,;\s–-]*|[a-z])\]|(?<=\S)[†‡⁰¹²³⁴-⁹]+",
    "emoji": r"(?:[\U0001f000-\U0001faff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff]"
    r"[\ufe0f\u200d\U000e0020-\U000e007f]*)+|[0-9#*]\ufe0f?\u20e3",
}


def _nested(inside: str, opening: str, closing: str, depth: int) -> str:
    """Brackets with ``inside`` and with brackets, to this depth: deeper ones would take the square of the time."""
    found = rf"\{opening}(?:{inside})*\{closing}"
    return found if depth == 1 else rf"\{opening}(?:{inside}|{_nested(inside, opening, closing, depth - 1)})*\{closing}"


#: In a message of ICU, a quoted brace counts for none.
_BRACKETS = {
    "<round>": _nested(r"[^\s<>()]", "(", ")", 3),
    "<square>": _nested(r"[^\s<>\[\]]", "[", "]", 2),
    "<braces>": _nested(r"[^{}']|'[{}]'|'(?![{}]')", "{", "}", 8),
}
_PATTERN = re.sub("|".join(_BRACKETS), lambda name: _BRACKETS[name[0]], "|".join(_KINDS.values()))
#: Strings of these kinds.
PROTECTED = re.compile(_PATTERN)
#: The value that protects nothing.
NO_PROTECTION = "none"


def protected_strings(stated: str | None) -> re.Pattern[str] | None:
    """The strings that are not translated, :data:`PROTECTED` and those that match ``stated``; None: there are none.

    ``stated`` is a regular expression, or :data:`NO_PROTECTION`.
    """
    if stated is None:
        return PROTECTED
    if stated == NO_PROTECTION:
        return None
    try:
        re.compile(stated)  # so that an error names a place in what was stated
        return re.compile(f"{_PATTERN}|(?:{stated})")
    except re.error as error:
        raise UsageError(f"protect {shown(stated)}: no regular expression: {error}") from error


def is_inside_word(line: str, start: int, end: int) -> bool:
    """Whether a string of a line stands between two letters, which are of two words without it."""
    return is_letter(line[:start][-1:]) and is_letter(line[end:][:1])
