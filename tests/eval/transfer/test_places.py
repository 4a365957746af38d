"""Where an element goes: the fast search of an interval, against a slow one by the rules of the module."""

import math
import re
from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_eval.transfer import places
from alignment_eval.transfer.places import element_places
from alignment_eval.transfer.tags import Element, MarkedLine
from alignment_eval.transfer.units import STOP, WORD, cut_both_sides, cut_units, unit_links

TEXTS = st.lists(st.sampled_from(["Aa", "bb", "cc", "Dddd", "eeeeeee", ".", "!", ",", "“"]), min_size=2, max_size=6)


def words(text):
    return [match.span() for match in re.finditer(r"\S+", text)]


def slow_score(source, target, links, element, interval, around, room):
    """The score of an interval of target units for an element of source units, link by link and rule by rule.

    ``around``: the source units of the element around it, ``room``: the target units of that one.
    """
    (a, b), (start, end) = element, interval

    def weight_of(link):
        kinds = {target[link.target].kind, *(source[s].kind for s in link.sources)}
        return link.weight**3 * (1 if kinds == {WORD} else places._MARK_LINK)

    def share(units, within, span):  # of the characters within: those before the span, and those in it
        lengths = [unit.end - unit.start for unit in units]
        whole = sum(lengths[slice(*within)])
        return sum(lengths[within[0] : span[0]]) / whole, sum(lengths[slice(*span)]) / whole

    own = dict.fromkeys(range(*room), 0)
    for link in links:
        if link.target in own and any(a <= s < b for s in link.sources):
            own[link.target] += weight_of(link)
    (before, length), (before_there, length_there) = share(source, around, element), share(target, room, interval)
    centre = -places._CENTRE * abs(before_there + length_there / 2 - before - length / 2)
    if start == end:
        beside = max(own.get(start - 1, 0), own.get(start, 0))
        return centre + places._NEIGHBOUR * beside - places._EMPTY[any(own.values())]
    score = centre - places._LENGTH * abs(math.log(length_there / length)) - places._INSIDE * (end - start)
    inside, there = source[a:b], target[start:end]

    def begins_sentence(units, place):
        return place == 0 or place == len(units) or units[place - 1].kind == STOP

    for link in links:
        ends = [any(a <= s < b for s in link.sources), start <= link.target < end]
        score += weight_of(link) * (all(ends) - (ends[0] != ends[1]))
    # what every interval of the element lacks of its links is the same for all
    score += sum(weight_of(link) for link in links if any(a <= s < b for s in link.sources))
    surely_linked = {link.target for link in links if weight_of(link) >= places._SURE**3}
    if any(own.values()):
        score -= places._STRANGE * max(own.values()) * (not any(own[at] for at in range(start, end)))
    else:
        score -= places._STRANGE * surely_linked.issuperset(range(start, end))
    if begins_sentence(source, a) and begins_sentence(source, b) and begins_sentence(target, start):
        score += places._SENTENCE
    score += places._CAPITAL * (there[0].capital == inside[0].capital)
    score -= places._BORDER * ((there[0].kind != inside[0].kind) + (there[-1].kind != inside[-1].kind))
    score -= places._STOPS * abs(sum(u.kind == STOP for u in there) - sum(u.kind == STOP for u in inside))
    return score + places._COPY * ([u.text for u in there] == [u.text for u in inside])


@settings(max_examples=400)
@given(TEXTS, TEXTS, st.data())
def test_an_element_takes_the_best_of_all_intervals_in_the_one_around_it(source, target, data):
    texts = [" ".join(source), " ".join(target)]
    spans = [words(text) for text in texts]
    whole = (0, len(source))
    every = [(a, b) for b in range(len(source) + 1) for a in range(b)]
    outer = data.draw(st.sampled_from([span for span in every if span != whole]) | st.none())
    around = outer or whole
    inner = [span for span in every if around[0] <= span[0] and span[1] <= around[1] and span != around]
    if not inner:
        return
    a, b = data.draw(st.sampled_from(inner))
    pairs = st.tuples(st.integers(0, len(source) - 1), st.integers(0, len(target) - 1))
    weights = data.draw(st.dictionaries(pairs, st.floats(0, 1), max_size=8))
    elements = [(spans[0][first][0], spans[0][last - 1][1]) for first, last in ([outer] if outer else []) + [(a, b)]]
    *parents, (_, found) = places_of(texts[0], elements, texts[1], weights, nested=True)
    units, there = (cut_units(text, of_text) for text, of_text in zip(texts, spans))
    links = unit_links(units, there, weights)
    first, last = parents[0][1] if parents else (0, len(texts[1]))
    inside = [k for k, unit in enumerate(there) if first <= unit.start and unit.end <= last]
    if not inside:
        assert first <= found[0] <= found[1] <= last
        return
    room = inside[0], inside[-1] + 1
    scores = {
        (start, end): slow_score(units, there, links, (a, b), (start, end), around, room)
        for start in range(room[0], room[1] + 1)
        for end in range(start, room[1] + 1)
    }
    taken = tuple(sum(unit.end <= at for unit in there) for at in found)
    assert math.isclose(scores[taken], max(scores.values()), abs_tol=1e-9)


@st.composite
def runs_of_words(draw):
    """Runs of source words and target words, and links: some words share their counterpart, others have none."""
    lengths = draw(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=2, max_size=8))
    ends = list(accumulate(map(len, lengths)))
    runs = [(end - len(run), end) for run, end in zip(lengths, ends)]
    target, links = [], set()
    for start, end in runs:
        for i in range(start, end):
            kind = draw(st.sampled_from(["alone", "alone", "alone", "shared", "none", "more"]))
            if kind in ("alone", "more") or not target:
                target.append("u" * draw(st.integers(1, 9)))  # no word is equal on both sides
            if kind in ("alone", "shared"):
                links.add((i, len(target) - 1))
    return runs, " ".join("a" * length for run in lengths for length in run), " ".join(target), links


@settings(max_examples=200)
@given(runs_of_words(), st.data())
def test_of_elements_side_by_side_each_has_the_words_that_are_linked_to_it_alone(drawn, data):
    """Also where others share their counterpart, or have none."""
    runs, source, target, links = drawn
    inside = data.draw(st.just(runs) | st.lists(st.sampled_from(runs), min_size=1, unique=True).map(sorted))
    spans, there = words(source), words(target)
    alone = {j: i for i, j in links if [other for _, other in links].count(j) == 1}
    found = places_of(source, [(spans[a][0], spans[b - 1][1]) for a, b in inside], target, links)
    for (a, b), (_, (start, end)) in zip(inside, found):
        own = [there[j] for j, i in alone.items() if a <= i < b]
        assert all(start <= first and last <= end for first, last in own)
        if not any(a <= i < b for i, _ in links):  # it takes no words of others alone
            assert start == end or any(j not in alone and start <= at < end for j, (at, _) in enumerate(there))


def test_combining_and_invisible_characters_belong_to_the_word_around_them():
    text = "co\u00adop e\u0301t"
    assert [text[unit.start : unit.end] for unit in cut_units(text, words(text))] == text.split()


def linked(source, target, links, tags=()):
    """The source units and the target unit of each link."""
    sides = cut_both_sides(source, words(source), tags, target, words(target))
    return sorted((link.sources, link.target) for link in unit_links(sides[0], sides[1], links))


def test_words_equal_on_both_sides_are_linked_if_both_have_them_equally_often():
    assert linked("Ann Bob", "Bob x Ann", {}) == [((0,), 2), ((1,), 0)]
    assert linked("Ann Ann", "Ann x", {}) == []
    assert linked("ab wort", "wort cd", {}) == [((1,), 0)]  # a long word
    assert linked("ab wor", "wor cd", {}) == []
    assert linked("Straße ab", "cd STRASSE", {}) == [((0,), 1)]
    assert linked("Ann ab", "Ann cd", {(0, 1), (1, 0)}) == [((0,), 0)]  # their own links go
    assert linked("Ann Ann", "Ann Ann", {}) == [((0,), 0), ((1,), 1)]
    assert linked("Ann Ann", "Ann Ann", {(0, 1), (1, 0)}) == [((0,), 1), ((1,), 0)]
    unequal = {(0, 0), (0, 1)}  # does not name one for each
    assert linked("Ann Ann", "Ann Ann", unequal) == [((0,), 0), ((1,), 1)]


def test_a_part_of_a_word_that_a_tag_cuts_is_no_word_of_its_own():
    assert linked("EndAnn", "x Ann", {}, tags=[3]) == []


def test_equal_units_of_linked_words_are_linked_and_the_rest_with_each_other():
    assert linked("pq-rs", "pq-tu", {(0, 0)}) == [((0,), 0), ((1,), 1), ((2,), 2)]
    assert linked("pq-rs", "pq-rs", {(0, 0)}) == [((0,), 0), ((1,), 1), ((2,), 2)]
    assert linked("pq", "tu-vw", {(0, 0)}) == [((0,), 0), ((0,), 1), ((0,), 2)]


def test_a_tag_in_a_target_word_of_another_spelling_stands_at_a_capital():
    source, target = cut_both_sides("dataBase x", words("dataBase x"), [4], "datenBank x", words("datenBank x"))
    assert [unit.text for unit in source] == ["data", "base", "x"]
    assert [unit.text for unit in target] == ["daten", "bank", "x"]
    both = "aB x1"
    _, target = cut_both_sides(both, words(both), [4], both, words(both))
    assert [unit.text for unit in target] == ["ab", "x", "1"]  # a word that the source has too is cut where it is there
    _, target = cut_both_sides("ab cd", words("ab cd"), [3], "efGh", words("efGh"))  # the tag is in no word
    assert [unit.text for unit in target] == ["efgh"]


def places_of(source, elements, target, links, nested=False):
    parents = range(-1, len(elements)) if nested else [-1] * len(elements)
    made = (Element("<b>", "</b>", span, None if k < 0 else k) for span, k in zip(elements, parents))
    marked = MarkedLine(source, tuple(made))
    return element_places(marked, words(source), target, words(target), links, {})


def test_an_element_that_is_a_sentence_begins_with_one_in_the_element_around_it():
    assert places_of(", . .", [(2, 5), (4, 5)], "cc . !", {}, nested=True) == [(0, (3, 6)), (0, (5, 6))]


def test_an_element_without_links_takes_no_word_whose_link_to_another_is_surer_than_0_63():
    assert places_of("aa bb", [(0, 2)], "cc", {(1, 0): 0.62}) == [(0, (0, 2))]
    assert places_of("aa bb", [(0, 2)], "cc", {(1, 0): 0.64}) == [(0, (0, 0))]


def test_a_word_in_parts_is_as_near_to_a_tag_as_its_nearest_part():
    assert places_of("bb bb cc-dd", [(6, 6)], "yy", {(0, 0), (2, 0)}) == [(0, (0, 0))]


def test_elements_that_fit_equally_well_in_both_orders_stay_in_that_of_the_source():
    assert [rank for rank, _ in places_of(". cc .", [(0, 1), (2, 4)], "“ . ,", {})] == [0, 1]


def test_an_element_has_at_most_five_units_for_each_of_its_own_and_twenty_more():
    """So time and memory of a long line with many elements grow with its length."""
    ((_, found),) = places_of("aa bb", [(0, 2)], " ".join(["x"] * 40), {(0, j) for j in range(40)})
    assert found[1] - found[0] == len(" ".join(["x"] * (5 + 20)))
