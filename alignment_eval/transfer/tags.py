"""Inline XML or HTML of a line: its text, and its elements as the line has them.

- Comments, processing instructions, ``<br/>``, HTML's void elements and ``<% … %>`` stand alone.  So do elements whose
  content is no text, together with it: HTML's ``script`` and ``style``; ``bpt``, ``ept``, ``ph``, ``it`` and ``ut`` of
  TMX and XLIFF; and others that are named.
- Two tags that stand alone but are halves of a pair (``bx`` and ``ex``, ``sc`` and ``ec``, ``bpt`` and ``ept``, ``ph``
  of type ``open`` and ``close``) enclose words as a pair of tags does.  So do codes of CAT tools, ``{1>`` and ``<1}``,
  where strings that are not translated stand alone.
- Tags that separate words, such as ``br``, ``img``, ``p`` and ``li``, are a space in the text.  So are those whose type
  or native code says that, such as ``<x ctype="lb"/>``, and spaces inside an element whose content is no text.
- Marks of notes, such as ``<sup>1</sup>`` behind a word, stand alone together with what they show.
- Strings that are not translated, such as URLs and placeholders, stand alone, too, if this is asked for.  Those with
  marks between them, ``{0}.{1}``, are one string.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape
from itertools import takewhile
from typing import Literal, NamedTuple
from xml.parsers import expat

from alignment_eval.errors import InputError, shown
from alignment_eval.maps.sentence import Span
from alignment_eval.transfer.pieces import (
    CODE,
    CODES,
    PROTECTED,
    STRING,
    Piece,
    Strings,
    without_marks,
    without_strings,
)
from alignment_eval.transfer.units import is_letter

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
#: Halves of a pair: element -> whether it begins the pair, its kind, and the attributes that may name the pair.
_HALVES = {
    "bx": (True, "x", ("rid", "id")),
    "ex": (False, "x", ("rid", "id")),
    "sc": (True, "c", ("id",)),
    "ec": (False, "c", ("startref", "id")),
    "bpt": (True, "pt", ("i", "rid", "id")),
    "ept": (False, "pt", ("i", "rid", "id")),
}
#: Elements whose content is not translated, besides those with ``translate="no"``, ``mtype="protected"`` and Google's
#: ``class="notranslate"``.
_UNTRANSLATED = frozenset({"code", "kbd", "samp", "var"})
_TRANSLATE_NO = re.compile(
    r"""\s(?:translate\s*=\s*["']?no|mtype\s*=\s*["']?protected|class\s*=[^=>]*?\b(?:no|skip)translate)\b""",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""\s([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>/]+))""")
#: Comments, declarations and processing instructions, which show nothing; PHP's do.
_HIDDEN = re.compile(r"<!|<\?(?!=|php\b)")
#: A tag of either syntax: a comment, CDATA, a template or processing instruction, a declaration, or the tag of an
#: element with its name, without the ``>`` if it does not end.
_TAG = r"""
    <!--.*?-->
    | <!\[CDATA\[(?P<cdata>.*?)\]\]>
    | <(?P<mark>[%?]).*?(?P=mark)>
    | <\?[^>]*>
    | <!(?!--)[^>]*>
    | </?(?P<name>{name}) (?: =\s*"[^"]*" | =\s*'[^']*' | =(?!\s*["']) | [^>=] )* >?
    | <[{unfinished}]
"""
_TAGS = {
    "xml": re.compile(_TAG.format(name=r"[^\s/>!?]+", unfinished="/!?"), re.VERBOSE | re.DOTALL),
    # the name of a tag of HTML may be a number, but 1 <2 is text
    "html": re.compile(
        _TAG.format(name=r"[A-Za-z][^\s/>]*|[0-9]+(?=\s*/?>)", unfinished="A-Za-z/!?%"), re.VERBOSE | re.DOTALL
    ),
}
_PAIRS = "expected both tags of a pair in one line; correct the tags, or cut the text where no tag is open"
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
        mark: what it shows, if it is the mark of a note.
        is_word: whether it stands alone for a word: it is shown, and touches no letter.
    """

    opening: str
    closing: str
    span: Span
    parent: int | None
    mark: str = ""
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


def parse_markup(line: str, syntax: Syntax, opaque: Collection[str] = (), strings: Strings | None = None) -> MarkedLine:
    """Take the tags out of a line.

    XML must be the content of an element: a line cannot declare a document type, so entities other than XML's five and
    characters by number are unknown, and none is expanded or loaded.  In HTML a tag ``<b/>`` stands alone, as in XML,
    and an end tag that HTML allows to omit is not omitted.

    Args:
        line: one line without its line break.
        syntax: ``xml`` or ``html``.
        opaque: names of further elements whose content is no text.
        strings: what is not translated stands alone, too: such strings of the text, ``code``, ``kbd``, ``samp``,
            ``var``, and elements with ``translate="no"`` or ``class="notranslate"``; None: it is text.

    Raises:
        InputError: the tags are not in pairs, or the line is not of this syntax; without file and line.
    """
    if half := _SURROGATE.search(line):
        raise InputError(f"found the surrogate {half[0]!r}; expected Unicode text; read the text as UTF-8")
    in_pairs = syntax == "html" or _check_xml(line)
    names = frozenset(opaque) if strings is None else _UNTRANSLATED.union(opaque)
    found = _without_content(_pieces(line, syntax), names, untranslated=strings is not None)
    pieces = without_marks(list(found))
    marked = _marked(pieces if strings is None else without_strings(pieces, strings, escaped=True))
    if not in_pairs:  # inside an element whose content is no text
        raise InputError(f"found tags that are not in pairs in {shown(line)}; {_PAIRS}")
    return marked


def protect(line: str, strings: Strings = PROTECTED) -> MarkedLine:
    """A line of plain text as one without the strings that are not translated, which are its elements.

    The translation of the rest gets them back by :func:`alignment_eval.transfer.markup.transfer_markup`.
    """
    marked = _marked(without_strings([Piece("text", line, text=line)], strings, escaped=False))
    return replace(marked, escaped=False)


def _check_xml(line: str) -> bool:
    """Check that a line is XML; gives whether its tags are in pairs, which who reads the tags says better."""
    document = f"<{_ROOT}>{line}</{_ROOT}>".encode()
    parser = expat.ParserCreate()
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        found = expat.errors.messages[error.code]
        if found == expat.errors.XML_ERROR_TAG_MISMATCH:
            return False
        rest = document[parser.ErrorByteIndex : -len(f"</{_ROOT}>")].decode(errors="ignore") or line[line.rfind("<") :]
        raise InputError(
            f"found {found}, {shown(rest)}; expected XML, &amp; for &, &lt; for <; correct it, or read HTML "
            f'(--markup html, in Python syntax="html")'
        ) from error
    return True


def _pieces(line: str, syntax: Syntax) -> Iterator[Piece]:
    """The tags of a line, and the text between them."""
    is_html = syntax == "html"
    at = 0
    while at < len(line):
        found = _TAGS[syntax].search(line, at)
        if text := line[at : found.start() if found else None]:
            yield Piece("text", text, text=unescape(text))
        if found is None:
            return
        raw, at, name = found[0], found.end(), found["name"] or ""
        name = name.lower() if is_html else name
        is_raw = is_html and name in _RAW and raw[1] != "/" and raw.endswith(">") and not raw.endswith("/>")
        if is_raw:
            end = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(line, at)
            at = end.end() if end else len(line)
            raw = line[found.start() : at] if end else ""
        if not raw.endswith(">"):
            raise InputError(
                f"found {shown(line[found.start() :])}, which does not end; expected a whole tag; end it, or write "
                f"&lt; for <"
            )
        if raw.startswith("</"):
            yield Piece("end", raw, name)
        elif found["cdata"] is not None and not is_html:
            yield Piece("text", raw, text=found["cdata"])
        else:
            is_alone = is_raw or not name or raw.endswith("/>") or (is_html and name in _VOID)
            yield Piece("alone" if is_alone else "start", raw, name)


def _without_content(pieces: Iterable[Piece], opaque: Collection[str], untranslated: bool) -> Iterator[Piece]:
    """The pieces of a line, in which elements whose content is no text stand alone, together with it.

    ``opaque`` are names of such elements besides :data:`_OPAQUE`; ``untranslated``: so do those of
    :data:`_TRANSLATE_NO`.
    """
    inside: list[Piece] = []  # from the start tag of such an element
    depth = 0  # how many elements of its name are open
    for piece in pieces:
        begins = piece.kind == "start" and (
            piece.name in opaque
            or (piece.name in _OPAQUE and (piece.name != "ph" or "=" in piece.raw))
            or (untranslated and _TRANSLATE_NO.search(piece.raw) is not None)
        )
        if not inside and not begins:
            yield piece
            continue
        inside.append(piece)
        depth += {"start": 1, "end": -1}.get(piece.kind, 0) if piece.name == inside[0].name else 0
        if depth == 0:
            whole = Piece("alone", "".join(part.raw for part in inside), piece.name)
            yield from _blanks_outside(whole, inside) if piece.name not in _OPAQUE else [whole]
            inside = []
    if inside:
        raise InputError(f"found {inside[0].raw} without an end tag; {_PAIRS}")


def _blanks_outside(element: Piece, inside: Sequence[Piece]) -> list[Piece]:
    """An element with a space on each side where its content has one: it is none in the text, but separates words."""
    content = "".join(" " if piece.separates else piece.text for piece in inside)
    before, behind = content[:1].isspace(), content[-1:].isspace()
    space = Piece("text", "", text=" ")
    return [space] * before + [element] + [space] * behind


class _Open(NamedTuple):
    """An element that is open: its number, its name, and whether it is half of a pair, which may stand alone."""

    number: int
    name: str
    is_half: bool


def _marked(pieces: Iterable[Piece]) -> MarkedLine:
    """The text and the elements of a line, in the order of the line."""
    text = ""
    elements: list[Element] = []
    opened: list[_Open] = []
    separate = False  # whether a tag since the last text separates words
    apart = False  # whether a string since then does: it keeps two words apart
    for piece in pieces:
        if piece.kind == "text" or piece.kind == "start":
            if (separate or piece.separates) and text and not text[-1].isspace() and not piece.text[:1].isspace():
                text += " "
            separate = False
        if piece.kind == "text":
            text += " " * (apart and is_letter(text[-1:]) and is_letter(piece.text[:1]))
            text += piece.text.replace("\r", " ").replace("\n", " ")
            apart = False
            continue
        separate |= piece.separates and piece.kind != "start"
        apart |= piece.name == STRING
        half = _half(piece) if piece.kind == "alone" else None
        closed = None  # the place of the element that this tag ends
        if piece.kind == "end":
            while opened and opened[-1].is_half:
                opened.pop()
            if not opened:
                raise InputError(f"found {piece.raw} without a start tag; {_PAIRS}")
            if opened[-1].name != piece.name:
                raise InputError(f"found {piece.raw} where {elements[opened[-1].number].opening} is open; {_PAIRS}")
            closed = len(opened) - 1
        elif half is not None and not half[0]:
            halves = takewhile(lambda place: opened[place].is_half, reversed(range(len(opened))))
            closed = next((place for place in halves if opened[place].name == half[1]), None)
        if closed is not None:
            index = opened[closed].number
            del opened[closed:]
            elements[index] = replace(elements[index], closing=piece.raw, span=(elements[index].span[0], len(text)))
            continue
        parent = opened[-1].number if opened else None
        elements.append(Element(piece.raw, "", (len(text), len(text)), parent, piece.text))
        if piece.kind == "start" or (half is not None and half[0]):
            opened.append(_Open(len(elements) - 1, half[1] if half else piece.name, is_half=half is not None))
    if unclosed := [element for element in opened if not element.is_half]:
        raise InputError(f"found {elements[unclosed[-1].number].opening} without an end tag; {_PAIRS}")
    return MarkedLine(text, tuple(_finished(element, elements, text) for element in elements))


def _half(piece: Piece) -> tuple[bool, str] | None:
    """Whether a tag begins or ends a pair of which it is half, and the name of the pair; None: it is no half."""
    if piece.name == CODE and (code := CODES.fullmatch(piece.raw)) and code.lastindex:
        return code.lastindex % 2 == 1, f"{(code.lastindex + 1) // 2} {code[code.lastindex]}"
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
    alone = not element.closing and _HIDDEN.match(element.opening) is None and not (element.mark and sides[0].strip())
    return replace(element, parent=parent, is_word=alone and sides != ("", "") and not any(map(is_letter, sides)))
