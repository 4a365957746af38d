from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.commands.lexicon import bilingual_lexicon
from alignment_eval.errors import InputError

PAIRS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abc"), min_size=3, max_size=3),
        st.lists(st.sampled_from("xyz"), min_size=3, max_size=3),
        st.frozensets(st.tuples(st.integers(0, 2), st.integers(0, 2))),
    )
)


@given(PAIRS)
def test_figures_are_those_of_a_list_of_links(pairs):
    linked = [(source[i], target[j]) for source, target, links in pairs for i, j in links]
    counts = Counter(linked)
    sources, targets = (Counter(word) for word in zip(*linked)) if linked else (Counter(), Counter())
    entries = bilingual_lexicon(pairs)
    assert {(entry.source, entry.target): entry.links for entry in entries} == counts
    assert [entry[:3] for entry in entries] == sorted(
        (entry[:3] for entry in entries), key=lambda row: (-row[2], *row[:2])
    )
    for entry in entries:
        s, t = sources[entry.source], targets[entry.target]
        assert (entry.p_target, entry.p_source) == (entry.links / s, entry.links / t)
        assert entry.dice == pytest.approx(float(Fraction(2 * entry.links, s + t)))


@pytest.mark.parametrize("link", [(1, 0), (0, 2), (-1, 0)])
def test_a_link_outside(link):
    with pytest.raises(InputError, match=f"link {link[0]}-{link[1]} .* 1 and 2 words"):
        bilingual_lexicon([(["a"], ["x", "y"], {link})])
