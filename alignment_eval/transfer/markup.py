"""Puts the inline tags of a line (:mod:`alignment_eval.transfer.tags`) onto its translation.

The rules of where a tag goes are those of :mod:`alignment_eval.transfer.places`.  Those of the text:

- Each tag of the source stands in the output once, letter by letter, in the same nesting.
- The words of the output are those of the target: without its tags and with its entities resolved, the output is the
  target, space by space.  Spaces that the source has inside a tag's border are not copied: a tag touches the words
  that it encloses.  A tag that stands alone touches the word that it touches in the source.  One that touches none
  stands for a word itself: where the target has no space beside it, it gets one, in scripts with spaces.  Between it
  and a mark that the source has there, too, the spaces are those of the source.
- The mark of a note, ``<sup>1</sup>``, follows the counterpart of its word.  If the target has the same mark, the
  element stands there instead of it.
- The target is plain text: ``&``, ``<`` and ``>`` are escaped in it, so ``&amp;`` of a target becomes ``&amp;amp;``.
  A target that has one of the source's tags already is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from html import escape

from alignment_eval.errors import InputError, shown
from alignment_eval.links.formats import check_inside
from alignment_eval.maps.sentence import Span
from alignment_eval.transfer.places import element_places
from alignment_eval.transfer.tags import Element, MarkedLine
from alignment_eval.transfer.units import WordLink, is_letter, is_unspaced

#: Raised and lowered digits, and the same as others.
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "0123456789" * 2)
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
                    f"found the tag {shown(tag)} in the translation of this line already; expected a translation "
                    "without tags; take its tags out"
                )
    places = element_places(source, source_spans, target, target_spans, links, _same_marks(source, target))
    return _written(source, target, places)


def _same_marks(source: MarkedLine, target: str) -> dict[int, Span]:
    """The marks of notes that the target has, too: elements of the source, and characters of the target.

    A mark touches the word before it, or stands apart, and is no part of a word that the source has, such as ``A1``.
    """
    plain = target.translate(_DIGITS)
    words = set(re.findall(r"\w+", source.text))
    found: dict[int, Span] = {}
    for index, element in enumerate(source.elements):
        if not element.mark or (element.mark in source.text and not element.mark.isalnum()):
            continue
        candidates = []
        for match in re.finditer(rf"(\w*?)({re.escape(element.mark)})(?!\w)", plain):
            is_of_number = element.mark[0].isdigit() and match[1][-1:].isdigit()
            is_taken = any(start < match.end() and match.start(2) < end for start, end in found.values())
            if not is_of_number and not is_taken and match[0] not in words:
                candidates.append(match.span(2))
        touching = [span for span in candidates if plain[: span[0]][-1:].strip()]
        if candidates:
            found[index] = (touching or candidates)[0]
    return found


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
        if not element.closing:  # the mark of a note in the target is that of the source
            at = places[index][1][1]
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
    before, behind = source[: element.span[0]], source[element.span[1] :]
    own = before.rstrip()[-1:], behind.lstrip()[:1]
    found = []
    for neighbour, mark, spaced, marks in (
        (last, own[0], before[-1:].isspace(), _OPENING),
        (rest[:1], own[1], behind[:1].isspace(), _CLOSING),
    ):
        joins = not neighbour or neighbour.isspace() or is_unspaced(neighbour)
        needs = is_letter(neighbour) or (spaced and (neighbour == mark or neighbour not in marks))
        found.append(" " * (not joins and needs))
    return found[0], found[1]
