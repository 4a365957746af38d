"""What tags can stand between: words and marks of both sides, and the links between them; scripts without spaces."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import regex

from alignment_eval.maps.sentence import Span

Key = TypeVar("Key")
WordLink = tuple[int, int]

#: Kinds of units.  Every other mark is a kind of its own.
WORD, QUOTE, STOP = "word", "quote", "stop"
_QUOTES = frozenset("\"'`´„“”‚‘’«»‹›")
_STOPS = frozenset(".!?:;…。！？：；।؟")
#: Scripts that put no spaces between words.
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
#: A word equal on both sides has this many letters, or a digit, or a capital on both sides, to be linked for it.
_LONG_WORD = 4


class Unit(NamedTuple):
    """A word, a part of a word, or a mark."""

    start: int  #: its first character in the line
    end: int  #: the character behind it
    text: str  #: its characters, case-folded
    kind: str  #: :data:`WORD`, :data:`QUOTE`, :data:`STOP`, or the mark
    capital: bool  #: it begins with a capital letter
    whole: bool  #: it is no part of a word that was cut between letters
    word: int | None  #: the word that it is in, as an index of the words of the line; None: it is in none


class UnitLink(NamedTuple):
    """A link of one target unit."""

    sources: tuple[int, ...]  #: the source units; several if it is not known which part of a word is meant
    target: int  #: the target unit
    weight: float  #: confidence, from 0 to 1


def cut_units(text: str, words: Sequence[Span], cuts: Iterable[int] = ()) -> list[Unit]:
    """Cut a line at whitespace, at borders of words, between letters and marks, between marks, and at ``cuts``.

    Letters are all that Unicode counts as letters, digits and ``_``; a combining or invisible character goes with the
    character before it.
    """
    word_of = {at: index for index, (start, end) in enumerate(words) for at in range(start, end)}
    borders = {0, len(text)}
    borders.update(at for at in range(1, len(text)) if word_of.get(at - 1) != word_of.get(at) or not _joined(text, at))
    return [
        Unit(
            start,
            end,
            text=piece.casefold(),
            kind=WORD
            if is_letter(mark := piece[0])
            else QUOTE
            if mark in _QUOTES
            else STOP
            if mark in _STOPS
            else mark,
            capital=piece[0].isupper(),
            whole=borders.issuperset((start, end)),
            word=word_of.get(start),
        )
        for start, end in pairwise(sorted(borders.union(cuts)))
        if (piece := text[start:end]) and not piece.isspace()
    ]


def _joined(text: str, at: int) -> bool:
    """Does the character at ``at`` go with the one before it?"""
    before, char = text[at - 1], text[at]
    if before.isspace() or char.isspace():
        return before.isspace() and char.isspace()
    return _is_attached(char) or (is_letter(char) and (is_letter(before) or _is_attached(before)))


def _is_attached(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] == "M" or category == "Cf"


def is_letter(character: str) -> bool:
    """Whether a character is of a word."""
    return character.isalnum() or character == "_"


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that puts no spaces between words."""
    return _IS_UNSPACED.match(character) is not None


def character_spans(text: str) -> list[tuple[int, int]]:
    """The characters (grapheme clusters) of scripts without spaces; what else stands together is one word."""
    return [found.span() for found in _CHARACTER.finditer(text)]


def cut_both_sides(
    source: str, source_words: Sequence[Span], tags: Collection[int], target: str, target_words: Sequence[Span]
) -> tuple[list[Unit], list[Unit]]:
    """Cut both lines into units, words also where a tag stands inside; ``tags`` are places in the source.

    A source word is cut at each tag.  Where that happens, target words that are equal to a source word are cut where it
    is, and others where a capital follows a small letter: ``EndeAnfang`` for ``<li>End</li><li>Start</li>``.
    """
    cuts_of: dict[tuple[str, int], set[int]] = {}  # the places of tags in a source word, by its text and length
    for unit in cut_units(source, source_words):
        inside = {tag - unit.start for tag in tags if unit.start < tag < unit.end}
        cuts_of.setdefault((unit.text, unit.end - unit.start), set()).update(inside)
    cuts: list[int] = []
    for unit in cut_units(target, target_words) if any(cuts_of.values()) else ():
        capitals = {
            at - unit.start
            for at in range(unit.start + 1, unit.end)
            if target[at - 1].islower() and target[at].isupper()
        }
        cuts += [unit.start + place for place in cuts_of.get((unit.text, unit.end - unit.start), capitals)]
    return cut_units(source, source_words, tags), cut_units(target, target_words, cuts)


def unit_links(
    source: Sequence[Unit], target: Sequence[Unit], links: Mapping[WordLink, float] | Collection[WordLink]
) -> list[UnitLink]:
    """Links between units: those of the words, and those of names and numbers that are equal on both sides."""
    weights = links if isinstance(links, Mapping) else dict.fromkeys(links, 1.0)
    found = _links_of_words(source, target, weights)
    equal = _equal_pairs(source, target, found)
    sources, targets = {(s,) for s, _ in equal}, {t for _, t in equal}
    others = [link for link in found if link.sources not in sources and link.target not in targets]
    return others + [UnitLink((s,), t, 1.0) for s, t in equal]


def _links_of_words(
    source: Sequence[Unit], target: Sequence[Unit], weights: Mapping[WordLink, float]
) -> list[UnitLink]:
    """Links of words as links of their units.

    Of equal words, the units at the same place are linked; of others, equal units, and all that remain with all.
    """
    of_source, of_target = (_places(unit.word for unit in units) for units in (source, target))
    found = []
    for (i, j), weight in weights.items():
        rest, rest_target = list(of_source.get(i, ())), list(of_target.get(j, ()))
        if _spelling(source, rest) == _spelling(target, rest_target):
            for t in rest_target:  # its place in the word, as one of the source word
                shift = source[rest[0]].start - target[rest_target[0]].start
                start, end = target[t].start + shift, target[t].end + shift
                same = tuple(s for s in rest if source[s].start < end and start < source[s].end)
                found.append(UnitLink(same, t, weight))
            continue
        for t in tuple(rest_target):
            if (s := next((s for s in rest if source[s].text == target[t].text), None)) is not None:
                rest.remove(s)
                rest_target.remove(t)
                found.append(UnitLink((s,), t, weight))
        if rest:
            found += [UnitLink(tuple(rest), t, weight) for t in rest_target]
    return found


def _spelling(units: Sequence[Unit], word: Sequence[int]) -> tuple[str, int]:
    """The letters of a word, and how long it is in the line."""
    return "".join(units[k].text for k in word), units[word[-1]].end - units[word[0]].start if word else 0


def _places(keys: Iterable[Key | None]) -> dict[Key, list[int]]:
    """The places of each key; None is no key."""
    found: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, []).append(place)
    return found


def _equal_pairs(source: Sequence[Unit], target: Sequence[Unit], links: Sequence[UnitLink]) -> list[tuple[int, int]]:
    """Pairs of equal names, numbers and long words that both sides have equally often.

    The pairs are those that links name, if they name one for each; else the first with the first, and so on.
    """
    linked = {(link.sources[0], link.target) for link in links if len(link.sources) == 1}
    of_source, of_target = (_places(unit.text if unit.whole else None for unit in units) for units in (source, target))
    pairs: list[tuple[int, int]] = []
    for text, sources in of_source.items():
        targets = of_target.get(text, [])
        is_capital = any(source[s].capital for s in sources) and any(target[t].capital for t in targets)
        if len(sources) != len(targets) or not (is_capital or len(text) >= _LONG_WORD or any(map(str.isdigit, text))):
            continue
        named = [(s, t) for s in sources for t in targets if (s, t) in linked]
        one_each = len(named) == len({s for s, _ in named}) == len({t for _, t in named}) == len(sources)
        pairs += named if one_each else zip(sources, targets)
    return pairs
