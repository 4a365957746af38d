"""The two-way share that links are drawn from, estimated without gold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.defaults import both_directions, one_direction
from alignment_eval.extraction.extract import PairMap
from alignment_eval.extraction.method import AlignmentMethod, MapName
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.maps.words import balanced_shares, two_way_shares
from alignment_eval.profiles import shares as module
from alignment_eval.profiles.chosen import profiles_together
from alignment_eval.profiles.profile import calibrated
from alignment_eval.profiles.search import Agreement
from alignment_eval.profiles.shares import BETA, FEWEST_WORDS, Calibration, best_share, estimated_share, rounded

AGREEMENT = Agreement(MapName(0, 0, "awi"), MapName(2), 0.5, 30)
FORMED = calibrated(AGREEMENT, range(3), "m", "t", 30)
REVERSE = calibrated(AGREEMENT, range(3), "back", "t", 30)
YOUNG = calibrated(None, range(3), "young", "t", 30)
WORDS = 6

shares = st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(any)


def slow_expected_f(values, least):
    """The expected F-measure of linking all cells of at least this share, cell by cell."""
    right = drawn = there = 0.0
    for value in values:
        there += value
        if value >= least:
            right += value
            drawn += 1
    precision, recall = right / drawn, right / there
    if not (precision and recall):  # both underflow
        return 0.0
    return (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)


@given(shares)
@example([3e-18] * 5)
def test_no_other_share_expects_more(values):
    found = best_share(np.array(values))
    assert 0 <= found <= 1 / (1 + BETA**2) + 1e-9
    best = max(slow_expected_f(values, least) for least in values if least)
    assert slow_expected_f(values, found) == pytest.approx(best, rel=1e-9, abs=1e-300)


def read(sharpness, pairs=FEWEST_WORDS // (2 * WORDS) + 1, seed=0, method=FORMED.streamed):
    """Pairs of six words: a diagonal word map of this weight, the rest spread at random."""
    rng = np.random.default_rng(seed)
    side = SentenceSide(tuple("abcdef"), np.arange(WORDS, dtype=np.int32))
    made = []
    for id_ in range(pairs):
        sentence = SentenceMaps(id_, side, side, ())
        noise = rng.dirichlet(np.ones(WORDS + 1), WORDS)
        scores = sharpness * np.eye(WORDS, WORDS + 1) + (1 - sharpness) * noise
        made.append(PairMap(sentence, scores))
    return made


def calibration(sharpness, profile=FORMED, seed=0):
    return Calibration(profile, {pair.sentence.id: pair for pair in read(sharpness, seed=seed)})


def maps(pairs):
    return [pair.shares[:, :-1] for pair in pairs]


def test_the_estimate_is_that_of_the_maps_that_links_are_read_from():
    forward, back = read(0.4), read(0.3, seed=1)
    cells = np.concatenate([balanced_shares(one).ravel() for one in maps(forward)])
    assert estimated_share([(one, None) for one in forward], FORMED.streamed) == pytest.approx(best_share(cells))
    products = [two_way_shares(one * other.T).ravel() for one, other in zip(maps(forward), maps(back))]
    both = both_directions(FORMED.streamed.forward, REVERSE.streamed.forward, word_table=False)
    found = estimated_share(zip(forward, back), both)
    assert found == pytest.approx(best_share(np.concatenate(products)))


def test_sharp_maps_get_a_larger_share_than_diffuse_ones():
    sharp, diffuse = (calibration(of).with_share().profile for of in (0.8, 0.15))
    of_sharp, of_diffuse = (float(one.streamed.forward.rule.partition("=")[2]) for one in (sharp, diffuse))
    assert of_sharp >= 0.4 > 0.25 >= of_diffuse
    assert sharp.alone == sharp.streamed == one_direction(FORMED.streamed.forward, word_table=False, share=of_sharp)
    middle = calibration(0.2).with_share().profile
    assert middle == FORMED


@pytest.mark.parametrize(("estimate", "chosen"), [(0.14, 0.15), (0.16, 0.25), (0.34, 0.25), (0.352, 0.35), (0.38, 0.4)])
def test_the_default_remains_where_the_estimate_is_near(monkeypatch, estimate, chosen):
    monkeypatch.setattr(module, "estimated_share", lambda pairs, method: estimate)
    made = calibration(0.2).with_share()
    assert made.profile.streamed.forward.rule == f"balanced={chosen}"
    assert made.estimated == (chosen != 0.25)


def test_a_model_that_has_not_formed_keeps_the_default():
    assert calibration(0.8, YOUNG).with_share().profile == YOUNG


def test_too_few_words_keep_the_default():
    enough = calibration(0.8)
    few = Calibration(FORMED, dict(list(enough.pairs.items())[1:]))
    assert (enough.enough_words, few.enough_words) == (True, False)
    assert few.with_share().profile == FORMED != enough.with_share().profile
    assert not Calibration(FORMED).enough_words


def test_two_models():
    sharp, plain = calibration(0.8).with_share(), calibration(0.2, REVERSE, seed=1).with_share()
    assert (sharp.estimated, plain.estimated) == (True, False)
    one, other = profiles_together([sharp, plain])
    assert (one.reverse_model, other.reverse_model) == ("back", "m")
    pairs = zip(sharp.pairs.values(), plain.pairs.values())
    expected = rounded(estimated_share(pairs, both_of(sharp, plain)))
    assert one.both == both_of(sharp, plain, expected)
    assert other.both == both_of(plain, sharp, expected)
    sharper, _ = profiles_together([sharp, calibration(0.8, REVERSE, seed=1)])
    assert sharper.both == both_of(sharp, plain, 0.6) != one.both  # the largest


def both_of(one, other, share=0.4):
    maps = one.profile.streamed.forward, other.profile.streamed.forward
    return both_directions(*maps, word_table=False, share=share)


def test_without_word_pairs():
    for nothing in ([], [0.0, 0.0]):
        with pytest.raises(InputError, match="no word pair has a share above 0"):
            best_share(np.array(nothing))
    with pytest.raises(InputError, match="no word pair"):
        estimated_share([], FORMED.streamed)
    with pytest.raises(UsageError, match="rule kobayashi2020 reads no two-way shares"):
        estimated_share([], AlignmentMethod(FORMED.streamed.forward.with_rule("kobayashi2020")))
