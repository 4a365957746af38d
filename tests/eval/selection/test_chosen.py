from __future__ import annotations

from dataclasses import replace

import pytest

from alignment_eval.errors import UsageError
from alignment_eval.extraction.defaults import FEWEST_PAIRS, PASSES
from alignment_eval.extraction.method import BidirectionalOptions
from alignment_eval.extraction.options import MapName
from alignment_eval.selection.agreement import Agreement
from alignment_eval.selection.chosen import (
    Overrides,
    chosen_method,
    few_pairs_warning,
    require_both,
    seen_warning,
)
from alignment_eval.selection.profile import Profile, calibrated, together

AGREEMENT = Agreement(MapName(0, 0, "awi"), MapName(2, None, "awo"), 0.6, 100)
FORWARD = calibrated(AGREEMENT, range(3), "m1", "t", 100)
REVERSE = calibrated(AGREEMENT, range(3), "m2", "t", 100)
WEAK = calibrated(replace(AGREEMENT, dice=0.5), range(3), "m4", "t", 100)
YOUNG = calibrated(None, range(3), "m3", "t", 100)
BOTH, NAMES = [FORWARD, REVERSE], ["a.json", "b.json"]


@pytest.mark.parametrize(
    ("profile", "pairs", "overrides", "passes", "rule", "reason"),
    [
        (FORWARD, FEWEST_PAIRS, Overrides(), 0, "balanced=0.25", "without a lexicon: each pair stands alone"),
        (FORWARD, 1, Overrides(), 0, "balanced=0.25", "without a lexicon: each pair stands alone"),
        (FORWARD, 1, Overrides(lexicon_passes=1), 1, "balanced=0.3", "with a lexicon of the text"),
        (FORWARD, 1, Overrides(lexicon_passes=0, lexicon_file="x"), 0, "balanced=0.3", "with the lexicon of x"),
        (YOUNG, FEWEST_PAIRS, Overrides(), PASSES, "balanced=0.35", "with a lexicon of the text"),
        (
            YOUNG,
            FEWEST_PAIRS - 1,
            Overrides(),
            0,
            "balanced=0.25",
            f"needs {FEWEST_PAIRS} pairs, not {FEWEST_PAIRS - 1}",
        ),
        (YOUNG, None, Overrides(), 0, "balanced=0.25", "without a lexicon: each pair stands alone"),
        (YOUNG, FEWEST_PAIRS, Overrides(lexicon_passes=0), 0, "balanced=0.25", "without a lexicon: each pair"),
    ],
)
def test_the_lexicon(
    profile: Profile, pairs: int | None, overrides: Overrides, passes: int, rule: str, reason: str
) -> None:
    found = chosen_method([profile], NAMES[:1], pairs, overrides)
    assert (found.method.lexicon_passes, found.method.forward.rule) == (passes, rule)
    assert reason in found.reason


def test_a_weak_model_is_told_of_the_lexicon() -> None:
    def told(profiles: list[Profile], passes: int | None = None) -> bool:
        chosen = chosen_method(profiles, NAMES[: len(profiles)], 100, Overrides(lexicon_passes=passes))
        return "--lexicon 2 may help" in chosen.reason

    assert told([WEAK])
    assert not any(map(told, ([FORWARD], [YOUNG], [WEAK, WEAK])))
    assert not any(told([WEAK], passes) for passes in (0, 2))


@pytest.mark.parametrize("final", [True, False, None])
def test_rule_and_punctuation_are_those_that_are_stated(final: bool | None) -> None:
    overrides = Overrides(rule="two-way=0.6", final_punctuation=final)
    expected = ("two-way=0.6", final is not False)
    for profiles in ([FORWARD], BOTH):
        method = chosen_method(profiles, NAMES[: len(profiles)], None, overrides).method
        for options in (method.forward, method.reverse):
            assert options is None or (options.rule, options.final_punctuation) == expected
        assert method.forward.map_names == FORWARD.alone.forward.map_names


def test_two_directions() -> None:
    found = chosen_method(BOTH, NAMES, FEWEST_PAIRS)
    assert found.method == FORWARD.method_with(REVERSE, FEWEST_PAIRS)
    assert all(name in found.reason for name in NAMES)
    assert {"profile", "reverse_profile"} <= found.fields.keys()
    assert found.profile is FORWARD
    mutual = chosen_method(BOTH, NAMES, FEWEST_PAIRS, Overrides(both=BidirectionalOptions("mutual"))).method
    assert (mutual.both, mutual.lexicon_passes) == (BidirectionalOptions("mutual"), 0)
    assert mutual.reverse == REVERSE.streamed.forward
    assert mutual.forward.rule == "balanced=0.25"
    average = chosen_method(BOTH, NAMES, FEWEST_PAIRS, Overrides(both=BidirectionalOptions("average"))).method
    assert (average.forward.rule, average.reverse.rule) == ("grow=0.25", "grow=0.25")  # of the mean of both directions


def test_a_profile_of_one_direction_does_not_serve_two() -> None:
    require_both(together(FORWARD, REVERSE), "p.json")
    with pytest.raises(UsageError, match=r"--profile p\.json: is of one direction.*--reverse-path"):
        require_both(replace(FORWARD, both=None), "p.json")


def test_warnings() -> None:
    assert few_pairs_warning(FEWEST_PAIRS) is None
    assert f"on {FEWEST_PAIRS - 1} sentence pairs" in str(few_pairs_warning(FEWEST_PAIRS - 1))
    assert seen_warning(None, [], 0) is None
    assert seen_warning(FORWARD, [], 0) is None  # not chosen by gold
