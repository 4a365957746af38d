from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_eval.errors import UsageError
from alignment_eval.extraction.bidirectional import join, words_of
from alignment_eval.extraction.extract import word_links, word_map_links
from alignment_eval.extraction.lexicon import Lexicon, with_lexicon, without_maps
from alignment_eval.extraction.method import check_lexicon
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.extraction.rules import rule_of
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import two_way_shares

Factory = Callable[..., SentenceMaps]
#: ε of docs/commands/extract.md, not the module's constant: a test that took it from there would agree with any value.
PRIOR = 0.1
TWO_WAY = ExtractionOptions("attn_n", 1, setting="awo", rule="two-way=0.3")


def slow_two_way(scores: np.ndarray) -> np.ndarray:
    """Cell by cell; a row or column of zeros has shares of 0."""
    rows = [[cell / sum(row) if sum(row) else 0.0 for cell in row] for row in scores.tolist()]
    found = np.zeros(scores.shape)
    for t, s in np.ndindex(*scores.shape):
        column = sum(row[s] for row in rows)
        found[t, s] = math.sqrt(rows[t][s] * rows[t][s] / column) if column else 0.0
    return found


@given(shape=st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 4)), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_two_way_shares_cell_by_cell(shape: tuple[int, int, int], seed: int) -> None:
    target, source, levels = shape
    scores = np.random.default_rng(seed).integers(0, levels + 1, (2, target, source)).astype(np.float64)
    found = two_way_shares(scores)
    for index in range(2):
        np.testing.assert_allclose(found[index], slow_two_way(scores[index]), rtol=1e-12)
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()
    # the scale of a row does not count
    np.testing.assert_allclose(two_way_shares(scores * np.arange(1, target + 1)[:, None]), found, rtol=1e-12)


def slow_lexicon(maps: dict[int, tuple[SentenceMaps, Any, np.ndarray]], passes: int) -> dict[int, np.ndarray]:
    """The weighed maps, by sums over the whole text for every single cell."""
    shares = {i: slow_two_way(scores[:, :-1]) for i, (_, _, scores) in maps.items()}
    weighed: dict[int, np.ndarray] = {}
    for _ in range(passes):
        for i, (_, (source, target), scores) in maps.items():
            weighed[i] = np.zeros(scores[:, :-1].shape)
            for t, s in np.ndindex(*weighed[i].shape):
                total, source_count, target_count = PRIOR, 1, 1
                for k, (_, (others, words), _) in maps.items():
                    source_count += others.count(source[s])
                    target_count += words.count(target[t])
                    for u, v in np.ndindex(*shares[k].shape):
                        if words[u] == target[t] and others[v] == source[s] and (k, u, v) != (i, t, s):
                            total += shares[k][u, v] ** 2
                weighed[i][t, s] = scores[t, s] * total / math.sqrt(source_count * target_count)
        shares = {i: slow_two_way(scores) for i, scores in weighed.items()}
    return weighed


def text(make_sentence: Factory) -> dict[int, tuple[SentenceMaps, Any, np.ndarray]]:
    pairs = [("a b c </s>", "x y z </s>"), ("b a@@ a </s>", "y x </s>"), ("</s>", "x </s>"), ("a a </s>", "x x </s>")]
    sentences = [make_sentence(i, source=source, target=target) for i, (source, target) in enumerate(pairs)]
    return {s.id: (s, words_of(s), word_links(s, TWO_WAY).shares) for s in sentences}


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_maps_are_weighed_as_by_hand(make_sentence: Factory, passes: int) -> None:
    maps = text(make_sentence)
    expected = slow_lexicon(maps, passes)
    for id_, found in with_lexicon(maps, TWO_WAY, passes):
        wanted = word_map_links(np.pad(expected[id_], ((0, 0), (0, 1))), maps[id_][0], TWO_WAY)
        np.testing.assert_allclose(found.shares, wanted.shares, rtol=1e-9)
        np.testing.assert_array_equal(found.linked, wanted.linked)


def test_a_pair_of_words_that_meets_again_wins() -> None:
    """Two maps that are unsure, and a third that says that a is x."""
    lexicon = Lexicon([(["a"], ["x"]), (["a", "b"], ["x"])])
    sure, first, second = lexicon.association(np.array([1.0, 0.5, 0.5]))
    assert first == pytest.approx((1 + PRIOR) / 3)  # the sure pair; a and x stand twice each
    assert second == pytest.approx(PRIOR / math.sqrt(6))
    # what a cell says of itself does not count
    assert sure == pytest.approx((0.25 + PRIOR) / 3)


def test_a_text_of_nothing_has_a_lexicon() -> None:
    assert not list(with_lexicon({}, TWO_WAY, 2))
    assert not Lexicon([([], ["x"])]).association(np.empty(0)).size


def test_only_one_sentence_keeps_its_order(make_sentence: Factory) -> None:
    """Words that stand nowhere else are weighed alike."""
    s = make_sentence(3, source="a b c d </s>", target="x y z </s>")
    maps = {3: (without_maps(s), words_of(s), word_links(s, TWO_WAY).shares)}
    ((_, found),) = with_lexicon(maps, TWO_WAY, 1)
    np.testing.assert_array_equal(found.linked, word_links(s, TWO_WAY).linked)


@pytest.mark.parametrize(
    ("rule", "null", "how", "message"),
    [
        ("shift-att", "mask", None, "a lexicon with rule 'shift-att' and null 'mask': it weighs maps between words"),
        ("kobayashi2020", "allow", None, "expected a rule of words and null 'mask', such as rule two-way=0.3"),
        ("two-way=0.3", "mask", "mutual", "a lexicon with join 'mutual': links are drawn before; expected join"),
    ],
)
def test_what_a_lexicon_cannot_weigh(rule: str, null: str, how: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_lexicon(ExtractionOptions("attn_n", 1, rule=rule, null=null), how)
    check_lexicon(ExtractionOptions("attn_n", 1, rule="kobayashi2020", null="mask"), "average")
    assert rule_of("two-way=0.3").nulls == ("mask",)


def test_a_lexicon_is_made_at_least_once(make_sentence: Factory) -> None:
    with pytest.raises(UsageError, match="0 passes over a lexicon: expected 1 or more"):
        list(with_lexicon(text(make_sentence), TWO_WAY, 0))


def test_command(
    tmp_path: Path, make_sentence: Factory, make_records: Callable[..., Path], align_eval: Callable[..., Any]
) -> None:
    maps = text(make_sentence)
    skipped = make_sentence(4, status="too long")
    directory = make_records(tmp_path / "run", [*(s for s, _, _ in maps.values()), skipped])
    given = ("--kind", "attn_n", "--layer", 1, "--setting", "awo", "--rule", "two-way=0.3")
    done = align_eval("extract", directory, *given, "--lexicon", 2)
    links = {i: sorted(found.links) for i, found in with_lexicon(maps, TWO_WAY, 2)}
    assert done.stdout.split("\n") == [*(" ".join(f"{i}-{j}" for i, j in links[k]) for k in range(4)), "", ""]
    assert "|lexicon:2|" in done.stderr
    assert "warning: 1 of 5 sentences have no maps" in done.stderr
    bad = align_eval("extract", directory, *given, "--lexicon", -1)
    assert bad.returncode == 2
    assert "--lexicon -1: expected a number of passes, 1 or more, or 0 for no lexicon" in bad.stderr
    assert (
        align_eval("extract", directory, *given, "--lexicon", 0).stdout
        == align_eval("extract", directory, *given).stdout
    )
    bad = align_eval("extract", directory, *given[:-1], "kobayashi2020", "--lexicon", 1)
    assert bad.returncode == 2
    assert "a lexicon with rule 'kobayashi2020' and null 'allow'" in bad.stderr


def test_both_directions_and_a_lexicon(
    tmp_path: Path, make_sentence: Factory, make_records: Callable[..., Path], align_eval: Callable[..., Any]
) -> None:
    pairs = [("a b c </s>", "x y z </s>"), ("b a </s>", "y x </s>")]
    forward = [make_sentence(i, source=source, target=target) for i, (source, target) in enumerate(pairs)]
    back = [replace(make_sentence(i + 7, source=t, target=s), id=i) for i, (s, t) in enumerate(pairs)]
    product = {
        s.id: (s, words_of(s), join("product", s, TWO_WAY, word_links(s, TWO_WAY), word_links(r, TWO_WAY)).shares)
        for s, r in zip(forward, back)
    }
    expected = [found.links for _, found in with_lexicon(product, TWO_WAY, 1)]
    words = ["extract", make_records(tmp_path / "run", forward), "--kind", "attn_n", "--layer", 1, "--setting", "awo"]
    words += ["--rule", "two-way=0.3", "--lexicon", 1, "--join", "product"]
    done = align_eval(*words, "--reverse", make_records(tmp_path / "back", back))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [" ".join(f"{i}-{j}" for i, j in sorted(links)) for links in expected]
