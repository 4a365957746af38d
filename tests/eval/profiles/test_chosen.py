"""The method that options and profiles make."""

import argparse
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.lexical_table import count_lexical_table, write_lexical_table
from alignment_eval.extraction.method import DEFAULTS
from alignment_eval.maps.words import FORMED as FORMED_MAPS
from alignment_eval.maps.words import FORMING, WITHOUT_TABLE
from alignment_eval.profiles.chosen import (
    AlignmentOptions,
    add_map_arguments,
    add_options,
    choose_method,
    given_options,
)
from alignment_eval.profiles.profile import TableFile
from alignment_eval.reading import file_hash
from tests.eval.profiles.test_profile import FORMED, GUIDED, REVERSE, YOUNG
from tests.facts import facts

FEWEST, COUNTED = DEFAULTS.fewest_pairs, DEFAULTS.table_pairs
FORMED, REVERSE, YOUNG = (replace(own, name=name) for own, name in zip((FORMED, REVERSE, YOUNG), "abc"))
BOTH = [FORMED, REVERSE]


def chosen(profiles, pairs=None, **options):
    return choose_method(AlignmentOptions(**options), len(profiles), profiles, pairs)


@pytest.fixture
def table(tmp_path):
    """The file of a lexical table of two pairs."""
    pairs = [((["a", "b"], ["x", "y"]), np.eye(2)), ((["a"], ["x", "y"]), np.ones((2, 1)))]
    write_lexical_table(tmp_path / "t.parquet", count_lexical_table(pairs, FORMED_MAPS)[0], "")
    return tmp_path / "t.parquet"


@pytest.mark.parametrize(
    ("profile", "pairs", "options", "counted"),
    [
        (FORMED, FEWEST, {}, 0),
        (replace(FORMED, of_text=True), FEWEST, {}, COUNTED),
        (replace(FORMED, of_text=True), FEWEST, {"table": "none"}, 0),
        (FORMED, 1, {"table": "text"}, COUNTED),
        (YOUNG, FEWEST, {}, COUNTED),
        (YOUNG, FEWEST - 1, {}, 0),
    ],
)
def test_when_a_lexical_table_is_counted(profile, pairs, options, counted):
    made = chosen([profile], pairs, **options)
    assert (made.method.table_pairs, made.method.sharpened, made.table) == (counted, True, None)
    assert ("table is of the text, so each pair depends on the others" in made.reason) == bool(counted)


def test_the_table_of_a_profile(table):
    """It serves both directions; another file, or one that has changed, is not it."""
    own = replace(FORMED, table=TableFile(str(table), file_hash(table)))
    reverse = replace(REVERSE, table=TableFile(str(table), file_hash(table), exchanged=True))
    words = ["a"], ["x"]
    for profiles, of_words in (([own], words), ([own, REVERSE], words), ([FORMED, reverse], words)):
        made = chosen(profiles)
        assert (made.method.sharpened, made.method.table_pairs, made.given) == (True, 0, False)
        assert made.table.known(of_words).sums > 0
        assert f"lexical table of 2 pairs: {table}" in made.reason
        assert made.fields["table"] == file_hash(table)
    assert chosen([reverse]).table.known(words[::-1]).sums > 0
    assert chosen([own], table="none").table is None
    assert chosen([own, YOUNG], FEWEST).method.table_pairs == 0
    both = chosen([own], table="text")
    assert (both.method.table_pairs, both.table.pairs, both.given) == (COUNTED, 2, False)
    assert both.fields["table"] == f"{file_hash(table)}+text"
    assert f"each pair depends on the others; added to the lexical table of 2 pairs: {table}" in both.reason
    assert chosen([own], rule="kobayashi2020").method.sharpened is False
    with pytest.raises(InputError, match=facts(f"a: names the lexical table {table} with hash other, but")):
        chosen([replace(own, table=TableFile(str(table), "other"))])


def test_a_given_table(table):
    made = chosen([YOUNG], FEWEST, table=table)
    assert (made.method.sharpened, made.method.table_pairs, made.table.pairs, made.given) == (True, 0, 2, True)
    named = choose_method(AlignmentOptions(heads="1", table=table), 1, (), 100)
    assert (named.method.sharpened, named.method.forward.rule, named.table.pairs) == (True, "two-way=0.4", 2)
    assert AlignmentOptions(heads="1", table="none").named_maps(1) == AlignmentOptions(heads="1").named_maps(1)
    with pytest.raises(InputError, match="missing: cannot read"):
        chosen([FORMED], table="missing")


def test_how_much_the_parts_count_depends_on_the_models_and_on_the_table(table):
    """Maps that a user names count as those of models whose alignment has formed."""
    own = replace(FORMED, table=TableFile(str(table), file_hash(table)))
    for profiles, options, sharpening in (
        ([own], {}, FORMED_MAPS),
        ([own, REVERSE], {}, FORMED_MAPS),
        ([own, YOUNG], {}, FORMING),
        ([YOUNG], {"table": "text"}, FORMING),
        ([YOUNG], {}, WITHOUT_TABLE),
        ([FORMED], {"table": "text"}, FORMED_MAPS),
        ([FORMED], {"table": table}, FORMED_MAPS),
        ([own], {"table": "none"}, WITHOUT_TABLE),
        (BOTH, {}, WITHOUT_TABLE),
        (BOTH, {"join": "mutual"}, None),
        ([own], {"rule": "kobayashi2020"}, None),
    ):
        assert chosen(profiles, **options).method.sharpening == sharpening


def test_named_maps_are_sharpened_unless_their_rule_is_named():
    """So a rule links what sweep says."""
    for options, sharpening in (
        ({}, WITHOUT_TABLE),
        ({"table": "none"}, WITHOUT_TABLE),
        ({"table": "text"}, FORMED_MAPS),
        ({"rule": "two-way=0.4"}, None),
        ({"rule": "two-way=0.4", "table": "text"}, FORMED_MAPS),
    ):
        assert choose_method(AlignmentOptions(heads="1", **options), 1, (), 100).method.sharpening == sharpening


def test_two_directions():
    made = chosen(BOTH, FEWEST)
    assert (made.method.forward.rule, made.method.join) == ("two-way=0.4", "product")
    for profiles, counted in ((BOTH, 0), ([FORMED, YOUNG], COUNTED), ([YOUNG, FORMED], COUNTED)):
        assert chosen(profiles, FEWEST).method.table_pairs == counted
    assert {"profile", "reverse_profile"} <= made.fields.keys()
    mutual = chosen([YOUNG, GUIDED], FEWEST, join="mutual").method
    assert (mutual.join, mutual.sharpened) == ("mutual", False)
    assert (mutual.forward.rule, mutual.reverse.rule) == ("two-way=0.25", "two-way=0.25")
    assert chosen(BOTH, join="average").method.forward.rule == "two-way=0.4"
    assert chosen(BOTH, join="union").method.join == "union"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": "1", "profile": "p"}, "heads together with profile"),
        ({"combine": "mean"}, "combine without heads"),
        ({"reverse_heads": "1"}, "reverse_heads without heads"),
        ({"max_tokens": 0}, "max_tokens 0"),
        ({"rule": "kobayashi2020", "table": "text"}, "a lexical table does not work with rule 'kobayashi2020'"),
        ({"heads": ["1.2"]}, "heads ['1.2'] … expected names of maps or a text"),
        ({"heads": 1}, "heads 1 … expected"),
        ({"scores": "no"}, "scores 'no' … True or False"),
        ({"final_punctuation": "no"}, "final_punctuation 'no' … True or False"),
        ({"max_tokens": 1.5}, "max_tokens 1.5 … a whole number"),
    ],
    ids=str,
)
def test_options_that_do_not_go_together(options, message):
    with pytest.raises(UsageError, match=facts(message)):
        chosen([FORMED], **options)


def test_a_number_of_numpy_is_a_whole_number():
    assert AlignmentOptions(max_tokens=np.int64(500)).max_tokens == 500


def test_a_command_line_takes_every_option():
    """And gives what Python gives; without options, what the fields say."""
    parser = argparse.ArgumentParser()
    add_map_arguments(parser, "")
    add_options(parser, "join", "reverse_heads", "split_sentences", "max_tokens")
    assert given_options(parser.parse_args([])) == AlignmentOptions()
    words = "--heads 1.2 --kind attn_w --combine mean --setting awi --rule two-way=.4 --null mask"
    words += " --no-final-punctuation --profile none --join mutual --reverse-heads 0 --max-tokens 9"
    words += " --table text --split-sentences"
    options = given_options(parser.parse_args(words.split()))
    assert None not in vars(options).values()
    assert options == AlignmentOptions(
        **{"heads": "1.2", "kind": "attn_w", "combine": "mean", "setting": "awi", "rule": "two-way=.4", "null": "mask"},
        **{"final_punctuation": False, "profile": "none", "join": "mutual", "reverse_heads": "0", "max_tokens": 9},
        **{"table": "text", "split_sentences": True},
    )
