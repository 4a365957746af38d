"""The pieces of a line with markup; which of them stand alone although they are no tags.

These are strings that are not translated, such as URLs and placeholders, and marks of notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import NamedTuple

from alignment_eval.errors import UsageError, shown
from alignment_eval.maps.sentence import Span
from alignment_eval.transfer.units import is_letter

#: Elements that separate words: HTML's blocks, breaks and images; TEI's breaks; XLIFF's tab.
SEPARATORS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "button", "caption", "cb", "center", "dd", "details"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("header", "hr", "img", "input", "lb", "legend", "li", "main", "nav", "ol", "optgroup", "option", "p", "pb"),
        *("pre", "section", "select", "summary", "table", "tbody", "td", "textarea", "tfoot", "th", "thead", "tr"),
        *("tab", "ul", "video"),
    )
)
#: Elements of TMX and XLIFF for native code, and what says there that it separates words: the type or the name of the
#: tag, such as ``ctype="x-html-br"``; the code of such an element, or an escape of a line break or tab.
_NATIVE = frozenset({"x", "ph", "it", "ut", "bx", "ex", "sc", "ec", "bpt", "ept"})
_NATIVE_SEPARATOR = re.compile(
    rf"""\s[\w:]*type\s*=\s*["'](?:x-(?:html-)?|xlf:)?(?:{"|".join(SEPARATORS)}|image|line-?break|newline)(?![\w-])"""
    r"""|\s(?:id|name)\s*=\s*["'](?:line_?break|newline)"""
    rf"""|(?:&lt;|&\#0*60;|&\#x0*3c;|(?<=["'>])<)\s*/?(?:{"|".join(SEPARATORS)})(?![\w-])"""
    r"""|["'>](?:\\[nrt]|&\#(?:0*(?:9|10|13)|x0*[9ad]);|[\n\r\t↵])+["'<]""",
    re.IGNORECASE,
)
#: The names of pieces that are no tags and stand alone: a string, and a code of a CAT tool.
STRING, CODE = "#string", "#code"
#: Brackets and quotes that go with a string, if they enclose nothing else.
_ENCLOSING = frozenset(("()", "[]", '""', "''", "„“", "“”", "«»", "»«", "‚‘", "‘’", "‹›", "›‹"))
#: What goes with the string before it: a sign, or the ending of a file's name.
_ATTACHED = re.compile(r"(?:[%€$£°]|\.[a-z\d]{1,4})(?!\.?\w)")
#: What goes with the strings on both sides: marks without blanks, an x; with blanks, marks that end no sentence.
_BETWEEN = re.compile(r"[\W\d_]{1,3}(?<!\s)|x|\s?[^\w\s.!?…;。！？]{1,3}\s?")
#: Tags that stand for a word, as strings do.
_PLACEHOLDERS = frozenset({STRING, "x", "ph"})

#: Elements that raise or lower text, and what is a mark of a note there: no letters, or these.
_RAISED = frozenset({"sup", "sub", "superscript", "subscript"})
_LETTERS = re.compile(r"\W*(?:[a-z]|[ivxl]+|TM|SM)\W*")
#: What is a mark of a note in any element, behind a word.
_MARK = re.compile(r"\[\s*(?:\d[\d\s,–-]*|[a-z])\s*\]|\(\d+\)|\d+|[*†‡§¶]+")
#: What shows that a word goes on.
_GOES_ON = re.compile(r"[^\W_]|-[^\W\d_]")
#: A word of chemical elements, whose numbers are no marks.
_FORMULA = re.compile(r"(?<!\w)(?:[A-Z][a-z]?\d*)+\Z")
#: A mark has at most so many characters.
_LONGEST_MARK = 12


#: The types of ICU's messages, ``{name, type, …}``.
_TYPES = "plural|select|selectordinal|number|date|time|choice|spellout|ordinal|duration|list|unit|currency"
#: Codes of CAT tools, which enclose words: of Phrase, memoQ, GitLocalize, each first the one that begins and then the
#: one that ends a pair.  The brackets may be escaped.
_PHRASE = r"\d+|[biu_^]+"
CODES = re.compile(
    rf"\{{({_PHRASE})(?:>|&gt;)|(?:<|&lt;)({_PHRASE})\}}|\[(\d+)\}}|\{{(\d+)\]|\{{(code\d+)\}}|\{{/(code\d+)\}}"
)
#: What is not translated; at one place, the first that matches.  ``<round>``, ``<square>`` and ``<braces>`` stand for
#: balanced brackets with what is inside.
_KINDS = {
    "codes of CAT tools": rf"\{{(?:{_PHRASE})>|<(?:{_PHRASE})\}}|\[\d+\}}|\{{\d+\]",
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
    "<braces>": rf"(?!\{{(?:{_PHRASE})>)" + _nested(r"[^{}']|'[{}]'|'(?![{}]')", "{", "}", 8),
}
_OF_KINDS = re.compile(re.sub("|".join(_BRACKETS), lambda name: _BRACKETS[name[0]], "|".join(_KINDS.values())))
#: The value that protects nothing.
NO_PROTECTION = "none"


@dataclass(frozen=True)
class Strings:
    """Strings that are not translated: those that match ``stated``, and of the rest those of certain kinds.

    At one place, the first of ``stated`` that matches counts.
    """

    stated: tuple[re.Pattern[str], ...] = ()

    def spans(self, text: str) -> list[Span]:
        """The characters of each string, from left to right."""
        spans, at = [], 0
        for start, end in chain(self._stated_spans(text), [(len(text), len(text))]):
            spans += [found.span() for found in _OF_KINDS.finditer(text, at, start)]
            spans += [(start, end)] * (start < end)
            at = end
        return spans

    def _stated_spans(self, text: str) -> Iterator[Span]:
        found, at = [expression.search(text) for expression in self.stated], 0
        while at <= len(text):
            found = [each if each is None or each.start() >= at else each.re.search(text, at) for each in found]
            first = min(filter(None, found), key=lambda each: each.start(), default=None)
            if first is None:
                return
            if first[0]:
                yield first.span()
            at = max(first.end(), first.start() + 1)


#: Strings of these kinds alone.
PROTECTED = Strings()


def protected_strings(stated: str | Sequence[str] | None) -> Strings | None:
    """The strings that are not translated, :data:`PROTECTED` and those that match ``stated``; None: there are none.

    ``stated`` is a regular expression, or several, or :data:`NO_PROTECTION`.
    """
    expressions = [stated] if isinstance(stated, str) else stated or ()
    compiled = []
    for expression in expressions:
        try:
            compiled.append(re.compile(expression))
        except re.error as error:
            raise UsageError(f"protect {shown(expression)}: no regular expression: {error}") from error
    return None if [*expressions] == [NO_PROTECTION] else Strings(tuple(compiled))


def is_inside_word(line: str, start: int, end: int) -> bool:
    """Whether a string of a line stands between two letters, which are of two words without it."""
    return is_letter(line[:start][-1:]) and is_letter(line[end:][:1])


class Piece(NamedTuple):
    """A piece of a line."""

    kind: str  #: ``text``, ``alone``, ``start`` or ``end``
    raw: str  #: as the line has it
    name: str = ""  #: of the element, in lower case where the syntax ignores case; empty if it is none
    text: str = ""  #: of a text, with entities resolved; of a mark of a note, what it shows

    @property
    def separates(self) -> bool:
        """Whether it is a tag that separates words."""
        name = self.name.lower()
        return name in SEPARATORS or (name in _NATIVE and _NATIVE_SEPARATOR.search(self.raw) is not None)


def without_strings(pieces: Iterable[Piece], strings: Strings, escaped: bool) -> Iterator[Piece]:
    """The pieces of a line, in which strings of the text stand alone.

    With each go the brackets that enclose it and what touches it; strings with marks between them are one.
    """
    return _joined(chain.from_iterable(_cut(piece, strings, escaped) for piece in pieces), escaped)


def _cut(piece: Piece, strings: Strings, escaped: bool) -> Iterator[Piece]:
    text, at = (piece.text if piece.kind == "text" else ""), 0
    spans = strings.spans(text)
    starts = {start for start, _ in spans}
    for start, end in spans:
        while at < start < end and text[start - 1] + text[end:][:1] in _ENCLOSING:
            start, end = start - 1, end + 1
        if start < end:
            if (attached := _ATTACHED.match(text, end)) and end not in starts:
                end = attached.end()
            if at < start:
                yield Piece("text", "", text=text[at:start])
            raw = _raw(text[start:end], escaped)
            yield Piece("alone", raw, CODE if CODES.fullmatch(raw) else STRING)
            at = end
    if at < len(text) or not text:
        yield piece._replace(text=text[at:] if text else piece.text)


def _raw(text: str, escaped: bool) -> str:
    return escape(text, quote=False) if escaped else text


def _joined(pieces: Iterable[Piece], escaped: bool) -> Iterator[Piece]:
    """Strings with what stands between them as one; so are tags that stand for words."""
    held: list[Piece] = []  # a string or tag, and what may stand between it and the next
    for piece in pieces:
        if piece.kind == "alone" and piece.name in _PLACEHOLDERS and not piece.separates:
            if len(held) == 2 or (held and held[0].name == piece.name == STRING):
                raw = "".join(_raw(part.text, escaped) if part.kind == "text" else part.raw for part in held)
                held = [Piece("alone", raw + piece.raw, STRING)]
                continue
            yield from held
            held = [piece]
        elif piece.kind == "text" and len(held) == 1 and _BETWEEN.fullmatch(piece.text):
            held.append(piece)
        else:
            yield from held
            held = []
            yield piece
    yield from held


def without_marks(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces of a line, in which marks of notes stand alone, such as ``<sup>1</sup>`` behind a word.

    The number of a formula, ``CO<sub>2</sub>``, is none, and neither is one within a word.
    """
    before, at = "", 0
    held: list[Piece] = []  # marks that touch
    while at < len(pieces):
        end = _end(pieces, at)
        if end > at + 1 and _is_mark(pieces[at:end], before, _text_behind(pieces, end)):
            held += pieces[at:end]
        else:
            yield from _as_one(held)
            held = []
            yield pieces[at]
            end = at + 1
        separates = any(piece.separates for piece in pieces[at:end])
        before = (before + " " * separates + "".join(piece.text for piece in pieces[at:end]))[-20:]
        at = end
    yield from _as_one(held)


def _as_one(mark: Sequence[Piece]) -> Iterator[Piece]:
    if mark:
        raw, text = ("".join(getattr(piece, name) for piece in mark) for name in ("raw", "text"))
        yield Piece("alone", raw, STRING, text.strip())


def _end(pieces: Sequence[Piece], start: int) -> int:
    """Behind the end tag of a short element; or behind the piece."""
    depth = length = 0
    for at in range(start, len(pieces)):
        depth += {"start": 1, "end": -1}.get(pieces[at].kind, 0)
        length += len(pieces[at].text)
        if depth <= 0 or length > _LONGEST_MARK:
            return at + 1 if depth == 0 else start + 1
    return start + 1


def _text_behind(pieces: Sequence[Piece], at: int) -> str:
    """The first two characters of the text from a piece on, up to the next tag that separates words or raises."""
    found = ""
    while at < len(pieces) and len(found) < 2 and pieces[at].name.lower() not in SEPARATORS | _RAISED:
        found, at = found + pieces[at].text, at + 1
    return found[:2]


def _is_mark(element: Sequence[Piece], before: str, behind: str) -> bool:
    shown, neighbour = "".join(piece.text for piece in element).strip(), before[-1:]
    if not shown or _GOES_ON.match(behind) or any(piece.separates for piece in element):
        return False
    if raised := {piece.name.lower() for piece in element} & _RAISED:
        if not any(map(str.isalpha, shown)):
            return raised <= {"sup", "superscript"} or not _FORMULA.search(before)
        is_word_end = len(before) > 2 and before[-3:].isalpha()
        return _LETTERS.fullmatch(shown) is not None and (is_word_end or neighbour in (*'.,;:!?)”“»"',))
    glued = neighbour.isalpha() if shown[0].isdigit() else neighbour.strip() != ""
    return glued and _MARK.fullmatch(shown) is not None
