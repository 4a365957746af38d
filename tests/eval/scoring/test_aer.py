import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.links.formats import GoldSentence
from alignment_eval.scoring.aer import METRICS, Counts, aer, score
from tests.facts import facts

LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8)
CORPORA = st.lists(st.tuples(LINKS, st.builds(GoldSentence, LINKS, LINKS)), max_size=6)


def oracle(pairs):
    """AER, precision, recall, link by link."""
    a = s = a_s = a_p = 0
    for hypothesis, gold in pairs:
        s += len(gold.sure)
        for link in hypothesis:
            a += 1
            a_s += link in gold.sure
            a_p += link in gold.possible or link in gold.sure
    error = 1 - (a_s + a_p) / (a + s) if a + s else 0.0
    return error, a_p / a if a else None, a_s / s if s else None


@given(CORPORA)
def test_equals_the_oracle(pairs):
    hypotheses, gold = [h for h, _ in pairs], [g for _, g in pairs]
    result = score(hypotheses, gold)
    error, *others = oracle(pairs)
    assert result.aer == pytest.approx(error, abs=1e-15)
    assert 0 <= result.aer <= 1
    assert [result.precision, result.recall] == others
    counts, expected = result.per_sentence, [oracle([pair]) for pair in pairs]
    for k, column in enumerate(metric(counts) for metric in METRICS.values()):
        wanted = [math.nan if row[k] is None else row[k] for row in expected]
        np.testing.assert_allclose(column, np.array(wanted, dtype=float), atol=1e-15)


def test_aer_is_rounded_once():
    assert aer(Counts(*map(np.int64, (1, 2, 1, 1)))) == 1 / 3


def test_unequal_numbers_of_sentences():
    with pytest.raises(InputError, match=facts("1 hypotheses … 3 gold sentences")):
        score(iter([frozenset()]), iter([GoldSentence(frozenset())] * 3))
