import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.figures.sentence import cells, panel_of, sides_of
from alignment_eval.maps.sentence import SentenceSide
from tests.eval.figures.printed import picture
from tests.facts import facts

words = st.lists(st.integers(-1, 4), min_size=1, max_size=6).map(
    lambda numbers: SentenceSide(("x",) * len(numbers), np.array(numbers, dtype=np.int32))
)
links = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(links=links, source=words, target=words)
def test_cells_against_a_slow_loop(links, source, target):
    slow = {
        (column, row)
        for row, j in enumerate(target.words.tolist())
        for column, i in enumerate(source.words.tolist())
        if (i, j) in links
    }
    found = cells(links, source, target)
    assert set(found) == slow
    assert len(found) == len(slow)


def test_subwords_have_the_links_of_their_words(make_sentence):
    source, target = sides_of(make_sentence(source="<de> a@@ b </s>", target="x y@@ z </s>"), "token")
    assert set(cells({(0, 1)}, source, target)) == {(column, row) for column in (1, 2) for row in (1, 2)}


@given(number=st.integers(0, 30), setting=st.sampled_from(["awo", "awi"]), level=st.sampled_from(["word", "token"]))
def test_predicted_links_are_those_of_extract(make_sentence, number, setting, level):
    sentence = make_sentence(number)
    for rule, null in (("kobayashi2020", "allow"), ("kobayashi2020", "mask"), ("threshold=0.3", None)):
        options = ExtractionOptions("attn_n", "0", "mean", setting, rule, null)
        assert panel_of(sentence, options, level, "").predicted == extract(sentence, options)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 3)), "panel 'attn_w' … shape (2, 3) … (3, 2)"),
        (np.full((3, 2), np.nan), "panel 'attn_w' … NaN, infinite or negative values … 0 or more"),
        (np.full((3, 2), np.inf), "NaN, infinite or negative"),
        (np.full((3, 2), -1.0), "NaN, infinite or negative"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(InputError, match=facts(message)):
        picture(title="attn_w", values=values)
