"""A lexical table: counted and read as by hand; its file; the text that it suits."""

import copy
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.extraction.lexical_table import (
    EMPTY,
    LEAST_SUM,
    SCHEMA,
    check_match,
    count_lexical_table,
    read_lexical_table,
    write_lexical_table,
)
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.maps.words import FORMED, FORMING, WITHOUT_TABLE
from alignment_eval.profiles.profile import TableFile, fit_profile
from alignment_eval.reading import file_hash
from tests.eval.maps.test_order import slow_two_way
from tests.facts import facts, says

SHARPENINGS = FORMED, FORMING, WITHOUT_TABLE


def slow_evidence(word_map):
    return np.rint(slow_two_way(word_map) ** 1.5 * 2**20) / 2**20


class SlowTable:
    """What each pair of the text adds, by pairs of words in dictionaries."""

    def __init__(self):
        self.added, self.counts = {}, ({}, {})

    def add(self, number, words, found):
        for side, counts in zip(words, self.counts):
            for word in side:
                counts[word] = counts.get(word, 0) + 1
        for t, s in np.ndindex(*found.shape):
            cell = words[0][s], words[1][t]
            self.added.setdefault(cell, []).append((number, float(found[t, s])))

    def step(self, words, word_map, weighed, sharpening, counted=None):
        """One pass by the sums of the other pairs (all but number ``counted``), and a part of the cell's own evidence.

        A pair of words that the others have less than 0.01 of counts as 0; words with the same four letters help.
        """
        own = slow_evidence(weighed)
        found = np.zeros(word_map.shape)
        for t, s in np.ndindex(*word_map.shape):
            u, v = words[0][s], words[1][t]
            others = self.sum_of(lambda a, b, u=u, v=v: (a, b) == (u, v), counted)
            others = 0.0 if others < LEAST_SUM else others
            scale = self.scale(lambda a, u=u: a == u, lambda b, v=v: b == v)
            alike = self.sum_of(lambda a, b, u=u, v=v: (a[:4], b[:4]) == (u[:4], v[:4]), counted)
            alike_scale = self.scale(lambda a, u=u: a[:4] == u[:4], lambda b, v=v: b[:4] == v[:4])
            weight = (others + 0.3 * own[t, s] + 0.01) / scale + 0.5 * alike / alike_scale
            found[t, s] = word_map[t, s] ** sharpening.of_map * weight**sharpening.of_table
        return found

    def sum_of(self, is_wanted, counted):
        """What all pairs but number ``counted`` add to the pairs of words that are wanted."""
        cells = (of_cell for cell, of_cell in self.added.items() if is_wanted(*cell))
        return sum(added for of_cell in cells for number, added in of_cell if number is None or number != counted)

    def scale(self, *sides):
        """√((c + 1)(c + 1)) of the words of each side that are wanted."""
        counts = (
            sum(count for word, count in of_side.items() if is_wanted(word))
            for of_side, is_wanted in zip(self.counts, sides)
        )
        return math.sqrt(math.prod(count + 1 for count in counts))


def slow_count(pairs, sharpening, others=None):
    """The table, with that of ``others`` if there are any, and the map of each pair as counting has left it."""
    weighed = [word_map**sharpening.of_map for _, word_map in pairs]
    for _ in range(2):
        table = copy.deepcopy(others) or SlowTable()
        for number, ((words, _), now) in enumerate(zip(pairs, weighed)):
            table.add(number, words, slow_evidence(now))
        steps = [(*pair, now, sharpening, number) for number, (pair, now) in enumerate(zip(pairs, weighed))]
        weighed = [table.step(*step) for step in steps]
    return table, weighed


def slow_file(pairs, sharpening):
    """The table of a text as a file has it: without small sums, and without numbers of pairs."""
    table, _ = slow_count(pairs, sharpening)
    sums = {cell: sum(added for _, added in of_cell) for cell, of_cell in table.added.items()}
    table.added = {cell: [(None, total)] for cell, total in sums.items() if total >= LEAST_SUM}
    return table


def slow_reweight(table, words, word_map, sharpening):
    """The map of a pair that was not counted."""
    weighed = word_map**sharpening.of_map
    for _ in range(2):
        weighed = table.step(words, word_map, weighed, sharpening)
    return weighed


#: Words of which some have the same four letters.
SOURCES, TARGETS = ("haus", "hauses", "ab"), ("house", "houses", "x")


def random_text(seed, pairs=4, *words):
    """Short pairs of few words, many of them twice, with rows and columns of zeros, and small shares."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(pairs):
        source, target = (list(rng.choice(list(of), rng.integers(1, 5))) for of in words or (SOURCES, TARGETS))
        found.append(((source, target), rng.choice([0.0, 0.03, 1, 2, 3], (len(target), len(source)))))
    return found


TEXTS = given(seed=st.integers(0, 2**32 - 1), sharpening=st.sampled_from(SHARPENINGS))
#: A word map whose side has no word.
NOTHING = (([], ["x"]), np.empty((1, 0)))


@TEXTS
def test_counted_pairs_as_by_hand(seed, sharpening):
    """Also with the table of another text, whose words are others in part."""
    pairs = random_text(seed)
    others = random_text(seed + 1, seed % 3, ("hausen", "ab", "c"), ("houses", "x", "w"))
    given, _ = count_lexical_table(others, sharpening)
    _, expected = slow_count(pairs, sharpening, slow_file(others, sharpening))
    table, reweight = count_lexical_table([*pairs, NOTHING], sharpening, given)
    assert table.pairs == len(pairs) + len(others)
    *found, nothing = map(reweight, [*pairs, NOTHING])
    assert nothing.cells.shape == (1, 0)
    for mine, wanted in zip(found, expected):
        np.testing.assert_allclose(mine.cells, wanted, rtol=1e-4)  # the shares of both may round to other units


@TEXTS
def test_other_pairs_as_by_hand(seed, sharpening):
    """By the sums of the table, also pairs that were counted, if they come as others; in both directions."""
    pairs = random_text(seed)
    table, _ = count_lexical_table(pairs, sharpening)
    slow = slow_file(pairs, sharpening)
    assert (np.diff(table.cells) > 0).all()
    others = [*pairs, *random_text(seed + 1), ((["ab", "new"], ["x", "newer"]), np.ones((2, 2)))]
    for words, word_map in others:
        expected = slow_reweight(slow, words, word_map, sharpening)
        found = table.reweight(words, word_map, sharpening)
        np.testing.assert_allclose(found.cells, expected, rtol=1e-3)
        parts = (found.words + found.beginnings) ** sharpening.of_table * word_map**sharpening.of_map
        np.testing.assert_allclose(parts, found.cells, rtol=1e-12)
        back = table.exchanged.reweight(words[::-1], word_map.T, sharpening)
        for one, other in zip(found, back):
            np.testing.assert_array_equal(one, other.T)


@TEXTS
def test_no_table_is_an_empty_table(seed, sharpening):
    for words, word_map in random_text(seed):
        expected = slow_reweight(SlowTable(), words, word_map, sharpening)
        np.testing.assert_allclose(EMPTY.reweight(words, word_map, sharpening).cells, expected, rtol=1e-4)
    assert EMPTY.reweight(*NOTHING, sharpening).cells.shape == (1, 0)


@pytest.mark.parametrize("known", ["häuser", "haus"])
def test_words_of_four_letters_are_their_own_beginnings(known):
    """So they gain nothing on each other: the letters of a Chinese word say no more than the word."""
    table, _ = count_lexical_table([(([known, "b"], ["x", "y"]), np.eye(2) + 0.1)] * 9, FORMED)
    words, beginnings = table.reweight(([known[:4], "b"], ["x", "y"]), np.ones((2, 2)), FORMED)[1:]
    if known == "haus":
        np.testing.assert_allclose(beginnings.diagonal() / words.diagonal(), 0.5, rtol=0.1)
    else:  # an unknown word has the evidence of those that begin like it
        assert beginnings[0, 0] > 5 * words[0, 0]


def test_the_order_of_the_pairs_changes_no_digit():
    """Nor how many are summed together."""
    pairs = random_text(3, pairs=1200)
    words = [*SOURCES], [*TARGETS]
    table, reweight = count_lexical_table(pairs, FORMED)
    again, reweight_again = count_lexical_table(pairs[::-1], FORMED)
    np.testing.assert_array_equal(table.known(words).sums, again.known(words).sums)
    for one, other in zip(map(reweight, pairs), map(reweight_again, pairs)):
        np.testing.assert_array_equal(one.cells, other.cells)


def test_small_sums_are_dropped():
    for share, kept in ((1e-13, 1), (0.2, 2)):
        table, _ = count_lexical_table([((["a", "b"], ["x"]), np.array([[share, 1 - share]]))], FORMED)
        assert len(table.cells) == kept


GERMAN = [f"wort{number}" for number in range(50)]
ENGLISH = [f"word{number}" for number in range(50)]
#: 100 running words on each side.
TEXT = [(GERMAN, ENGLISH), (GERMAN, ENGLISH)]


@pytest.fixture(scope="module")
def lexical_table():
    return count_lexical_table([(words, np.ones((50, 50))) for words in TEXT], FORMED)[0]


def changed(words, count, to="{}?"):
    return [to.format(word) if k < count else word for k, word in enumerate(words)]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((changed(GERMAN, 26), ENGLISH), "of the text's 100 source words, 52 (52%) are not"),
        ((GERMAN, changed(ENGLISH, 40)), "of the text's 100 target words, 80 (80%) are not"),
        (
            (GERMAN, [word.capitalize() for word in ENGLISH[:3]] + ENGLISH[3:]),
            "the lexical table: of … 100 target words, 6 (6%) are in the lexical table in another case only",
        ),
    ],
    ids=["source", "target", "case"],
)
def test_other_text(lexical_table, pair, message):
    with pytest.raises(InputError, match=facts(message)):
        check_match(lexical_table, [pair, pair])


def test_text_like_its_own(lexical_table):
    check_match(lexical_table, [])
    half = (changed(GERMAN, 25), changed(ENGLISH, 25))
    check_match(lexical_table, [half, half])
    # 5 of 100 words are known in another case only
    check_match(lexical_table, [(GERMAN, [*map(str.upper, ENGLISH[:5]), *ENGLISH[5:]]), (GERMAN, ENGLISH)])
    check_match(lexical_table, [(ENGLISH, GERMAN), (ENGLISH[:49], GERMAN[:49])])  # too few words to judge


METADATA = b"alignment_eval.lexical_table"


def counted(pairs=40):
    rng = np.random.default_rng(5)
    text = []
    for _ in range(pairs):
        source, target = (list(rng.choice(list(letters), rng.integers(1, 6))) for letters in ("abcdeßé", "uvwxyz漢"))
        text.append(((source, target), rng.random((len(target), len(source)))))
    return count_lexical_table(text, FORMED)[0]


@pytest.mark.parametrize("pairs", [6, 40])
def test_what_is_written_is_read(tmp_path, pairs):
    """Of few pairs many words never occur together."""
    lexical_table = counted(pairs)
    write_lexical_table(tmp_path / "lexical_table", lexical_table, "kind:attn_n|table:text")
    found = read_lexical_table(tmp_path / "lexical_table")
    assert found.name == str(tmp_path / "lexical_table")
    assert found.pairs == lexical_table.pairs == pairs
    for words in (("abcdeßé", "uvwxyz漢"), (["unknown", "a"], ["x", "a", "u"])):
        np.testing.assert_array_equal(found.known(words).scale, lexical_table.known(words).scale)
        np.testing.assert_array_equal(found.known(words).sums, lexical_table.known(words).sums)


def test_a_lexical_table_of_nothing_is_not_written(tmp_path):
    with pytest.raises(InputError, match=facts("lexical_table: … without sentence pairs")):
        write_lexical_table(tmp_path / "lexical_table", EMPTY, "")


GOOD = {"source": ["a", "a", ""], "target": ["x", "", "x"], "weight": [0.5, 3.0, 2.0]}
ABOUT = {"version": 1, "pairs": 7, "signature": ""}


def written(path, about=ABOUT, **columns):
    table = pa.table({**GOOD, **columns}, schema=SCHEMA.with_metadata({METADATA: json.dumps(about)}))
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"weight": [-0.1, 3, 2]}, "column weight has the value -0.1: expected a finite number, 0 or more"),
        ({"source": ["a", "a", "a"], "target": ["x", "", "x"]}, "duplicate rows"),
        ({"source": [], "target": [], "weight": []}, "no rows"),
    ],
    ids=str,
)
def test_files_of_another_form(tmp_path, columns, message):
    path = written(tmp_path / "lexical_table", **columns)
    with pytest.raises(InputError, match=message) as error:
        read_lexical_table(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "norm-align calibrate" in str(error.value)
    assert str(error.value).isprintable()


def test_records_are_moved_with_their_lexical_table(tmp_path, monkeypatch, call, make_records, make_sentence):
    """The table is beside the records, wherever the run read it; another table in its place is refused."""
    monkeypatch.chdir(tmp_path)
    write_lexical_table("t.parquet", counted(), "")
    table = TableFile("/far/away/t.parquet", file_hash("t.parquet"))
    maps = ExtractionOptions("attn_n", "0.0:awi,1", "product", "awo")
    profile = replace(fit_profile((), (0, 1), "m"), maps=maps, chosen_by="agreement", table=table)
    made = [make_sentence(0, source="a b c . </s>", target="x y z . </s>")]
    make_records(tmp_path / "run", made, signature={"model": "m"}, profile=profile.to_json())
    status, _, messages = call("extract", "run")
    assert (status, says(messages, "run/t.parquet: cannot read the file")) == (1, True)
    assert call("extract", "run", "--table", "none")[0] == 0
    Path("t.parquet").rename("run/t.parquet")
    status, out, messages = call("extract", "run")
    assert (status, f"|table:{table.hash}|" in messages) == (0, True)
    assert call("extract", "run", "--table", "run/t.parquet")[1] == out
    write_lexical_table("run/t.parquet", counted(20), "")
    assert says(call("extract", "run")[2], f"run/t.parquet with hash {table.hash}")
