"""Inline XML or HTML of a line: its text, and its elements as the line has them.

- Comments, processing instructions, ``<br/>``, HTML's void elements and ``<% … %>`` stand alone.  So do elements whose
  content is no text, together with it: HTML's ``script`` and ``style``; ``bpt``, ``ept``, ``ph``, ``it`` and ``ut`` of
  TMX and XLIFF; and others that are named.
- Two tags that stand alone but are halves of a pair (``bx`` and ``ex``, ``sc`` and ``ec``, ``bpt`` and ``ept``, ``ph``
  of type ``open`` and ``close``) enclose words as a pair of tags does.
- Tags that separate words, such as ``br``, ``img``, ``p`` and ``li``, are a space in the text.
- Strings that are not translated, such as URLs and placeholders, stand alone, too, if this is asked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape, unescape
from html.parser import HTMLParser
from typing import Literal, NamedTuple
from xml.parsers import expat

from alignment_eval.errors import InputError, UsageError, shown
from alignment_eval.transfer.units import Span

Syntax = Literal["xml", "html"]

#: HTML's elements that have no end tag (https://html.spec.whatwg.org/#void-elements).
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
#: HTML's elements whose content is not markup.
_RAW = frozenset({"script", "style"})
#: Elements of TMX and XLIFF 1.2 whose content is native code; ``ph`` has an attribute there, but none where it is a
#: phrase of DITA.
_OPAQUE = frozenset({"bpt", "ept", "ph", "it", "ut"})
#: The name of a string that is not translated, inside of a word.
_INSIDE_WORD = "#string"
#: Elements that separate words: HTML's blocks, breaks and images; TEI's breaks.
_SEPARATORS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "button", "caption", "cb", "center", "dd", "details"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("header", "hr", "img", "input", "lb", "legend", "li", "main", "nav", "ol", "optgroup", "option", "p", "pb"),
        *("pre", "section", "select", "summary", "table", "tbody", "td", "textarea", "tfoot", "th", "thead", "tr"),
        *("ul", "video", _INSIDE_WORD),
    )
)
#: Halves of a pair: element -> whether it begins the pair, its kind, and the attributes that may name the pair.
_HALVES = {
    "bx": (True, "x", ("rid", "id")),
    "ex": (False, "x", ("rid", "id")),
    "sc": (True, "c", ("id",)),
    "ec": (False, "c", ("startref", "id")),
    "bpt": (True, "pt", ("i", "rid", "id")),
    "ept": (False, "pt", ("i", "rid", "id")),
}
_ATTRIBUTE = re.compile(r"""\s([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>/]+))""")
_TAG_NAME = re.compile(r"</?([^\s/>]+)")
#: Comments, declarations and processing instructions, which show nothing; PHP's do.
_HIDDEN = re.compile(r"<!|<\?(?!=|php\b)")
#: Templates, whose content may have ``>``; tags whose name is a number.  HTML's parser knows neither.
_TEMPLATE = re.compile(r"<([%?]).*?\1>")
_NUMBERED = re.compile(r"<(/?)[0-9]([0-9]*\s*/?>)")
#: Elements whose content is not translated, besides those with ``translate="no"`` and ``mtype="protected"``.
_UNTRANSLATED = frozenset({"code", "kbd", "samp", "var"})
_TRANSLATE_NO = re.compile(r"""\s(?:translate\s*=\s*["']?no|mtype\s*=\s*["']?protected)\b""", re.IGNORECASE)
#: Strings that are not translated: URLs, mail addresses, placeholders of templates and of printf, emoji.
PROTECTED = re.compile(
    r"""\b(?:(?:https?|ftp)://|www\.)(?:[^\s<>()]|\([^\s<>()]*\))*(?:[^\s<>().,;:!?\]}"'»”“]|\([^\s<>()]*\))"""
    r"""|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"""
    r"""|\{\{[^{}]*\}\}|[$%#]?\{[^{}\s]*\}"""
    r"""|%(?:\(\w+\)|\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|z)?[sdiuoxXfFeEgGc@](?!\w)"""
    r"""|(?:[\U0001f000-\U0001faff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff][\ufe0f\u200d\U000e0020-\U000e007f]*)+"""
    r"""|[0-9#*]\ufe0f?\u20e3"""
)
#: Brackets and quotes that go with a string that is not translated, if they enclose nothing else.
_ENCLOSING = frozenset(("()", "[]", '""', "''", "„“", "“”", "«»", "»«", "‚‘", "‘’", "‹›", "›‹"))
#: The value that protects nothing.
NO_PROTECTION = "none"
_PAIRS = "expected both tags of a pair in one line; correct the tags, or cut the text where no tag is open"
_UNFINISHED = re.compile(r"<[A-Za-z/!?%]")
_SURROGATE = re.compile("[\ud800-\udfff]")
#: The element that a line of XML is read as.
_ROOT = "line-of-xml"


@dataclass(frozen=True)
class Element:
    """A pair of tags, or a tag that stands alone.

    Attributes:
        opening: the start tag, as the line has it; of a tag that stands alone, the whole tag.
        closing: the end tag; empty for a tag that stands alone.
        span: the characters of the text that it encloses; an empty span for a tag that stands alone.
        parent: the innermost element around it, as an index of :attr:`MarkedLine.elements`; None: there is none.
        is_word: whether it stands alone for a word: it is shown, and touches no letter.
    """

    opening: str
    closing: str
    span: Span
    parent: int | None
    is_word: bool = False


@dataclass(frozen=True)
class MarkedLine:
    """A line whose tags were taken out.

    Attributes:
        text: the line without tags, entities resolved; a line break that an entity names is a space, and so is a tag
            that separates words.
        elements: its elements in the order of their start tags.
        escaped: whether the line has entities for characters that the syntax reserves.
    """

    text: str
    elements: tuple[Element, ...]
    escaped: bool = True


class _Piece(NamedTuple):
    """A piece of a line.

    Attributes:
        kind: ``text``, ``alone``, ``start`` or ``end``.
        raw: the tag as the line has it, or the text with entities resolved.
        name: of the element, in lower case where the syntax ignores case; empty if it is none.
        source: of a text, as the line has it.
    """

    kind: str
    raw: str
    name: str = ""
    source: str = ""


def _without_content(pieces: Iterable[_Piece], opaque: Collection[str], untranslated: bool = False) -> Iterator[_Piece]:
    """The pieces of a line, in which elements whose content is no text stand alone, together with it.

    ``opaque`` are names of such elements besides :data:`_OPAQUE`; ``untranslated``: so do those of
    :data:`_TRANSLATE_NO`.
    """
    inside: list[_Piece] = []  # from the start tag of such an element
    depth = 0  # how many elements of its name are open
    for piece in pieces:
        if (
            not inside
            and piece.kind == "start"
            and (piece.name in opaque or _is_code(piece) or (untranslated and _TRANSLATE_NO.search(piece.raw)))
        ):
            depth = 0
        elif not inside:
            yield piece
            continue
        inside.append(piece)
        depth += {"start": 1, "end": -1}.get(piece.kind, 0) if piece.name == inside[0].name else 0
        if depth == 0:
            yield _Piece("alone", "".join(part.source or part.raw for part in inside), piece.name)
            inside = []
    if inside:
        raise InputError(f"found {inside[0].raw} without an end tag; {_PAIRS}")


def _is_code(tag: _Piece) -> bool:
    return tag.name in _OPAQUE and (tag.name != "ph" or "=" in tag.raw)


@dataclass
class _Open:
    """An element that is open: its index, its name, and whether it is half of a pair, which may stand alone."""

    index: int
    name: str
    is_half: bool


def _marked(pieces: Iterable[_Piece]) -> MarkedLine:
    """The text and the elements of a line, in the order of the line."""
    text = ""
    elements: list[Element] = []
    opened: list[_Open] = []
    separate = False  # whether a tag since the last text separates words

    def close(place: int, tag: str) -> None:
        index = opened[place].index
        del opened[place:]
        elements[index] = replace(elements[index], closing=tag, span=(elements[index].span[0], len(text)))

    for piece in pieces:
        separates = piece.name.lower() in _SEPARATORS and piece.kind != "text"
        if piece.kind == "text" or piece.kind == "start":
            if (separate or separates) and text and not text[-1].isspace() and not piece.raw[0].isspace():
                text += " "
            separate = False
        if piece.kind == "text":
            text += piece.raw.replace("\r", " ").replace("\n", " ")
            continue
        separate |= separates and piece.kind != "start"
        half = _half(piece) if piece.kind == "alone" else None
        if half is not None and not half[0]:
            halves = itertools.takewhile(lambda place: opened[place].is_half, reversed(range(len(opened))))
            place = next((place for place in halves if opened[place].name == half[1]), None)
            if place is not None:
                close(place, piece.raw)
                continue
        if piece.kind == "end":
            while opened and opened[-1].is_half:
                opened.pop()
            if not opened:
                raise InputError(f"found {piece.raw} without a start tag; {_PAIRS}")
            if opened[-1].name != piece.name:
                raise InputError(f"found {piece.raw} where {elements[opened[-1].index].opening} is open; {_PAIRS}")
            close(len(opened) - 1, piece.raw)
            continue
        parent = opened[-1].index if opened else None
        elements.append(Element(piece.raw, "", (len(text), len(text)), parent))
        if piece.kind == "start":
            opened.append(_Open(len(elements) - 1, piece.name, is_half=False))
        elif half is not None and half[0]:
            opened.append(_Open(len(elements) - 1, half[1], is_half=True))
    if unclosed := [one for one in opened if not one.is_half]:
        raise InputError(f"found {elements[unclosed[-1].index].opening} without an end tag; {_PAIRS}")
    return MarkedLine(text, tuple(_finished(element, elements, text) for element in elements))


def _half(piece: _Piece) -> tuple[bool, str] | None:
    """Whether a tag begins or ends a pair of which it is half, and the name of the pair; None: it is no half."""
    tag = piece.raw.partition(">")[0]
    attributes = {key.lower(): "".join(values) for key, *values in _ATTRIBUTE.findall(tag)}
    if piece.name == "ph" and attributes.get("type") in ("open", "close"):
        return attributes["type"] == "open", "ph"
    begins, kind, names = _HALVES.get(piece.name, (False, "", ()))
    value = next((attributes[name] for name in names if name in attributes), None)
    return None if value is None else (begins, f"{kind} {value}")


def _finished(element: Element, elements: Sequence[Element], text: str) -> Element:
    """An element, now that all pairs are known: its parent is a pair."""
    parent = element.parent
    while parent is not None and not elements[parent].closing:
        parent = elements[parent].parent
    at = element.span[0]
    sides = text[:at][-1:], text[at:][:1]
    alone = not element.closing and _HIDDEN.match(element.opening) is None
    return replace(element, parent=parent, is_word=alone and sides != ("", "") and not any(map(is_letter, sides)))


def is_letter(character: str) -> bool:
    """Whether a character is of a word."""
    return character.isalnum() or character == "_"


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
        return re.compile(f"{PROTECTED.pattern}|(?:{stated})")
    except re.error as error:
        raise UsageError(f"protect {shown(stated)}: no regular expression: {error}") from error


def protect(line: str, strings: re.Pattern[str] = PROTECTED) -> MarkedLine:
    """A line of plain text as one without the strings that are not translated, which are its elements.

    A model that translates the rest gets them back by :func:`transfer_markup`, letter by letter.
    """
    marked = _marked(_without_strings([_Piece("text", line, source=line)], strings, escaped=False))
    return replace(marked, escaped=False)


def _without_strings(pieces: Iterable[_Piece], strings: re.Pattern[str], escaped: bool) -> Iterator[_Piece]:
    """The pieces of a line, in which strings of the text stand alone."""
    for piece in pieces:
        at = 0
        for found in strings.finditer(piece.raw) if piece.kind == "text" else ():
            start, end = found.span()
            while at < start < end and piece.raw[start - 1] + piece.raw[end:][:1] in _ENCLOSING:
                start, end = start - 1, end + 1
            if start < end:
                yield from _text(piece.raw[at:start])
                name = _INSIDE_WORD if is_inside_word(piece.raw, start, end) else ""
                string = piece.raw[start:end]
                yield _Piece("alone", escape(string, quote=False) if escaped else string, name)
                at = end
        if piece.kind == "text":
            yield from _text(piece.raw[at:])
        else:
            yield piece


def is_inside_word(line: str, start: int, end: int) -> bool:
    """Whether a string of a line stands between two letters, which are of two words without it."""
    return all(map(is_letter, (line[:start][-1:], line[end:][:1])))


def _text(raw: str) -> Iterator[_Piece]:
    if raw:
        yield _Piece("text", raw)


def parse_markup(
    line: str, syntax: Syntax, opaque: Collection[str] = (), strings: re.Pattern[str] | None = None
) -> MarkedLine:
    """Take the tags out of a line, which is parsed by the standard library.

    XML is parsed as the content of an element: a line cannot declare a document type, so entities other than XML's five
    and characters by number are unknown, and none is expanded or loaded.  In HTML a tag ``<b/>`` stands alone, as in
    XML, and an end tag that HTML allows to omit is not omitted.

    Args:
        line: one line without its line break.
        syntax: ``xml`` or ``html``.
        opaque: names of further elements whose content is no text.
        strings: what is not translated stands alone, too: such strings of the text, ``code``, ``kbd``, ``samp``,
            ``var``, and elements with ``translate="no"``; None: it is text.

    Raises:
        InputError: the tags are not in pairs, or the line is not of this syntax; without file and line.
    """
    if half := _SURROGATE.search(line):
        raise InputError(f"found the surrogate {half[0]!r}; expected Unicode text; read the text as UTF-8")
    pieces: Iterable[_Piece] = _xml_pieces(line) if syntax == "xml" else _html_pieces(line)
    if strings is None:
        return _marked(_without_content(pieces, frozenset(opaque)))
    whole = _without_content(pieces, _UNTRANSLATED.union(opaque), untranslated=True)
    return _marked(_without_strings(whole, strings, escaped=True))


def _xml_pieces(line: str) -> Iterator[_Piece]:
    """Parse with expat, which tells where each event begins, in bytes; a tag ends where the next event begins.

    Of tags that are not in pairs the pieces up to the wrong tag are yielded: who reads them names it.
    """
    document = f"<{_ROOT}>{line}</{_ROOT}>".encode()
    events: list[tuple[int, str, str]] = []  # byte, kind, name or text
    parser = expat.ParserCreate()

    def record(kind: str, value: str = "") -> None:
        events.append((parser.CurrentByteIndex, kind, value))

    parser.StartElementHandler = lambda name, _attributes: record("start", name)
    parser.EndElementHandler = lambda name: record("end", name)
    parser.CharacterDataHandler = lambda text: record("text", text)
    parser.CommentHandler = lambda _text: record("alone")
    parser.ProcessingInstructionHandler = lambda _target, _text: record("alone")
    parser.StartCdataSectionHandler = lambda: record("other")
    parser.EndCdataSectionHandler = lambda: record("other")
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        found, at = expat.errors.messages[error.code], parser.ErrorByteIndex
        if found == expat.errors.XML_ERROR_TAG_MISMATCH:
            at = document.rindex(b"<", 0, at)  # the place is behind </
            tag = document[at:].partition(b">")[0].decode() + ">"
            yield from _pieces_of_events(document, [*events, (at, "other", "")])
            if tag == f"</{_ROOT}>" and at + len(tag) == len(document):
                return
            yield _Piece("end", tag, tag[2:-1].strip())
        rest = document[at : -len(f"</{_ROOT}>")].decode(errors="ignore") or line[line.rfind("<") :]
        raise InputError(
            f"found {found}, {shown(rest)}; expected XML, &amp; for &, &lt; for <; correct it, or read HTML"
        ) from error
    yield from _pieces_of_events(document, events)


def _pieces_of_events(document: bytes, events: list[tuple[int, str, str]]) -> Iterator[_Piece]:
    """The content of the root, from the events without the first and the last."""
    for (begin, kind, value), (end, _, _) in list(itertools.pairwise(events))[1:]:
        tag = document[begin:end].decode()
        if kind == "text":
            yield _Piece(kind, value, source=tag)
        elif kind == "start" and tag.endswith("/>"):
            yield _Piece("alone", tag, value)
        elif kind != "other" and tag:  # <b/> ends too, without a tag
            yield _Piece(kind, tag, value)


class _HtmlEvents(HTMLParser):
    """Where tags and texts of a line begin: character, kind, name."""

    def __init__(self, line: str) -> None:
        super().__init__(convert_charrefs=True)
        self.events: list[tuple[int, str, str]] = []
        self.feed(line)
        self.close()

    def _record(self, kind: str, name: str = "") -> None:
        if kind == "text" == (self.events[-1][1] if self.events else ""):
            return  # "a < b" is three pieces of one text
        self.events.append((self.getpos()[1], kind, name))

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._record("alone" if tag in _VOID else "start", tag)

    def handle_endtag(self, tag: str) -> None:
        self._record("end", tag)

    def handle_data(self, data: str) -> None:
        self._record("text")

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._record("alone", tag)

    def _alone(self, *_: object, **__: object) -> None:
        self._record("alone")

    handle_comment = handle_decl = unknown_decl = handle_pi = _alone


def _html_pieces(line: str) -> Iterator[_Piece]:
    """The pieces of a line of HTML; a tag ends where the next event begins."""
    known = _TEMPLATE.sub(lambda found: f"<?{'x' * (len(found[0]) - 3)}>", line)
    events = _HtmlEvents(_NUMBERED.sub(r"<\1q\2", known)).events  # letter by letter as long as the line
    if not events or events[0][0] > 0:
        events.insert(0, (0, "text", ""))
    raw_from = None  # where <script> or <style> begins
    for (begin, kind, name), (end, _, _) in itertools.pairwise([*events, (len(line), "", "")]):
        raw = line[begin:end]
        if raw_from is not None:
            if kind == "end":
                yield _Piece("alone", line[raw_from:end])
                raw_from = None
        elif kind == "text":
            if unfinished := _UNFINISHED.search(raw):
                raise _unfinished(raw[unfinished.start() :])
            yield _Piece(kind, unescape(raw), source=raw)
        elif not raw.endswith(">"):
            raise _unfinished(raw)
        elif kind == "start" and name in _RAW:
            raw_from = begin
        else:
            named = _TAG_NAME.match(raw)
            yield _Piece(kind, raw, named[1].lower() if named and name else "")
    if raw_from is not None:
        raise _unfinished(line[raw_from:])


def _unfinished(found: str) -> InputError:
    return InputError(f"found {shown(found)}, which does not end; expected a whole tag; end it, or write &lt; for <")
