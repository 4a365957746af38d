from itertools import chain, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_eval.links.symmetrize import METHODS, VARIANTS, symmetrize

EVERY = [(m, v) for v in VARIANTS for m in METHODS if (m, v) != ("grow-diag-final-and", "lilt")]
SIZE = 6
LINKS = st.frozensets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=12)
#: Near each other, as those of aligners are: something can grow then.
BAND = st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), max_size=SIZE).map(
    lambda offsets: frozenset((k + max(-k, a), k + max(-k, b)) for k, (a, b) in enumerate(offsets))
)
PAIRS = st.one_of(st.tuples(LINKS, LINKS), st.tuples(BAND, BAND))


def unaligned(links, link):
    """How many of the two words of ``link`` have no link."""
    return all(i != link[0] for i, _ in links) + all(j != link[1] for _, j in links)


#: Neighbours as (source, target), in the order of Moses' symal and in that of lilt's script.
MOSES = [(0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1)]
LILT = [(-1, 0), (-1, 1), (-1, -1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


def slow(forward, reverse, method, variant):
    """The algorithms as docs/commands/symmetrize.md describes them; every word is looked up anew each time."""
    links, union = set(forward & reverse), forward | reverse
    if method in ("intersection", "union"):
        return forward & reverse if method == "intersection" else union
    size = range(max(chain((0,), *union)) + 1)
    cells = [(i, j) for j, i in product(size, size)] if variant == "moses" else list(product(size, size))
    before = -1
    while len(links) != before:
        before = len(links)
        for i, j in cells:
            around = [(i + di, j + dj) for di, dj in (MOSES if variant == "moses" else LILT)]
            if variant == "atools":
                if (i, j) in union - links and links & set(around) and unaligned(links, (i, j)) >= 1:
                    links.add((i, j))
            elif (i, j) in links:
                for link in around:
                    if link in union and unaligned(links, link) >= (1 if variant == "moses" else 2):
                        links.add(link)
    needed = 1 if method == "grow-diag-final" and variant != "lilt" else 2
    if method != "grow-diag":
        for one in [union] if variant == "moses" else [forward, reverse]:
            for link in cells:
                if link in one and unaligned(links, link) >= needed:
                    links.add(link)
    return frozenset(links)


@pytest.mark.parametrize(("method", "variant"), EVERY)
@given(PAIRS)
@settings(max_examples=300)
def test_equals_the_slow_one(method, variant, pair):
    forward, reverse = pair
    assert symmetrize(forward, reverse, method, variant) == slow(forward, reverse, method, variant)
