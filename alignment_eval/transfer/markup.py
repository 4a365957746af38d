"""Puts the inline tags of a line (:mod:`alignment_eval.transfer.tags`) onto its translation.

The rules of where a tag goes are those of :mod:`alignment_eval.transfer.places`.  Those of the text:

- Each tag of the source stands in the output once, letter by letter, in the same nesting.
- The words of the output are those of the target: without its tags and with its entities resolved, the output is the
  target, space by space.  Spaces that the source has inside a tag's border are not copied: a tag touches the words
  that it encloses.  A tag that stands alone touches the word that it touches in the source.  One that touches none
  stands for a word itself: where the target has no space beside it, it gets one, in scripts with spaces.
- The target is plain text: ``&``, ``<`` and ``>`` are escaped in it, so ``&amp;`` of a target becomes ``&amp;amp;``.
  A target that has one of the source's tags already is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

from alignment_eval.characters import is_unspaced
from alignment_eval.errors import InputError, shown
from alignment_eval.transfer.places import element_places
from alignment_eval.transfer.tags import Element, MarkedLine
from alignment_eval.transfer.units import Span, WordLink, check_inside, is_letter

#: Marks that have no space behind them, and before them.
_OPENING, _CLOSING = "([{„“‚‘«‹¿¡/", ")]},.;:!?…”’»›%/"


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
    check_inside(links, (len(source_spans), len(target_spans)))
    for element in source.elements:
        for tag in filter(None, (element.opening, element.closing)):
            if source.escaped and tag.startswith("<") and tag in target and tag not in source.text:
                raise InputError(
                    f"found the tag {shown(tag)} in the translation already; expected a translation without tags; "
                    "take its tags out"
                )
    return _written(source, target, element_places(source, source_spans, target, target_spans, links))


def _written(source: MarkedLine, target: str, places: Sequence[tuple[int, Span]]) -> str:
    """The target with tags; places are (order among the siblings, span) of each element."""
    elements = source.elements
    children: dict[int | None, list[int]] = {}
    for index in sorted(range(len(elements)), key=lambda index: places[index][0], reverse=True):
        children.setdefault(elements[index].parent, []).append(index)  # the last first, as a stack wants them
    written: list[str] = []
    begun = 0  # where the start tags begin that are the last of these
    space = ""  # to be written behind the end tags that follow
    last = ""  # the last character that is shown
    at = 0
    waiting = [(index, False) for index in children.get(None, [])]  # tags to write: element, is it the end tag
    while waiting:
        index, is_end = waiting.pop()
        element, place = elements[index], places[index][1][is_end]
        if not is_end or target[at:place]:
            written.append(space)
            space = ""
        if target[at:place]:
            written.append(_escaped(target[at:place], source))
            begun = len(written)
        last, at = target[at:place][-1:] or last, place
        if element.is_word and not is_end:
            before, space = _spaces(element, source.text, last, target[at:])
            written.insert(begun, before)
            last = space or ">"
        written.append(element.closing if is_end else element.opening)
        if is_end or not element.closing:
            begun = len(written)
        if not is_end:
            waiting.append((index, True))
            waiting += [(child, False) for child in children.get(index, [])]
    return "".join([*written, space, _escaped(target[at:], source)])


def _escaped(text: str, source: MarkedLine) -> str:
    return escape(text, quote=False) if source.escaped else text


def _spaces(element: Element, source: str, last: str, rest: str) -> tuple[str, str]:
    """The spaces that a tag that stands for a word needs before and after it, where the target has none.

    ``last`` is the last character that is shown before the tag (``>`` of another such tag), ``rest`` the target behind.
    """
    start, end = element.span
    is_spaced = source[:start][-1:].isspace(), source[end:][:1].isspace()
    found = []
    for neighbour, spaced, marks in ((last, is_spaced[0], _OPENING), (rest[:1], is_spaced[1], _CLOSING)):
        joins = not neighbour or neighbour.isspace() or is_unspaced(neighbour)
        found.append(" " * (not joins and (is_letter(neighbour) or (spaced and neighbour not in marks))))
    return found[0], found[1]
