"""The rules of alignment_eval/transfer/labels.py, one by one, and what holds for all labels and links."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.transfer.labels import GAP, OUTSIDE, LabelSpan, labels_of, project_labels, project_spans, spans_of
from tests.eval.links.samples import links_of
from tests.facts import facts

TYPES = ("PER", "LOC")


def projected(labels, links, target, source=""):
    """Types and borders of the target words: ``B-PER I-PER`` as ``P p``; a word of no span is ``-``."""
    short = {"P": "B-PER", "p": "I-PER", "L": "B-LOC", "l": "I-LOC", "-": "O"}
    long = [short[label] for label in labels.split()]
    words = (source.split(), target.split()) if isinstance(target, str) else None
    size = len(words[1]) if words else target
    found = project_labels(long, links_of(links), size, words)
    letters = {label: letter for letter, label in short.items()}
    return " ".join(letters[label] for label in found)


@pytest.mark.parametrize(
    ("labels", "source", "links", "target", "expected"),
    [
        ("P", "Tirols", "0-0 0-1", "of Tyrol", "- P"),
        ("P p", "tiroler Bergland", "0-0 1-1", "mountainous Tyrol", "P p"),  # the only link of a source word
        ("P", "rathaus", "0-0 0-1 0-2", "the town hall", "P p p"),  # no capitals
        ("P", "Tirol", "0-0 0-1", '" Tyrol', "- P"),
        ("P p", '" Tirol', "0-0 1-1", '" Tyrol', "P p"),
        ("P p", "van Tirol", "0-0 0-1 1-0 1-1", "van Tyrol", "P p"),  # the same word on both sides
        ("P p p", "Almwirtschaft von Tirol", "0-2 0-3 1-1 2-0", "Tyrol 's alpine farming", "P p p p"),  # not one of two
        ("P", "Nordtirol", "0-0 0-1 0-2", "north of Tyrol", "- - P"),
    ],
)
def test_borders(labels, source, links, target, expected):
    assert projected(labels, links, target, source) == expected
    untrimmed = projected(labels, links, len(target.split()))
    assert untrimmed.count("-") == 0


@pytest.mark.parametrize(("weight", "expected"), [(GAP, "- - P"), (GAP + 0.01, "P p p")])
@pytest.mark.parametrize("other", ["", " 1-1:.1"], ids=["without a link", "with a weak link"])
def test_a_gap_is_filled_where_the_links_on_both_sides_outweigh_it(weight, expected, other):
    assert projected("P -", f"0-0:{weight} 0-2{other}", 3) == expected


@pytest.mark.parametrize(
    ("labels", "links", "message"),
    [
        (["I-PER"], "", "'I-PER' after 'O' … B-PER"),
        (["O"], "1-0", "link 1-0 … 1 and 2 words"),
        (["O"], "0-0:1.5", "link 0-0 … 1.5 … 0 to 1"),
    ],
)
def test_bad_input(labels, links, message):
    with pytest.raises(InputError, match=facts(message)):
        project_labels(labels, links_of(links), 2)


@st.composite
def labels(draw, most=8):
    size = draw(st.integers(0, most))
    spans, end = [], 0
    while end < size:
        length = draw(st.integers(1, size - end))
        spans.append(
            draw(st.sampled_from((None, *TYPES))) and LabelSpan(end, end + length, draw(st.sampled_from(TYPES)))
        )
        end += length
    return labels_of(spans, size)


@st.composite
def sentence_pairs(draw):
    """Labels, links with weights in tenths, the number of target words, words of both sides."""
    given_labels = draw(labels())
    size = draw(st.integers(0, 8))
    pairs = list(itertools.product(range(len(given_labels)), range(size)))
    links = draw(st.dictionaries(st.sampled_from(pairs), st.integers(0, 10).map(lambda n: n / 10))) if pairs else {}
    sides = [
        draw(st.lists(st.sampled_from(("A", "b", ",")), min_size=n, max_size=n)) for n in (len(given_labels), size)
    ]
    return given_labels, links, size, draw(st.sampled_from((None, tuple(sides))))


@given(sentence_pairs())
def test_what_always_holds(pair):
    given_labels, links, size, words = pair
    found = project_labels(given_labels, links, size, words)
    assert len(found) == size
    before, after = spans_of(given_labels), spans_of(found)  # valid BIO, or this raises
    for type_ in TYPES:
        assert sum(span.type == type_ for span in after) <= sum(span.type == type_ for span in before)
    in_order = project_labels(given_labels, dict(sorted(links.items(), reverse=True)), size, words)
    assert in_order == found


@given(labels(12), st.booleans(), st.randoms(use_true_random=False))
@example(["B-PER", "B-PER", "I-PER"], True, None)
def test_a_sentence_linked_to_itself_keeps_its_labels(given_labels, cased, random):
    words = [random.choice(("A", "b", ",")) if random else "A" for _ in given_labels]
    links = {(n, n) for n in range(len(given_labels))}
    assert project_labels(given_labels, links, len(words), (words, words) if cased else None) == given_labels


@given(sentence_pairs())
def test_one_span_takes_the_best_of_all_runs(pair):
    """Rule 2, written out for every run of words."""
    given_labels, links, size, _ = pair
    span = next(iter(spans_of(given_labels)), None)
    if span is None:
        return
    of_span = range(span.start, span.end)
    sides = of_span, [i for i in range(len(given_labels)) if i not in of_span]
    inside, outside = ([sum(links.get((i, j), 0) for i in side) for j in range(size)] for side in sides)

    def weight(start, end):
        return sum(
            inside[j] - OUTSIDE * outside[j] if inside[j] else -max(GAP, OUTSIDE * outside[j])
            for j in range(start, end)
        )

    runs = [(s, e) for s in range(size) for e in range(s + 1, size + 1) if inside[s] and inside[e - 1]]
    best = max((weight(*run) for run in runs), default=0)
    (found,) = project_spans([span], links, (len(given_labels), size))
    if found is None:
        assert best <= 1e-9
    else:
        assert weight(found.start, found.end) == pytest.approx(best)
        assert found.type == span.type
