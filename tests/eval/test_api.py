"""``import alignment_eval as ae``: the functions of the commands, for scripts."""

import pytest

import alignment_eval as ae
from alignment_eval.errors import InputError
from alignment_eval.links.formats import GoldSentence
from tests.facts import facts

FORWARD, REVERSE = [frozenset({(0, 0), (1, 1)})], [frozenset({(0, 0), (2, 1)})]


def test_reads_and_scores(tmp_path):
    (tmp_path / "gold").write_text("1-1 2p2\n\n")
    (tmp_path / "links").write_text("0-0 1-1\n0-0\n")
    gold = ae.read_gold(tmp_path / "gold", base=1)
    links = ae.read_links(str(tmp_path / "links"))
    assert gold == [GoldSentence(frozenset({(0, 0)}), frozenset({(1, 1)})), GoldSentence(frozenset())]
    assert links == [{(0, 0), (1, 1)}, {(0, 0)}]
    # |A| = 3, |S| = 1, |A∩S| = 1, |A∩P| = 2
    assert (ae.score(links, gold).aer, ae.score(links, gold).precision) == (0.25, 2 / 3)
    assert ae.read_links(tmp_path / "gold", 1, swap=True, allow_possible=True) == [{(0, 0), (1, 1)}, frozenset()]
    with pytest.raises(InputError, match=facts("links:1: … index 0 … give base 0")):
        ae.read_gold(tmp_path / "links", base=1)


def test_compares():
    gold = [GoldSentence(frozenset({(k, 0)})) for k in range(30)]
    right, wrong = [sentence.sure for sentence in gold], [frozenset({(k, 1)}) for k in range(30)]
    better = ae.compare(wrong, right, iter(gold), resamples=200)["aer"]
    assert (better.delta, better.p_bootstrap, better.p_randomisation) == (-1, 1 / 201, 1 / 201)
    with pytest.raises(InputError, match="hypotheses"):
        ae.compare(wrong[1:], right, gold)


def test_symmetrizes():
    assert ae.symmetrize(FORWARD, REVERSE, "union") == [FORWARD[0] | REVERSE[0]]
    assert ae.symmetrize(FORWARD, REVERSE) == [{(0, 0), (1, 1), (2, 1)}]
    assert ae.symmetrize(FORWARD, REVERSE, "grow-diag", "lilt") == [{(0, 0), (1, 1)}]
    with pytest.raises(InputError, match="forward has 1 sentences, but reverse has 2"):
        ae.symmetrize(FORWARD, REVERSE * 2)
