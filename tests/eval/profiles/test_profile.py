"""Profiles: written, read, and refused."""

import json
from dataclasses import replace

import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.method import DEFAULTS, MapName
from alignment_eval.profiles.profile import (
    Profile,
    TableFile,
    find_profile,
    fit_profile,
    product_of,
    read_profile,
    upper_layers,
)

FORMED = Profile("m1", product_of([MapName(0, 0, "awi"), MapName(2)]), "agreement", 0.6, 100, "t")
REVERSE = replace(FORMED, model="m2")
YOUNG = Profile("m3", upper_layers(range(3)), "upper-layers", 0.39, 100, "t")
GUIDED = fit_profile((), range(3), "m4", [MapName(0, 0, "awi"), MapName(1, 0, "awi"), MapName(2)])


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "c.pt.align.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.mark.parametrize("profile", [FORMED, YOUNG, GUIDED, FORMED.with_reverse(REVERSE), FORMED.with_reverse(YOUNG)])
def test_what_is_written_is_read(write, profile):
    path = write(profile.to_json())
    assert read_profile(path, profile.model) == profile
    assert read_profile(path).name == str(path)


def test_what_is_read_by_default():
    forward = FORMED.extraction()
    assert (forward.kind, str(forward.heads), forward.combine) == ("attn_n", "0.0:awi,2", "product")
    assert (forward.rule, forward.null, forward.final_punctuation) == ("balanced=0.4", "mask", True)
    assert FORMED.extraction("mutual").rule == FORMED.extraction("union").rule == "balanced=0.25"
    assert (YOUNG.extraction().combine, YOUNG.extraction().setting) == ("mean", "awo")
    assert (GUIDED.chosen_by, GUIDED.figure, str(GUIDED.maps.heads)) == ("training", None, "0.0:awi,1.0:awi,2")


def test_too_few_pairs_to_choose_by(make_sentence):
    few = [make_sentence(k) for k in range(DEFAULTS.fewest_pairs - 1)]
    for layers, heads in ((range(3), "1,2"), ([0], "0")):
        profile = fit_profile(few, layers, "m")
        assert (profile.chosen_by, str(profile.maps.heads), profile.text) == ("upper-layers", heads, "")
    enough = fit_profile([*few, make_sentence(99)], range(2), "m")  # of random maps
    assert (enough.formed, enough.pairs, len(enough.text)) == (False, DEFAULTS.fewest_pairs, 12)


def test_which_profile_counts(write, tmp_path):
    both = FORMED.with_reverse(YOUNG)
    beside = write(both.to_json())
    assert find_profile("m1", None, beside) == find_profile("m1", str(beside)) == both
    assert find_profile("m1", "none", beside) is None
    assert find_profile("m1", None, tmp_path / "missing") is None
    reverse = find_profile("m3", str(beside), reverse=True)
    assert (reverse.model, reverse.maps, reverse.reverse_maps) == ("m3", YOUNG.maps, None)
    with pytest.raises(InputError, match=r"align\.json: was chosen for model m3.*m2"):
        find_profile("m2", str(beside), reverse=True)
    with pytest.raises(UsageError, match=r"align\.json: is a profile of one direction"):
        find_profile("m2", str(write(FORMED.to_json())), reverse=True)


def test_another_model_is_refused(write):
    with pytest.raises(InputError, match=r"c\.pt\.align\.json.*model m1.*m2.*use no profile"):
        read_profile(write(FORMED.to_json()), "m2")


def without(*names, **changes):
    return {**{key: value for key, value in json.loads(FORMED.to_json()).items() if key not in names}, **changes}


def maps(**changes):
    return without(maps={**without()["maps"], **changes})


def test_a_lexical_table_lies_beside_its_profile(write):
    own = replace(FORMED, table=TableFile("t.parquet", "h"))
    path = write(own.to_json())
    assert read_profile(path).table.name == str(path.with_name("t.parquet"))
    for name in ("../t.parquet", "/t.parquet"):
        with pytest.raises(InputError, match=r"align\.json: the lexical table .*t\.parquet is a path"):
            read_profile(write(replace(own, table=TableFile(name, "h")).to_json()))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "truncated"),
        ({"profile": 1}, "profile is 1: expected version 2"),
        (without(more=1), "keys are missing or unknown"),
        (without(maps=None), "maps is None: expected object"),
        (without(chosen_by="\x1b[31m" * 99), r"chosen_by is '\\x1b\[31m"),
        (without(figure=1.5), "figure is 1.5: expected float <= 1.0"),
        (without(reverse_model="m2"), "reverse model"),
        (maps(rule="grow=0.4"), "keys are missing or unknown"),
        (maps(heads="x"), "maps.heads: cannot read heads 'x'"),
    ],
)
def test_a_damaged_file_is_named(write, content, problem):
    with pytest.raises(InputError, match=rf"c\.pt\.align\.json: .*not a profile .*{problem}") as error:
        read_profile(write(content))
    assert len(str(error.value)) < 450
    assert str(error.value).isprintable()
