"""Where the elements of a source line go in its translation.

An element encloses an interval of target units (words and marks, :mod:`alignment_eval.transfer.units`).  Of all
intervals it takes the one with the highest score, where a link counts by the cube of its confidence:

- Links: a link between the element and the interval counts for it; a link that has one end inside counts against it.
  So of discontinuous links the interval has the most inside and the least outside, and not always the hull.  A link of
  a mark counts half.  Names, numbers and long words that are equal on both sides are linked for that.
- Each word inside counts a little against it, so that a word without a link, or with a weak one, stays outside at a
  border.  But the interval should be as long as the element, in characters, by the lengths of both lines: this takes
  in the parts of a name of which only one is linked, and gives words to an element without links, at the place that
  the source has.
- Marks: the interval begins and ends with the kind of mark with which the element does, a word for a word.  It has as
  many full stops as the element, so that it does not run into another sentence.
- It begins with a capital if the element does.  A copy of the element's words counts for it.

Elements never cross, and each keeps to the element around it:

- An element that encloses all words of the line, or of the element around it, does so in the translation.
- Elements side by side take disjoint intervals with the highest sum.  They stand in the order of the source, or of
  their best intervals if that has a higher sum.
- An element may be left without words, which costs a little.  So of two elements that share their counterpart one
  takes it, and the other is left beside it, rather than with words that it has nothing to do with.  These are words
  without a link to it if it has links, and words that all have sure links to others if it has none.
- A tag that stands alone, or an element without words, goes where it crosses the fewest links, near links counting
  most; preferably beside the counterpart of a word that it stands beside, above all of one that it touches, or between
  the same kinds of marks.
- A tag inside a word stands at the same place of an equal word; around the whole word otherwise.
- If there are fewer target units than elements side by side, elements without words are left.

The weights are below.  They were chosen on 260 lines of software help, English and German; one that is a third
smaller or larger changes the share of right lines by about one point.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import Span
from alignment_eval.transfer.tags import MarkedLine
from alignment_eval.transfer.units import STOP, WORD, Unit, UnitLink, WordLink, cut_both_sides, unit_links

Scores = NDArray[np.float64]

#: Weights, where a sure link that is kept counts 1 and one that is broken -1.
_MARK_LINK = 0.5  # a link of a mark, against that of a word
_STRANGE = 2.0  # words that an element has nothing to do with; times the weight of its surest link, if it has links
_EMPTY = (0.5, 1.5)  # no words, for an element with words: without links, with links
_INSIDE = 0.2  # each word or mark inside
_LENGTH = 0.6  # e times as long as expected, or as short
_CENTRE = 0.2  # at the end of the line, and not at its beginning
_BORDER = 1.0  # another kind of mark at a border
_STOPS = 0.5  # a full stop too many or too few
_SENTENCE = 1.0  # whole sentences, and it begins with one
_CAPITAL = 0.4  # a capital at the beginning like the source
_COPY = 1.0  # the same words
_ORDER = 0.1  # elements side by side that are not in the order of the source
_BESIDE = 1.2  # a tag that stands alone is beside the counterpart of its neighbour
_NEIGHBOUR = 0.25  # a tag that stands alone has the same mark on one side
_OF_NOTE = 1e2  # times as much, the mark of a note that touches its neighbour
_SAME_MARK = 1e4  # the target has that mark there

#: A link with at least this confidence is sure: its word belongs to no element without links.
_SURE = 0.63
#: Below every score of an interval: one that cannot be taken.
_NEVER = -1e8
#: An interval has at most so many units for each of the element, and so many more.
_LONGEST = (5, 20)
#: Units of a line: time and memory grow with their square, and no model takes so long a sentence.
_MOST_UNITS = 2000


def element_places(
    source: MarkedLine,
    source_words: Sequence[Span],
    target: str,
    target_words: Sequence[Span],
    links: Mapping[WordLink, float] | Collection[WordLink],
    marks: Mapping[int, Span],
) -> list[tuple[int, Span]]:
    """Find a place for each element of the source.

    Args:
        source: the source line.
        source_words: the words of ``source.text``, by character.
        target: the target text.
        target_words: the words of ``target``, by character.
        links: links (source word, target word), from 0; with confidences from 0 to 1 where there are any.
        marks: the elements that are marks of notes which the target has, too, and the characters of these.

    Returns:
        For each element its rank among the elements side by side with it, and its characters of the target.

    Raises:
        InputError: there are tags in a line that is too long; without file and line.
    """
    if not source.elements:
        return []
    spans = [element.span for element in source.elements]
    rest = target
    for start, end in marks.values():  # are no words
        rest = rest[:start] + " " * (end - start) + rest[end:]
    source_units, target_units = cut_both_sides(source.text, source_words, set(chain(*spans)), rest, target_words)
    if (units := max(len(source_units), len(target_units))) > _MOST_UNITS:
        raise InputError(
            f"found {units} words and marks in a line with tags; expected at most {_MOST_UNITS}; cut it into sentences"
        )
    pair = _Pair(source_units, target_units, unit_links(source_units, target_units, links))
    members: list[_Members] = []
    for index, (start, end) in enumerate(spans):
        first = sum(unit.end <= start for unit in source_units)
        last = max(first, sum(unit.start < end for unit in source_units))
        touches = (
            first > 0 and source_units[first - 1].end == start,
            source_units[last:] != [] and (source_units[last].start == end),
        )
        mark = -1 if source.elements[index].mark else None
        if index in marks:
            mark = sum(unit.end <= marks[index][0] for unit in target_units)
        members.append(_Members(first, last, touches, mark))
    children: dict[int | None, list[int]] = {}
    for index, element in enumerate(source.elements):
        children.setdefault(element.parent, []).append(index)

    # source units, target units and characters of the target
    whole: tuple[Span, Span, Span] = (0, len(source_units)), (0, len(target_units)), (0, len(target))
    found: dict[int | None, tuple[Span, Span, Span]] = {None: whole}
    ranks = [0] * len(spans)
    for parent, inner in sorted(children.items(), key=lambda item: -1 if item[0] is None else item[0]):
        around, room, (at, last) = found[parent]
        for rank, (child, interval) in enumerate(_side_by_side(pair, [members[k] for k in inner], around, room)):
            index = inner[child]
            start, end = marks.get(index) or _characters(pair, members[index], interval)
            start = min(max(at, start), last)
            at = min(max(start, end), last)
            ranks[index], found[index] = rank, (members[index][:2], interval, (start, at))
    return [(ranks[index], found[index][2]) for index in range(len(spans))]


class _Members(NamedTuple):
    """The source units of an element."""

    first: int  #: its first unit
    end: int  #: the unit behind its last
    touches: tuple[bool, bool]  #: whether it touches the unit before, and the one behind
    #: if it is the mark of a note: the place between target units of the same mark, -1 if there is none
    mark: int | None


class _Pair:
    """Units and links of a pair, with what all elements need of them."""

    def __init__(self, source: list[Unit], target: list[Unit], links: list[UnitLink]) -> None:
        self.source, self.target = source, target
        self.links = []
        for sources, at, weight in links:
            is_of_words = {target[at].kind, *(source[s].kind for s in sources)} == {WORD}
            self.links.append((sources, at, weight**3 * (1.0 if is_of_words else _MARK_LINK)))
        self.weights, self.is_sure = np.zeros(len(target)), np.zeros(len(target), dtype=bool)  # of each target unit
        for _, at, weight in self.links:
            self.weights[at] += weight
            self.is_sure[at] |= weight >= _SURE**3
        self.source_lengths = _sums([unit.end - unit.start for unit in source])
        self.target_lengths = _sums([unit.end - unit.start for unit in target])
        self.target_stops = _sums([unit.kind == STOP for unit in target])

    def weights_of(self, element: _Members) -> Scores:
        """The weight of the links that an element has to each target unit."""
        weights = np.zeros(len(self.target))
        for sources, target, weight in self.links:
            if any(element.first <= source < element.end for source in sources):
                weights[target] += weight
        return weights


def _sums(values: Sequence[float] | Scores | NDArray[np.bool_]) -> Scores:
    """Sums of the first 0, 1, 2, … values."""
    return np.concatenate([[0.0], np.cumsum(values, dtype=float)])


def _characters(pair: _Pair, members: _Members, interval: Span) -> Span:
    """The characters of an interval; one of no words touches a word that it is linked to, or touches in the source."""
    first, end = interval
    if first < end:
        return pair.target[first].start, pair.target[end - 1].end
    if first > 0 and (members.touches[0] or first == len(pair.target) or pair.weights_of(members)[first - 1]):
        at = pair.target[first - 1].end
    else:
        at = pair.target[first].start if pair.target else 0
    return at, at


class _Intervals:
    """Intervals of the target units in a room, with their scores: a row for each end, a column for each length."""

    def __init__(self, size: int, lengths: Sequence[int]) -> None:
        self.ends = np.arange(size + 1)[:, None]
        starts = self.ends - np.array(lengths)[None, :]
        self.scores: Scores = np.where(starts < 0, _NEVER, 0.0)
        self.starts = np.maximum(starts, 0)

    def sums(self, sums: Scores) -> Scores:
        """The sum of each interval, from the sums up to each place."""
        return np.asarray(sums[self.ends] - sums[self.starts])


def _side_by_side(pair: _Pair, elements: Sequence[_Members], around: Span, room: Span) -> list[tuple[int, Span]]:
    """The elements and their target units, from left to right: disjoint intervals with the highest sum of scores.

    They are in the order of the elements or in that of their best intervals.
    """
    scored = [_scored(pair, element, around, room) for element in elements]
    in_order = list(range(len(scored)))
    middles = []  # of the best intervals, twice
    for intervals in scored:
        row, column = np.unravel_index(intervals.scores.argmax(), intervals.scores.shape)
        middles.append(row + intervals.starts[row, column])
    by_best = sorted(in_order, key=middles.__getitem__)
    total, places = _disjoint(scored)
    if by_best != in_order:
        other_total, other_places = _disjoint([scored[index] for index in by_best])
        if other_total > total + _ORDER:
            in_order, places = by_best, other_places
    return [(index, (room[0] + start, room[0] + end)) for index, (start, end) in zip(in_order, places)]


def _disjoint(scored: Sequence[_Intervals]) -> tuple[float, list[Span]]:
    """Disjoint intervals in this order with the highest sum of scores.

    Dynamic programming: ``before[at]`` is the highest sum of the elements so far, the last of which ends at ``at`` or
    before.
    """
    before = np.zeros(len(scored[0].scores))
    steps = []
    for intervals in scored:
        totals = intervals.scores + before[intervals.starts]
        best = totals.argmax(axis=1)[:, None]
        ends = np.take_along_axis(totals, best, axis=1)[:, 0]
        steps.append((np.take_along_axis(intervals.starts, best, axis=1)[:, 0], ends))
        before = np.maximum.accumulate(ends)
    places: list[Span] = []
    last = len(before) - 1
    for starts, ends in reversed(steps):
        end = int(ends[: last + 1].argmax())
        last = int(starts[end])
        places.append((last, end))
    return float(before[-1]), places[::-1]


def _scored(pair: _Pair, element: _Members, around: Span, room: Span) -> _Intervals:
    size = room[1] - room[0]
    if element.first == element.end:
        return _scored_alone(pair, element, around, room)
    if element[:2] == around:
        return _Intervals(size, [size])
    longest = _LONGEST[0] * (element[1] - element[0]) + _LONGEST[1]
    intervals = _Intervals(size, range(min(size, longest) + 1))
    own, all_weights = pair.weights_of(element)[slice(*room)], pair.weights[slice(*room)]
    # a link of the element counts against the intervals without it
    intervals.scores += intervals.sums(_sums(3 * own - all_weights - _INSIDE))
    intervals.scores += _scores_of_borders(pair, element, room, intervals)
    lengths = _scores_of_lengths(pair, element, around, room, intervals)
    intervals.scores += lengths
    has_links = bool(own.any())
    its_words = own > 0 if has_links else ~pair.is_sure[slice(*room)]
    strange = intervals.sums(_sums(its_words)) == 0
    intervals.scores -= _STRANGE * (own.max() if has_links else 1.0) * strange
    beside = np.maximum([*own, 0.0], [0.0, *own])
    intervals.scores[:, 0] = lengths[:, 0] + _NEIGHBOUR * beside - _EMPTY[has_links]
    return intervals


def _scores_of_borders(pair: _Pair, element: _Members, room: Span, intervals: _Intervals) -> Scores:
    """Marks, capitals and copies."""
    inside = pair.source[element[0] : element[1]]
    units = pair.target[room[0] : room[1]]
    starts, ends = np.zeros(len(units) + 1), np.zeros(len(units) + 1)
    is_sentence = _begins_sentence(pair.source, element[0]) and _begins_sentence(pair.source, element[1])
    for at, unit in enumerate(units):
        starts[at] = _SENTENCE * (is_sentence and _begins_sentence(pair.target, room[0] + at))
        starts[at] += _CAPITAL * (unit.capital == inside[0].capital) - _BORDER * (unit.kind != inside[0].kind)
        ends[at + 1] = -_BORDER * (unit.kind != inside[-1].kind)
    stops = intervals.sums(pair.target_stops[room[0] : room[1] + 1]) - sum(unit.kind == STOP for unit in inside)
    scores = starts[intervals.starts] + ends[intervals.ends] - _STOPS * np.abs(stops)
    words = [unit.text for unit in inside]
    there = [unit.text for unit in units]
    for end in range(len(words), len(units) + 1):
        if there[end - len(words) : end] == words:
            scores[end, len(words)] += _COPY
    return np.asarray(scores)


def _begins_sentence(units: Sequence[Unit], place: int) -> bool:
    """Does a sentence begin there, or end the line?"""
    return place in (0, len(units)) or units[place - 1].kind == STOP


def _scores_of_lengths(pair: _Pair, element: _Members, around: Span, room: Span, intervals: _Intervals) -> Scores:
    """Length and place in the line, in characters without spaces, as a share of what is around the element."""
    low, high = pair.source_lengths[[*around]]
    first, end = (pair.source_lengths[[*element[:2]]] - low) / (high - low)
    lengths = pair.target_lengths[room[0] : room[1] + 1] - pair.target_lengths[room[0]]
    whole = max(lengths[-1], 1.0)
    times_expected = np.maximum(intervals.sums(lengths), 1.0) / (whole * (end - first))
    times_expected[:, 0] = 1.0  # no words are not too short
    centres = (lengths[intervals.ends] + lengths[intervals.starts]) / (2 * whole)
    return np.asarray(-_LENGTH * np.abs(np.log(times_expected)) - _CENTRE * np.abs(centres - (first + end) / 2))


def _scored_alone(pair: _Pair, element: _Members, around: Span, room: Span) -> _Intervals:
    """The score of each place between target units, for an element that gets no words."""
    place = element.first
    places = np.arange(room[0], room[1] + 1)
    scores = np.where(places == element.mark, _SAME_MARK, 0.0)
    sides: tuple[float, float] = 1, 1  # how much the units beside it count: if it touches one, that one counts for both
    if element.first == element.end and any(element.touches) and not all(element.touches):
        times = 2 if element.mark is None else _OF_NOTE
        sides = (times, 0) if element.touches[0] else (0, times)
    for sources, target, weight in pair.links:
        distance = min(abs(s + 0.5 - place) for s in sources)
        kept = (target < places) == (sources[0] < place)
        scores += np.where(kept, weight, -weight) / (0.5 + distance)
        for source, beside, times in zip((element.first - 1, element.end), (target + 1, target), sides):
            if sources == (source,) and around[0] <= source < around[1]:
                scores += np.where(places == beside, times * _BESIDE * weight, 0.0)
    here = _neighbours(pair.source, (element.first, element.end), around)
    for at in range(len(places)):
        there = _neighbours(pair.target, (room[0] + at, room[0] + at), room)
        same = [kind == wanted != WORD for kind, wanted in zip(there, here)]
        scores[at] += _NEIGHBOUR * sum(times * is_same for times, is_same in zip(sides, same))
    intervals = _Intervals(room[1] - room[0], [0])
    intervals.scores = scores[:, None]
    return intervals


def _neighbours(units: Sequence[Unit], span: Span, within: Span) -> tuple[str | None, str | None]:
    """Kinds of the units before and after a span of units; None: there is none."""
    return (
        units[span[0] - 1].kind if span[0] > within[0] else None,
        units[span[1]].kind if span[1] < within[1] else None,
    )
