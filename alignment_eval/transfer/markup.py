"""Inline XML or HTML of a line: taken out before translation, put onto the translation after it.

The rules of where a tag goes are those of :mod:`alignment_eval.transfer.places`.  Those of the text:

- Each tag of the source stands in the output once, letter by letter, in the same nesting.  Comments, processing
  instructions, ``<br/>``, HTML's void elements and HTML's ``script`` and ``style`` with their content stand alone: they
  are put between two words.
- The words of the output are those of the target: without its tags and with its entities resolved, the output is the
  target, blank by blank.  Blanks that the source has inside a tag's border are not copied: a tag touches the words
  that it encloses.  A tag that stands alone touches the word that it touches in the source.
- The target is plain text: ``&``, ``<`` and ``>`` are escaped in it, so ``&amp;`` of a target becomes ``&amp;amp;``.
  A target that has one of the source's tags already is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape, unescape
from html.parser import HTMLParser
from itertools import pairwise
from typing import Literal, NamedTuple
from xml.parsers import expat

from alignment_eval.errors import InputError, shown
from alignment_eval.transfer.places import element_places
from alignment_eval.transfer.units import Span, WordLink

Syntax = Literal["xml", "html"]

#: HTML's elements that have no end tag (https://html.spec.whatwg.org/#void-elements).
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
#: HTML's elements whose content is not markup.
_RAW = frozenset({"script", "style"})
_PAIRS = "expected both tags of a pair in one line; correct the tags, or cut the text where no tag is open"
_UNFINISHED = re.compile(r"<[A-Za-z/!?]")
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
    """

    opening: str
    closing: str
    span: Span
    parent: int | None


@dataclass(frozen=True)
class MarkedLine:
    """A line whose tags were taken out.

    Attributes:
        text: the line without tags, entities resolved; a line break that an entity names is a blank.
        elements: its elements in the order of their start tags.
    """

    text: str
    elements: tuple[Element, ...]


class _Piece(NamedTuple):
    """A piece of a line.

    Attributes:
        kind: ``text``, ``alone``, ``start`` or ``end``.
        raw: the tag as the line has it, or the text with entities resolved.
        name: of the element of a tag in a pair.
    """

    kind: str
    raw: str
    name: str = ""


def _marked(pieces: Iterable[_Piece]) -> MarkedLine:
    """The text and the elements of a line, in the order of the line."""
    texts: list[str] = []
    elements: list[Element] = []
    opened: list[tuple[int, str]] = []  # index, name
    length = 0
    for kind, raw, name in pieces:
        if kind == "text":
            texts.append(raw.replace("\r", " ").replace("\n", " "))
            length += len(raw)
        elif kind == "end":
            index, expected = opened.pop() if opened else (-1, "")
            if expected != name:
                found = f"{raw} where {elements[index].opening} is open" if expected else f"{raw} without a start tag"
                raise InputError(f"found {found}; {_PAIRS}")
            start = elements[index].span[0]
            elements[index] = replace(elements[index], closing=raw, span=(start, length))
        else:
            elements.append(Element(raw, "", (length, length), opened[-1][0] if opened else None))
            if kind == "start":
                opened.append((len(elements) - 1, name))
    if opened:
        raise InputError(f"found {elements[opened[-1][0]].opening} without an end tag; {_PAIRS}")
    return MarkedLine("".join(texts), tuple(elements))


def parse_markup(line: str, syntax: Syntax) -> MarkedLine:
    """Take the tags out of a line, which is parsed by the standard library.

    XML is parsed as the content of an element: a line cannot declare a document type, so entities other than XML's five
    and characters by number are unknown, and none is expanded or loaded.  In HTML a tag ``<b/>`` stands alone, as in
    XML, and an end tag that HTML allows to omit is not omitted.

    Args:
        line: one line without its line break.
        syntax: ``xml`` or ``html``.

    Raises:
        InputError: the tags are not in pairs, or the line is not of this syntax; without file and line.
    """
    if half := _SURROGATE.search(line):
        raise InputError(f"found the surrogate {half[0]!r}; expected Unicode text; read the text as UTF-8")
    return _parse_xml(line) if syntax == "xml" else _marked(_html_pieces(line))


def _parse_xml(line: str) -> MarkedLine:
    """Parse with expat, which tells where each event begins, in bytes; a tag ends where the next event begins."""
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
        found = expat.errors.messages[error.code]
        at = parser.ErrorByteIndex
        if found == expat.errors.XML_ERROR_TAG_MISMATCH:  # the place is behind </
            at = document.rindex(b"<", 0, at)
            tag = document[at:].partition(b">")[0].decode() + ">"
            wrong = [] if tag.startswith(f"</{_ROOT}") else [_Piece("end", tag, tag[2:-1].strip())]
            _marked([*_xml_pieces(document, [*events, (at, "other", "")]), *wrong])
        rest = document[at : -len(f"</{_ROOT}>")].decode(errors="ignore") or line[line.rfind("<") :]
        raise InputError(
            f"found {found}, {shown(rest)}; expected XML, &amp; for &, &lt; for <; correct it, or read HTML"
        ) from error
    return _marked(_xml_pieces(document, events))


def _xml_pieces(document: bytes, events: list[tuple[int, str, str]]) -> Iterator[_Piece]:
    """The content of the root, from the events without the first and the last."""
    for (begin, kind, value), (end, _, _) in list(pairwise(events))[1:]:
        tag = document[begin:end].decode()
        if kind == "text":
            yield _Piece(kind, value)
        elif kind == "start" and tag.endswith("/>"):
            yield _Piece("alone", tag)
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

    def _alone(self, *_: object, **__: object) -> None:
        self._record("alone")

    handle_startendtag = handle_comment = handle_decl = unknown_decl = handle_pi = _alone


def _html_pieces(line: str) -> Iterator[_Piece]:
    """The pieces of a line of HTML; a tag ends where the next event begins."""
    events = _HtmlEvents(line).events
    if not events or events[0][0] > 0:
        events.insert(0, (0, "text", ""))
    raw_from = None  # where <script> or <style> begins
    for (begin, kind, name), (end, _, _) in pairwise([*events, (len(line), "", "")]):
        raw = line[begin:end]
        if raw_from is not None:
            if kind == "end":
                yield _Piece("alone", line[raw_from:end])
                raw_from = None
        elif kind == "text":
            if unfinished := _UNFINISHED.search(raw):
                raise _unfinished(raw[unfinished.start() :])
            yield _Piece(kind, unescape(raw))
        elif not raw.endswith(">"):
            raise _unfinished(raw)
        elif kind == "start" and name in _RAW:
            raw_from = begin
        else:
            yield _Piece(kind, raw, name)
    if raw_from is not None:
        raise _unfinished(line[raw_from:])


def _unfinished(found: str) -> InputError:
    return InputError(f"found {shown(found)}, which does not end; expected a whole tag; end it, or write &lt; for <")


def transfer_markup(
    source: MarkedLine,
    source_spans: Sequence[Span],
    target: str,
    target_spans: Sequence[Span],
    links: Mapping[WordLink, float] | Collection[WordLink],
) -> str:
    """Put the tags of a source line onto its translation.

    Args:
        source: the source line.
        source_spans: the words of ``source.text``, by character.
        target: the translation, plain text without tags and entities.
        target_spans: the words of ``target``, by character.
        links: links (source word, target word), from 0; with confidences from 0 to 1 where there are any.

    Returns:
        The translation with the tags of the source; ``& < >`` of it are escaped.

    Raises:
        InputError: the target has a tag of the source already, a line is too long, or a link is between words that
            there are not; without file and line.
    """
    for i, j in links:
        if not (0 <= i < len(source_spans) and 0 <= j < len(target_spans)):
            raise InputError(
                f"found the link {i}-{j}; expected links between {len(source_spans)} source and {len(target_spans)} "
                "target words, from 0; align these very lines"
            )
    for element in source.elements:
        for tag in filter(None, (element.opening, element.closing)):
            if tag in target and tag not in source.text:
                raise InputError(
                    f"found the tag {shown(tag)} in the translation already; expected a translation without tags; "
                    "take its tags out"
                )
    places = element_places(
        source.text,
        [element.span for element in source.elements],
        [element.parent for element in source.elements],
        source_spans,
        target,
        target_spans,
        links,
    )
    return _written(source.elements, target, places)


def _written(elements: Sequence[Element], target: str, places: Sequence[tuple[int, Span]]) -> str:
    """The target with tags; places are (order among the siblings, span) of each element."""
    children: dict[int | None, list[int]] = {}
    for index in sorted(range(len(elements)), key=lambda index: places[index][0], reverse=True):
        children.setdefault(elements[index].parent, []).append(index)  # the last first, as a stack wants them
    written = []
    at = 0
    waiting = [(index, False) for index in children.get(None, [])]  # tags to write: element, is it the end tag
    while waiting:
        index, is_end = waiting.pop()
        place = places[index][1][is_end]
        tag = elements[index].closing if is_end else elements[index].opening
        written += [escape(target[at:place], quote=False), tag]
        at = place
        if not is_end:
            waiting.append((index, True))
            waiting += [(child, False) for child in children.get(index, [])]
    return "".join(written) + escape(target[at:], quote=False)
