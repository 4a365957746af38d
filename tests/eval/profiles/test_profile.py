"""Profiles: written, read, and refused."""

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.method import DEFAULTS, ExtractionOptions, MapName
from alignment_eval.maps.sentence import words_of
from alignment_eval.maps.words import FORMED as FORMED_MAPS
from alignment_eval.profiles import profile
from alignment_eval.profiles.profile import (
    Profile,
    TableFile,
    TextRecipe,
    choose_by_agreement,
    find_profile,
    fit_profile,
    read_profile,
)
from tests.eval.extraction.test_lexical_table import slow_count
from tests.eval.maps.test_order import slow_two_way

FORMED = Profile("m1", ExtractionOptions("attn_n", "0.0:awi,2", "product", "awo"), "agreement", 0.6, 100, "t")
REVERSE = replace(FORMED, model="m2")
YOUNG = Profile("m3", ExtractionOptions("attn_logit", "1,2", "mean", "awo"), "upper-layers", 0.39, 100, "t")
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
    assert read_profile(path) == profile
    assert read_profile(path).name == str(path)


def test_which_files_a_profile_lacks_beside_it(tmp_path):
    for name, text in (("a/codes", "one"), ("b/codes", "two"), ("c/codes", "one"), ("a/other", "")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    one, two = (TextRecipe(files={"bpe_codes": [str(tmp_path / name / "codes")]}) for name in "ab")
    place = tmp_path / "d"
    missing = one.missing_in(place, {})
    assert missing == {place / "codes": str(tmp_path / "a/codes")}
    assert one.missing_in(place, missing) == missing
    assert one.missing_in(tmp_path / "c", {}) == {}
    for directory, others in ((tmp_path / "a", {}), (place, missing)):
        with pytest.raises(InputError, match=re.escape(str(tmp_path / "a/codes"))):
            two.missing_in(directory, others)


def test_too_few_pairs_to_choose_by(make_sentence):
    few = [make_sentence(k) for k in range(DEFAULTS.fewest_pairs - 1)]
    for layers, heads in ((range(3), "1,2"), ([0], "0")):
        profile = fit_profile(few, layers, "m")
        assert profile.maps == ExtractionOptions("attn_logit", heads, "mean", "awo")
        assert (profile.chosen_by, profile.text) == ("upper-layers", "")
    enough = fit_profile([*few, make_sentence(99)], range(2), "m")  # of random maps
    assert (enough.formed, enough.pairs, len(enough.text)) == (False, DEFAULTS.fewest_pairs, 12)


def test_which_profile_counts(write, tmp_path):
    both = FORMED.with_reverse(YOUNG)
    beside = write(both.to_json())
    assert find_profile(None, beside).of("m1") == find_profile(str(beside)) == both
    assert find_profile("none", beside) is None
    assert find_profile(None, tmp_path / "missing") is None
    reverse = both.of("m3", reverse=True)
    assert (reverse.model, reverse.maps, reverse.reverse_maps) == ("m3", YOUNG.maps, None)
    for options in ({}, {"reverse": True}):
        with pytest.raises(InputError, match=r"align\.json: .*m[13].*m2"):
            find_profile(beside).of("m2", **options)
    beside.write_text(FORMED.to_json())  # what changed is read again
    assert find_profile(None, beside) == FORMED


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
        ({"profile": 1}, "profile is 1: expected version 2"),
        (without(maps=None), "maps: Expected `object`, got `null`"),
        (without(chosen_by="\x1b[31m" * 99), r"chosen_by: Invalid enum value '\\x1b\[31m"),
        (without(reverse_model="m2"), "reverse model"),
        (maps(rule="two-way=0.4"), "keys are missing or unknown"),
        (maps(heads="x"), "maps.heads: cannot read heads 'x'"),
    ],
)
def test_a_damaged_file_is_named(write, content, problem):
    with pytest.raises(InputError, match=rf"c\.pt\.align\.json: .*not a profile .*{problem}") as error:
        read_profile(write(content))
    assert len(str(error.value)) < 450
    assert str(error.value).isprintable()


TEXTS = [("a@@ b c . </s>", "x y@@ z . </s>"), ("a b c d </s>", "x y z v </s>"), ("a b@@ c </s>", "x y </s>")]


def pairs_of(sentence):
    """Each AWI map with each AWO map of a higher layer, by the AWO map, then by the AWI map."""
    names = [(layer, head) for layer in sentence.layers for head in (*range(sentence.heads), None)]
    return [
        (MapName(*awi, "awi"), MapName(*awo, "awo")) for awo, awi in itertools.product(names, names) if awi[0] < awo[0]
    ]


def slow_links(sentences, name):
    """The links of a map in each sentence, by two-way shares after a lexical table of all sentences."""
    maps = [read_word_map(sentence, ExtractionOptions("attn_n", [name])).shares[:, :-1] for sentence in sentences]
    _, sharp = slow_count(list(zip(map(words_of, sentences), maps)), FORMED_MAPS)
    return [set(zip(*np.nonzero(slow_two_way(word_map) >= 0.3))) for word_map in sharp]


def slow_dice(sentences, pair):
    """2 |A ∩ B| / (|A| + |B|) of the links of two maps, less what is chance in both.

    It is 0 if they share few links, or those on the diagonal only.
    """
    common = size = words = 0.0
    shared = straight = 0
    both = (slow_links(sentences, name) for name in pair)
    for sentence, a, b in zip(sentences, *both):
        height, width = sentence.target.word_count, sentence.source.word_count
        chance = len(a) * len(b) / (height * width)
        common, size = common + len(a & b) - chance, size + len(a) + len(b) - 2 * chance
        shared, words = shared + len(a & b), words + (height + width) / 2
        straight += sum(i == int((j + 0.5) / height * width) for j, i in a & b)
    return 2 * common / size if size and common >= 0.15 * words and straight <= 0.9 * shared else 0


def slow_order(pair):
    """Which of two pairs of maps that agree equally well is read."""
    awi, awo = pair
    return awi.layer, awi.head is None, -awo.layer, awo.head is not None


@pytest.mark.parametrize("seed", [0, 1, 2, 6, 25])  # of 6 and 25 other pairs would be close within 0.015 and 0.06
def test_the_choice_by_agreement_is_that_of_the_slow_loop(make_sentence, seed):
    sentences = [make_sentence(10 * seed + k, *text, layers=3) for k, text in enumerate(TEXTS)]
    figures = {pair: slow_dice(sentences, pair) for pair in pairs_of(sentences[0])}
    close = [pair for pair, dice in figures.items() if dice >= max(figures.values()) - 0.03]
    best = sorted(close, key=lambda pair: (*slow_order(pair), -figures[pair]))[0]
    maps, dice = choose_by_agreement(sentences)
    assert (maps, dice) == (best, pytest.approx(figures[best]))


def following(make_sentence, linked, id_=0):
    """A sentence with these links in its upper map in AWO and in its lower map in AWI; other rows are flat."""
    sizes = zip("ax", reversed(linked.shape))
    words = (" ".join(f"{letter}{id_}-{k}" for k in range(size)) for letter, size in sizes)
    sentence = make_sentence(id_, *(f"{side} </s>" for side in words), heads=1)
    arrays = {name: np.zeros_like(array, dtype=np.float64) for name, array in sentence.arrays.items()}
    flat = np.pad(linked + 0.02 * (linked.sum(axis=1, keepdims=True) == 0), ((0, 1), (0, 1)))
    arrays["layer_attn_n"][1], arrays["layer_attn_n"][0] = flat, np.roll(flat, 1, axis=0)
    return replace(sentence, arrays=arrays)


def test_agreement_on_few_links_does_not_count(make_sentence):
    """The maps share two links of seven words each, and no more in two other sentences."""
    two = np.eye(7)[:, [1, 0, *range(2, 7)]] * (np.arange(7)[:, None] < 2)
    assert choose_by_agreement([following(make_sentence, two)]) is not None
    others = [following(make_sentence, np.zeros((7, 7)), id_) for id_ in (1, 2)]
    assert choose_by_agreement([following(make_sentence, two), *others]) is None


@pytest.mark.parametrize(("size", "counts"), [(20, True), (21, False)])
def test_a_tenth_of_the_links_must_leave_the_diagonal(make_sentence, size, counts):
    """All maps link the words in their order, but for the first two, which are exchanged: 2 of 20 are enough."""
    sentence = following(make_sentence, np.eye(size)[:, [1, 0, *range(2, size)]])
    expected = ((MapName(0, None, "awi"), MapName(1, None, "awo")), 1.0) if counts else None
    # sentences without maps do not count
    assert choose_by_agreement([make_sentence(9, status="empty"), sentence]) == expected


@pytest.mark.parametrize(("dice", "formed"), [(0.49, False), (0.5, True)])
def test_an_alignment_has_formed_from_an_agreement_of_0_5_on(make_sentence, monkeypatch, dice, formed):
    maps = MapName(0, 0, "awi"), MapName(1, None, "awo")
    monkeypatch.setattr(profile, "choose_by_agreement", lambda sentences: (maps, dice))
    made = fit_profile([make_sentence(k) for k in range(30)], range(2), "m")
    assert (made.formed, made.figure, str(made.maps.heads)) == (formed, dice, "0.0:awi,1" if formed else "0,1")
