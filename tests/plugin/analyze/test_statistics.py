"""Streaming statistics against the same numbers computed with everything in memory."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from fairseq_norm_plugin.analyze import statistics as analysis
from fairseq_norm_plugin.analyze.statistics import TOKEN_CLASSES, BlockStatistics, TokenTypes, spearman
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.maps.kinds import head_map, head_mixing_ratio, layer_map, mixing_ratio
from fairseq_norm_plugin.maps.norms import transformed_norms

KINDS = ("attn_w", "attn_n", "attnres_n", "attnresln_n")
BATCHES = [[(7, 5), (3, 6), (4, 4)], [(1, 1), (8, 2)]]


@pytest.fixture
def token_types(tgt_dict):
    for index, mark in ((10, "."), (11, ",@@")):
        tgt_dict.symbols[index] = mark
    tgt_dict.count = [(i * 7) % 40 + 1 for i in range(len(tgt_dict))]
    return TokenTypes.of(tgt_dict)


def run(model, samples, type_, layer, statistics):
    """Feed ``statistics``; returns every real position's tokens and blocks, sentence by sentence."""
    seen = []
    for sample in samples:
        inputs = sample["net_input"]
        rows = inputs["src_tokens"] if type_ == ENCODER_SELF else inputs["prev_output_tokens"]
        columns = inputs["prev_output_tokens"] if type_ == DECODER_SELF else inputs["src_tokens"]
        capture = MapCapture(type_, [layer], lambda block: block)
        with torch.no_grad(), capturing(norm_attentions(model), capture):
            model(**inputs)
        (block,) = capture.take()
        statistics.add(block, rows, columns)
        seen.append((block, rows, columns))
    return seen


@pytest.mark.parametrize("type_", BLOCK_TYPES)
def test_streamed_means_equal_direct_ones(build, make_sample, token_types, type_):
    model = build().double()
    statistics = BlockStatistics(type_, KINDS, token_types, token_types)
    samples = [make_sample(lengths, seed=i) for i, lengths in enumerate(BATCHES)]
    seen = run(model, samples, type_, 1, statistics)
    ratios, heads, mass, norms, alone = {}, {}, {}, {}, 0
    for block, rows, columns in seen:
        for b in range(len(rows)):
            real = [t for t in range(rows.size(1)) if rows[b, t] != 1]
            for place, t in enumerate(real):
                if (type_ == DECODER_SELF and place == 0) or (type_ == ENCODER_SELF and len(real) == 1):
                    alone += 1
                    continue
                token = int(rows[b, t])
                for kind in KINDS:
                    ratios.setdefault((kind, token), []).append(float(mixing_ratio(block, kind)[b, t]))
                if type_ != DECODER_CROSS:
                    heads.setdefault(token, []).append(head_mixing_ratio(block, "attn_n")[b, :, t])
            for s in range(columns.size(1)):
                if columns[b, s] == 1:
                    continue
                token = int(columns[b, s])
                norms.setdefault(token, []).append(float(transformed_norms(block.factor)[b, :, s].mean()))
                for kind in ("attn_w", "attn_n"):
                    maps = torch.cat([head_map(block, kind)[b], layer_map(block, kind)[b][None]])
                    key = (kind, TOKEN_CLASSES[token_types.classes[token]])
                    mass[key] = mass.get(key, 0) + maps[:, real, s].sum(-1)

    def mean(kind, name):
        class_of = lambda token: TOKEN_CLASSES[token_types.classes[token]]  # noqa: E731
        values = [v for (k, token), vs in ratios.items() for v in vs if k == kind and name in ("all", class_of(token))]
        return (sum(values) / len(values), len(values)) if values else None

    table = statistics.mixing()
    assert statistics.left_out == alone
    for kind in KINDS:
        for name in ("all", *TOKEN_CLASSES):
            found = [r for r in table if (r["kind"], r["head"], r["token_class"]) == (kind, None, name)]
            expected = mean(kind, name)
            assert [(pytest.approx(r["mean"], rel=1e-9), r["positions"]) for r in found] == (
                [expected] if expected else []
            )
    if heads:
        expected_heads = torch.stack([v for values in heads.values() for v in values]).mean(0)
        found = [
            r["mean"] for r in table if r["kind"] == "attn_n" and r["head"] is not None and r["token_class"] == "all"
        ]
        assert found == pytest.approx(expected_heads.tolist(), rel=1e-9)
    for row in statistics.attention():
        index = 4 if row["head"] is None else row["head"]
        for kind, name in (("attn_w", "weight_share"), ("attn_n", "norm_share")):
            total = sum(float(value[index]) for (k, _), value in mass.items() if k == kind)
            assert row[name] == pytest.approx(float(mass[kind, row["token_class"]][index]) / total, rel=1e-9)
        of_class = [
            len(v) for token, v in norms.items() if TOKEN_CLASSES[token_types.classes[token]] == row["token_class"]
        ]
        assert row["token_share"] == pytest.approx(sum(of_class) / sum(map(len, norms.values())))
    types = [token for token in norms if token > 3]
    expected = stats.spearmanr([np.mean(norms[t]) for t in types], [token_types.frequency[t] for t in types]).statistic
    correlation = {"spearman": pytest.approx(expected), "types": len(types), "frequency": "training text"}
    assert statistics.norm_by_frequency() == correlation
    uncounted = dataclasses.replace(token_types, frequency=np.ones_like(token_types.frequency))
    statistics.columns = uncounted
    expected = stats.spearmanr([np.mean(norms[t]) for t in types], [len(norms[t]) for t in types]).statistic
    correlation = {"spearman": pytest.approx(expected), "types": len(types), "frequency": "this text"}
    assert statistics.norm_by_frequency() == correlation
    statistics.columns = token_types
    mean_norms = statistics.token_norms().set_index("token")
    assert len(mean_norms) == len(norms)
    for token, values in norms.items():
        assert mean_norms.loc[token_types.tokens[token], "norm"] == pytest.approx(np.mean(values))


def test_pairs_are_all_real_ones_or_a_sample_of_them(build, make_sample, token_types, monkeypatch):
    model = build().double()
    samples = [make_sample(lengths, seed=i) for i, lengths in enumerate(BATCHES)]
    whole = BlockStatistics(DECODER_SELF, KINDS, token_types, token_types)
    seen = run(model, samples, DECODER_SELF, 0, whole)
    pairs = [
        (block.alpha[b, :, t, s], transformed_norms(block.factor)[b, :, s])
        for block, rows, columns in seen
        for b in range(len(rows))
        for t in range(rows.size(1))
        for s in range(t + 1)
        if rows[b, t] != 1 and columns[b, s] != 1
    ]
    for row in whole.weight_norm_correlation():
        alpha, norm = ([float(pair[i][row["head"]]) for pair in pairs] for i in (0, 1))
        assert row["pairs"] == len(pairs)
        assert row["spearman"] == pytest.approx(stats.spearmanr(alpha, norm).statistic)
    monkeypatch.setattr(analysis, "SAMPLED_PAIRS", 20)
    sampled = BlockStatistics(DECODER_SELF, KINDS, token_types, token_types, seed=1)
    run(model, samples, DECODER_SELF, 0, sampled)
    known = {tuple(torch.cat(pair).tolist()) for pair in pairs}
    assert len(sampled._sample.pairs) == 20
    assert {tuple(row.tolist()) for row in sampled._sample.pairs} <= known


def test_token_classes(token_types):
    named = {token: TOKEN_CLASSES[c] for token, c in zip(token_types.tokens, token_types.classes.tolist())}
    assert (named["<s>"], named["</s>"], named["."], named[",@@"]) == ("<s>", "</s>", "punctuation", "punctuation")
    assert {named[token] for token in token_types.tokens[12:]} == {"other"}


def test_special_tokens_have_no_frequency_and_are_in_no_correlation(build, make_sample, token_types):
    """fairseq's dictionary counts each of them once, whatever the text."""
    sample = make_sample([(7, 5), (3, 6)])
    sample["net_input"]["src_tokens"][0, 0] = 3  # <unk>
    statistics = BlockStatistics(DECODER_CROSS, KINDS[2:], token_types, token_types)
    run(build().double(), [sample], DECODER_CROSS, 1, statistics)
    table = statistics.token_norms().set_index("token")
    assert {"</s>", "<unk>"} <= set(table.index)
    for token, row in table.iterrows():
        assert pd.isna(row["frequency"]) == (token in ("</s>", "<unk>")), token
        if token not in ("</s>", "<unk>"):
            assert row["frequency"] == token_types.frequency[token_types.tokens.index(token)]
    assert table.loc["</s>", "occurrences"] == 2
    ordinary = table[table["frequency"].notna()]
    expected = stats.spearmanr(ordinary["norm"], ordinary["frequency"].astype(int)).statistic
    correlation = {"spearman": pytest.approx(expected), "types": len(ordinary), "frequency": "training text"}
    assert statistics.norm_by_frequency() == correlation


def test_spearman_has_mean_ranks_for_ties_and_nothing_to_say_of_constants():
    x, y = [1, 2, 2, 4, 9], [3, 1, 1, 0, 7]
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))
    assert math.isnan(spearman([1, 2, 3], [0, 0, 0]))
    assert math.isnan(spearman(0.5 + 1e-7 * np.arange(9), range(9)))
    assert spearman(0.5 + 1e-4 * np.arange(9), range(9)) == pytest.approx(1)
    assert math.isnan(spearman([1], [1]))
