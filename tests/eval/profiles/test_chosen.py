"""The method that options and profiles make."""

import argparse
from dataclasses import fields, replace

import pytest

from alignment_eval.errors import UsageError
from alignment_eval.extraction.defaults import DEFAULTS
from alignment_eval.extraction.method import BidirectionalOptions, ExtractionOptions
from alignment_eval.options.method import add_lexical_table_arguments, add_map_arguments, add_options, given_options
from alignment_eval.profiles.chosen import AlignmentOptions, choose_method
from tests.eval.profiles.test_profile import FORMED, GUIDED, REVERSE, YOUNG

FEWEST, PASSES = DEFAULTS.fewest_pairs, DEFAULTS.lexical_table_passes
FORMED, REVERSE, YOUNG = (replace(own, name=name) for own, name in zip((FORMED, REVERSE, YOUNG), "abc"))
WEAK = replace(FORMED, figure=0.5)
BOTH = [FORMED, REVERSE]


def chosen(profiles, pairs=None, **options):
    return choose_method(AlignmentOptions(**options), len(profiles), profiles, pairs)


@pytest.mark.parametrize(
    ("profile", "pairs", "options", "passes", "rule", "remark"),
    [
        (FORMED, FEWEST, {}, 0, "balanced=0.25", ""),
        (FORMED, 1, {"lexical_table": 1}, 1, "balanced=0.3", "with a lexical table of the text"),
        (FORMED, 1, {"lexical_table_file": "x"}, 0, "balanced=0.3", "lexical table: x"),
        (YOUNG, FEWEST, {}, PASSES, "balanced=0.35", "with a lexical table of the text"),
        (YOUNG, FEWEST - 1, {}, 0, "balanced=0.25", f"needs {FEWEST} pairs, not {FEWEST - 1}"),
        (YOUNG, None, {}, 0, "balanced=0.25", ""),
        (YOUNG, FEWEST, {"lexical_table": 0}, 0, "balanced=0.25", ""),
        (YOUNG, FEWEST, {"lexical_table_file": "x"}, 0, "balanced=0.35", "lexical table: x"),
    ],
)
def test_the_lexical_table(profile, pairs, options, passes, rule, remark):
    made = chosen([profile], pairs, **options)
    assert (made.method.lexical_table_passes, made.method.forward.rule) == (passes, rule)
    assert remark in made.reason
    assert ("lexical table" in made.reason) == bool(remark)


def test_the_reason_names_maps_and_profiles():
    maps = "reading head 0.0 (AWI) × layer 2 (AWO); profile: a"
    assert chosen([FORMED], 100).reason == maps
    assert chosen(BOTH, 100).reason == f"{maps}, b"
    young = chosen([YOUNG]).reason
    assert "reading the mean of layer 1 (AWO) and layer 2 (AWO); profile: c; the alignment of this" in young
    other = chosen([FORMED, YOUNG], 100).reason
    assert "and, in the other direction, the mean of layer 1 (AWO) and layer 2 (AWO); profile: a, c" in other


def test_a_weak_model_is_told_of_the_lexical_table():
    def told(profiles, **options):
        return "--lexical-table 2 may help" in chosen(profiles, 100, **options).reason

    assert told([WEAK])
    assert not any(map(told, ([FORMED], [YOUNG], [WEAK, WEAK])))
    assert not any(told([WEAK], lexical_table=passes) for passes in (0, 2))


@pytest.mark.parametrize("final", [True, False, None])
def test_rule_and_punctuation_are_those_that_are_stated(final):
    for profiles in ([FORMED], BOTH):
        method = chosen(profiles, rule="two-way=0.6", final_punctuation=final).method
        for options in (method.forward, method.reverse):
            assert options is None or (options.rule, options.final_punctuation) == ("two-way=0.6", final is not False)
        assert method.forward.heads == FORMED.maps.heads


def test_two_directions():
    made = chosen(BOTH, FEWEST)
    assert (made.method.forward.rule, made.method.both) == ("grow=0.4", BidirectionalOptions("product"))
    for profiles, passes in ((BOTH, 0), ([FORMED, YOUNG], PASSES), ([YOUNG, FORMED], PASSES)):
        assert chosen(profiles, FEWEST).method.lexical_table_passes == passes
    assert {"profile", "reverse_profile"} <= made.fields.keys()
    mutual = chosen([YOUNG, GUIDED], FEWEST, join="mutual").method
    assert (mutual.both, mutual.lexical_table_passes) == (BidirectionalOptions("mutual"), 0)
    assert (mutual.forward.rule, mutual.reverse.rule) == ("balanced=0.25", "balanced=0.35")
    assert chosen(BOTH, join="average").method.forward.rule == "grow=0.25"  # of the mean of both directions
    assert chosen(BOTH, join="union").method.both == BidirectionalOptions(method="union")


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (
            {"heads": "1.2", "kind": "attn_w", "setting": "awi", "rule": "kobayashi2020", "null": "mask"},
            ExtractionOptions("attn_w", "1.2", null="mask"),
        ),
        (
            {"heads": "1.2,0:awi", "combine": "product", "final_punctuation": True},
            ExtractionOptions("attn_n", "1.2,0:awi", "product", "awo", "balanced=0.25", final_punctuation=True),
        ),
    ],
)
def test_named_maps(given, options):
    made = choose_method(AlignmentOptions(**given), 1, (), 100)
    assert (made.method.forward, made.method.lexical_table_passes, made.reason) == (options, 0, "")


def test_named_maps_of_two_directions():
    def method(**options):
        return choose_method(AlignmentOptions(heads="1", **options), 2, (), 100).method

    joined = method(lexical_table=2, lexical_table_pairs=7)
    assert (joined.forward.rule, joined.reverse, joined.both.join) == ("grow=0.4", joined.forward, "product")
    assert (joined.lexical_table_passes, joined.lexical_table_pairs) == (2, 7)
    assert method(join="average").forward.rule == "grow=0.25"
    other = method(join="mutual", reverse_heads="0.3").reverse
    assert (str(other.heads), other.rule) == ("0.3", "balanced=0.25")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": "1", "profile": "p"}, "heads together with profile"),
        ({"combine": "mean"}, "combine without heads"),
        ({"reverse_heads": "1"}, "reverse_heads without heads"),
        ({"rule": "sum"}, "unknown rule 'sum'"),
        ({"lexical_table": -1}, "lexical table -1"),
        ({"lexical_table": 1, "lexical_table_file": "x"}, "lexical table file x with passes or pairs"),
        ({"lexical_table_pairs": 5}, "lexical_table_pairs: no lexical table is counted here"),
        ({"max_tokens": 0}, "max_tokens 0"),
        ({"max_tokens": True}, "max_tokens True"),
        ({"join": "sum"}, "unknown join 'sum'"),
        (
            {"rule": "kobayashi2020", "lexical_table_file": "x"},
            "a lexical table does not work with rule 'kobayashi2020'",
        ),
    ],
    ids=str,
)
def test_options_that_do_not_go_together(options, message):
    with pytest.raises(UsageError, match=message):
        chosen([FORMED], **options)


def test_a_command_line_takes_every_option():
    """And gives what Python gives; without options, what the fields say."""
    parser = argparse.ArgumentParser()
    add_map_arguments(parser, "")
    add_options(parser, "join", "reverse_heads", "max_tokens")
    add_lexical_table_arguments(parser)
    assert given_options(parser.parse_args([])) == AlignmentOptions()
    words = "--layer 1.2 --kind attn_w --combine mean --setting awi --rule grow=.4 --null mask --no-final-punctuation"
    words += " --profile none --join mutual --reverse-heads 0 --max-tokens 9 --lexical-table 2 --lexical-table-pairs 5"
    options = given_options(parser.parse_args(words.split()))
    defaults = AlignmentOptions()
    same = {declared.name for declared in fields(options) if getattr(options, declared.name) is None}
    assert same == {"lexical_table_file"}
    assert options == replace(
        defaults,
        **{"heads": "1.2", "kind": "attn_w", "combine": "mean", "setting": "awi", "rule": "grow=.4", "null": "mask"},
        **{"final_punctuation": False, "profile": "none", "join": "mutual", "reverse_heads": "0", "max_tokens": 9},
        **{"lexical_table": 2, "lexical_table_pairs": 5},
    )
    assert given_options(parser.parse_args(["--lexical-table", "f"])) == AlignmentOptions(lexical_table_file="f")
    help_ = " ".join(parser.format_help().split())
    assert all(" ".join(own.metadata["help"].split()[:3]) in help_ for own in fields(options) if own.metadata)
