from dataclasses import replace

import pytest

from alignment_eval.extraction.defaults import FEWEST_PAIRS, PASSES
from alignment_eval.extraction.method import BidirectionalOptions, MapName
from alignment_eval.profiles.chosen import Overrides, chosen_method
from alignment_eval.profiles.profile import calibrated
from alignment_eval.profiles.search import Agreement

AGREEMENT = Agreement(MapName(0, 0, "awi"), MapName(2, None, "awo"), 0.6, 100)
FORWARD = calibrated(AGREEMENT, range(3), "m1", "t", 100)
REVERSE = calibrated(AGREEMENT, range(3), "m2", "t", 100)
WEAK = calibrated(replace(AGREEMENT, dice=0.5), range(3), "m4", "t", 100)
YOUNG = calibrated(None, range(3), "m3", "t", 100)
BOTH, NAMES = [FORWARD, REVERSE], ["a.json", "b.json"]


@pytest.mark.parametrize(
    ("profile", "pairs", "overrides", "passes", "rule", "remark"),
    [
        (FORWARD, FEWEST_PAIRS, {}, 0, "balanced=0.25", ""),
        (FORWARD, 1, {"word_table_passes": 1}, 1, "balanced=0.3", "with a word table of the text"),
        (FORWARD, 1, {"word_table_file": "x"}, 0, "balanced=0.3", "word_table: x"),
        (YOUNG, FEWEST_PAIRS, {}, PASSES, "balanced=0.35", "with a word table of the text"),
        (YOUNG, FEWEST_PAIRS - 1, {}, 0, "balanced=0.25", f"needs {FEWEST_PAIRS} pairs, not {FEWEST_PAIRS - 1}"),
        (YOUNG, None, {}, 0, "balanced=0.25", ""),
        (YOUNG, FEWEST_PAIRS, {"word_table_passes": 0}, 0, "balanced=0.25", ""),
    ],
)
def test_the_word_table(profile, pairs, overrides, passes, rule, remark):
    chosen = chosen_method([profile], NAMES[:1], pairs, Overrides(**overrides))
    assert (chosen.method.word_table_passes, chosen.method.forward.rule) == (passes, rule)
    assert remark in chosen.reason
    assert ("word table" in chosen.reason or "word_table" in chosen.reason) == bool(remark)


def test_the_reason_names_maps_and_profiles():
    maps = "reading head 0.0 (AWI) × layer 2 (AWO); profile: a.json"
    assert chosen_method([FORWARD], NAMES[:1], 100).reason == maps
    assert chosen_method(BOTH, NAMES, 100).reason == f"{maps}, b.json"
    young = chosen_method([YOUNG], NAMES[:1], None).reason
    assert "reading the mean of layer 1 (AWO) and layer 2 (AWO); profile: a.json; the alignment of this" in young
    other = chosen_method([FORWARD, YOUNG], NAMES, 100).reason
    assert "and, in the other direction, the mean of layer 1 (AWO) and layer 2 (AWO); profile: a.json, b.json" in other


def test_a_weak_model_is_told_of_the_word_table():
    def told(profiles, passes=None):
        chosen = chosen_method(profiles, NAMES[: len(profiles)], 100, Overrides(word_table_passes=passes))
        return "--word-table 2 may help" in chosen.reason

    assert told([WEAK])
    assert not any(map(told, ([FORWARD], [YOUNG], [WEAK, WEAK])))
    assert not any(told([WEAK], passes) for passes in (0, 2))


@pytest.mark.parametrize("final", [True, False, None])
def test_rule_and_punctuation_are_those_that_are_stated(final):
    overrides = Overrides(rule="two-way=0.6", final_punctuation=final)
    expected = ("two-way=0.6", final is not False)
    for profiles in ([FORWARD], BOTH):
        method = chosen_method(profiles, NAMES[: len(profiles)], None, overrides).method
        for options in (method.forward, method.reverse):
            assert options is None or (options.rule, options.final_punctuation) == expected
        assert method.forward.heads == FORWARD.alone.forward.heads


def test_two_directions():
    chosen = chosen_method(BOTH, NAMES, FEWEST_PAIRS)
    assert chosen.method == FORWARD.method_with(REVERSE, FEWEST_PAIRS)
    for profiles, passes in ((BOTH, 0), ([FORWARD, YOUNG], PASSES), ([YOUNG, FORWARD], PASSES)):
        assert chosen_method(profiles, NAMES, FEWEST_PAIRS).method.word_table_passes == passes
    assert all(name in chosen.reason for name in NAMES)
    assert {"profile", "reverse_profile"} <= chosen.fields.keys()
    assert chosen.profile is FORWARD
    mutual = chosen_method(BOTH, NAMES, FEWEST_PAIRS, Overrides(both=BidirectionalOptions("mutual"))).method
    assert (mutual.both, mutual.word_table_passes) == (BidirectionalOptions("mutual"), 0)
    assert mutual.reverse == REVERSE.streamed.forward
    assert mutual.forward.rule == "balanced=0.25"
    average = chosen_method(BOTH, NAMES, FEWEST_PAIRS, Overrides(both=BidirectionalOptions("average"))).method
    assert (average.forward.rule, average.reverse.rule) == ("grow=0.25", "grow=0.25")  # of the mean of both directions
