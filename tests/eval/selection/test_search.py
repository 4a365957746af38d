from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.options import ExtractionOptions, MapName, parse_maps
from alignment_eval.links.table import GoldSentence, transpose
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.scoring.aer import score
from alignment_eval.scoring.sweep import configurations, sweep
from alignment_eval.selection.search import SelectionOptions, select, select_by_agreement
from tests.facts import facts

Factory = Callable[..., SentenceMaps]

SENTENCES = (
    ("a@@ b c . </s>", "x y@@ z . </s>"),
    ("a b c d e </s>", "x y z v w . </s>"),
    ("<de> a@@ b@@ c d e@@ f </s>", "x@@ y z . </s>"),
    ("</s>", "</s>"),
    ("a b@@ c </s>", "x y </s>"),
)
ALL = [MapName(layer, head) for layer in (1, 4) for head in (0, 1, 2, None)]
MIXED = [*ALL, *(replace(name, setting="awo") for name in ALL)]


def corpus(make_sentence: Factory, seed: int = 0) -> list[SentenceMaps]:
    """Sentences out of order, one skipped; layers 1 and 4."""
    made = [make_sentence(k + 100 * seed, source=a, target=b) for k, (a, b) in enumerate(SENTENCES)]
    made = [replace(s, id=k, layers=(1, 4)) for k, s in enumerate(made)]
    return [*reversed(made), replace(make_sentence(5, status="too long"), layers=(1, 4))]


def gold_of(sentences: list[SentenceMaps], seed: int = 0) -> list[GoldSentence]:
    rng = np.random.default_rng(seed)
    gold = []
    for s in sorted(sentences, key=lambda s: s.id):
        pairs = list(itertools.product(range(s.source.word_count), range(s.target.word_count))) if s.ok else [(0, 0)]
        kinds = rng.integers(0, 4, len(pairs))
        sets = [frozenset(p for p, k in zip(pairs, kinds) if k == kind) for kind in (0, 1)]
        gold.append(GoldSentence(*sets))
    return gold


def slow_aer(sentences: list[SentenceMaps], gold: list[GoldSentence], options: ExtractionOptions) -> float:
    links = [extract(s, options) if s.ok else frozenset() for s in sorted(sentences, key=lambda s: s.id)]
    return score(links, gold).aer


def slow_greedy(
    sentences: list[SentenceMaps], gold: list[GoldSentence], options: SelectionOptions
) -> tuple[list[tuple[str, float]], int]:
    """Every candidate extracted and scored for itself."""
    best: list[tuple[str, float]] = []
    count = 0
    names = MIXED if options.mix_settings else ALL
    for configuration in options.configurations:
        alone = [(slow_aer(sentences, gold, configuration.with_maps([m])), k) for k, m in enumerate(names)]
        count += len(alone)
        for how in options.combinations:
            aer, k = min(alone)
            maps = [names[k]]
            steps = [(f"{configuration.with_maps(maps).fields()}", aer)]
            while len(maps) < min(options.max_maps, len(names)):
                tried = []
                for m in (m for m in names if m not in maps):
                    option = replace(configuration, combine=how).with_maps([*maps, m])
                    tried.append((slow_aer(sentences, gold, option), len(tried), m, option))
                count += len(tried)
                aer, _, m, option = min(tried)
                if aer >= steps[-1][1]:
                    break
                maps.append(m)
                steps.append((f"{option.fields()}", aer))
            if not best or (steps[-1][1], len(steps)) < (best[-1][1], len(best)):
                best = steps
    return best, count


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("rules", [["kobayashi2020", "shift-att"], ["threshold=0.2", "top-k=2"]])
@pytest.mark.parametrize(("final", "mix"), [(False, False), (True, False), (False, True)])
def test_greedy_selection_is_that_of_the_slow_loop(
    make_sentence: Factory, seed: int, rules: list[str], final: bool, mix: bool
) -> None:
    sentences = corpus(make_sentence, seed)
    gold = gold_of(sentences, seed)
    grid = configurations(["attn_w", "attn_n"][seed % 2 :], ["awi"], rules, final)
    options = SelectionOptions(grid, max_maps=4, mix_settings=mix)
    found = select(sentences, gold, options)
    steps, count = slow_greedy(sentences, gold, options)
    assert [(f"{step.extraction.fields()}", step.figure) for step in found.steps] == steps
    assert found.candidates == count
    assert found.skipped == {5: "too long"}
    assert len(found.choice.extraction.maps) == len(found.steps)
    # the promise of a choice: extract gives exactly the links that were scored
    assert slow_aer(sentences, gold, found.choice.extraction) == found.choice.figure


def test_mixed_settings_are_found_where_they_are_best(make_sentence: Factory) -> None:
    """The choice names them, and its name is read again."""
    names = set()
    for seed in range(6):
        sentences = corpus(make_sentence, seed)
        grid = configurations(["attn_n"], ["awo"], ["kobayashi2020"])
        gold = gold_of(sentences, seed)
        found = select(sentences, gold, SelectionOptions(grid, mix_settings=True))
        plain = select(sentences, gold, SelectionOptions(grid))
        assert found.ranking[0].figure <= plain.ranking[0].figure
        option = found.choice.extraction
        assert option.with_maps(parse_maps(option.map_names)) == option
        names |= {name.setting for name in option.maps}
    assert names == {None, "awi"}
    with pytest.raises(UsageError, match="--mix-settings in a choice by agreement: expected --dev-gold"):
        select_by_agreement(sentences, sentences, SelectionOptions(grid, mix_settings=True))


def test_the_ranking_is_a_sorted_sweep(make_sentence: Factory) -> None:
    sentences = corpus(make_sentence)
    gold = gold_of(sentences)
    grid = configurations(["attn_w", "attn_n"], ["awo", "awi"], ["kobayashi2020", "shift-att", "threshold=0.3"])
    table = sweep(sentences, gold, grid).table
    for levels in (["head"], ["layer"], ["head", "layer"]):
        found = select(sentences, gold, SelectionOptions(grid, levels, max_maps=1))
        rows = table[table["level"].isin(levels)]
        assert [c.figure for c in found.ranking] == sorted(rows["aer"])
        assert found.candidates == len(rows) == len(set(found.ranking))
        assert found.steps == found.ranking[:1]
        for c in found.ranking[:5]:
            assert slow_aer(sentences, gold, c.extraction) == c.figure


def test_every_step_lowers_aer(make_sentence: Factory) -> None:
    for seed in range(5):
        sentences = corpus(make_sentence, seed)
        found = select(
            sentences, gold_of(sentences, seed), SelectionOptions(configurations(["attn_n"], ["awi"], ["shift-att"]))
        )
        figures = [step.figure for step in found.steps]
        assert figures == sorted(set(figures), reverse=True)
        names = [step.extraction.maps for step in found.steps]
        assert all(longer[:-1] == shorter for shorter, longer in zip(names, names[1:]))


def reversed_corpus(make_sentence: Factory) -> list[SentenceMaps]:
    """The other direction, in another order, of another model with other layers; another sentence is skipped."""
    made = [make_sentence(k + 50, source=b, target=a, heads=2) for k, (a, b) in enumerate(SENTENCES)]
    made = [replace(s, id=k, layers=(0, 2)) for k, s in enumerate(made)]
    made[4] = replace(make_sentence(4, status="skipped"), layers=(0, 2))
    return [replace(make_sentence(5), layers=(0, 2)), *made]


def test_agreement_is_that_of_the_slow_loop(make_sentence: Factory) -> None:
    sentences, back = corpus(make_sentence), reversed_corpus(make_sentence)
    grid = configurations(["attn_w", "attn_n"], ["awo", "awi"], ["kobayashi2020", "shift-att"])
    found = select_by_agreement(sentences, back, SelectionOptions(grid))
    reverse = {s.id: s for s in back}
    expected = []
    for option in grid:
        for a, b in itertools.product(ALL, [MapName(layer, head) for layer in (0, 2) for head in (0, 1, None)]):
            both = size = 0
            for s in sentences:
                if s.ok and reverse[s.id].ok:
                    one = extract(s, option.with_maps([a]))
                    other = transpose(extract(reverse[s.id], option.with_maps([b])))
                    both, size = both + len(one & other), size + len(one) + len(other)
            expected.append((-2 * both / size if size else 0.0, option.with_maps([a]), str(b)))
    expected.sort(key=lambda entry: entry[0])
    assert [(-c.figure, c.extraction, c.reverse_heads) for c in found.ranking] == expected
    assert found.candidates == len(expected)
    assert found.choice == found.ranking[0]
    assert found.skipped == {4: "skipped", 5: "too long"}
    layers = select_by_agreement(sentences, back, SelectionOptions(grid, ["layer"]))
    assert {c.reverse_heads for c in layers.ranking} == {"0", "2"}
    assert {c.extraction.map_names for c in layers.ranking} == {"1", "4"}


def test_directions_that_copy_each_other_agree(make_sentence: Factory) -> None:
    """Maps transposed are the maps of the other direction: with mutual choices Dice is 1."""
    s = make_sentence(0, source="a b c", target="x y z", layers=1, heads=1)
    weights = np.array([[[[0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0, 0.1, 0.9]]]], dtype=np.float32)
    s = replace(s, arrays={"head_attn_w": weights})
    back = replace(s, source=s.target, target=s.source, arrays={"head_attn_w": weights.swapaxes(-1, -2)})
    grid = configurations(["attn_w"], ["awo"], ["kobayashi2020"])
    assert select_by_agreement([s], [back], SelectionOptions(grid)).choice.figure == 1


def test_refusals(make_sentence: Factory) -> None:
    sentences = corpus(make_sentence)
    grid = configurations(["attn_w"], ["awi"], ["kobayashi2020"])
    for fields, text in (
        ({"levels": ["block"]}, "unknown level 'block' … one of head, layer"),
        ({"combinations": ["sum"]}, "unknown combination 'sum' … one of mean, product"),
        ({"levels": []}, "nothing to choose among: expected kinds, settings, rules, levels and combinations"),
        ({"max_maps": 0}, "at most 0 maps: expected 1 or more"),
    ):
        with pytest.raises(UsageError, match=facts(text)):
            SelectionOptions(grid, **fields)
    options = SelectionOptions(grid)
    with pytest.raises(InputError, match=facts("records have 6 sentences, the gold has 7")):
        select(sentences, [*gold_of(sentences), GoldSentence(frozenset())], options)
    with pytest.raises(InputError, match=r"sentence 5 has no counterpart among the 5 of the other direction"):
        select_by_agreement(sentences, reversed_corpus(make_sentence)[1:], options)
    with pytest.raises(InputError, match=r"5 sentences, but 6 in the other direction"):
        select_by_agreement(sentences[:-1], reversed_corpus(make_sentence), options)
    wrong = [replace(make_sentence(s.id), layers=(1, 4)) if s.id == 4 else s for s in sentences]
    with pytest.raises(
        InputError, match=r"sentence 4 \(line 5\) has 2 source and 2 target words, but 3 and 3 in the other direction"
    ):
        select_by_agreement(sentences, wrong, options)
    with pytest.raises(InputError, match=r"no sentence has maps in both directions"):
        select_by_agreement(sentences[-1:], sentences[-1:], options)
    layers_only = [replace(s, arrays={"layer_alti": s.arrays["layer_attn_n"]} if s.ok else {}) for s in sentences]
    alti = configurations(["alti"], ["awi"], ["kobayashi2020"])
    with pytest.raises(InputError, match=r"kind 'alti' has maps of whole layers only: expected level layer among"):
        select(layers_only, gold_of(sentences), SelectionOptions(alti, ["head"]))
    assert len(select(layers_only, gold_of(sentences), SelectionOptions(alti, max_maps=1)).ranking) == 4


def test_names_round_trip() -> None:
    option = ExtractionOptions("attn_w", heads=parse_maps("1.2,0"), combine="product")
    assert option.with_maps(parse_maps(option.map_names)) == option
