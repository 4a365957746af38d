"""Streaming statistics against the same numbers computed with everything in memory; their tables and figures."""

import contextlib
import copy
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from alignment_eval.errors import InputError
from alignment_eval.figures.style import kind_name
from alignment_eval.scoring.classes import TOKEN_CLASSES
from fairseq_norm_plugin.analyze import statistics as analysis
from fairseq_norm_plugin.analyze.cli import draw_figures, main
from fairseq_norm_plugin.analyze.statistics import Analysis, BlockStatistics, TokenTypes, spearman
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.formulas.block import transformed_norms
from fairseq_norm_plugin.formulas.kinds import head_map, head_mixing_ratio, layer_map, mixing_ratio
from tests.eval.figures.test_maps import check_print

KINDS = ("attn_w", "attn_n", "attnres_n", "attnresln_n")
BATCHES = [[(7, 5), (3, 6), (4, 4)], [(1, 1), (8, 2), (0, 3)]]


@pytest.fixture
def token_types(tgt_dict):
    for index, mark in ((10, "."), (11, ",@@")):
        tgt_dict.symbols[index] = mark
    tgt_dict.count = [(i * 7) % 40 + 1 for i in range(len(tgt_dict))]
    return TokenTypes(tgt_dict)


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
        statistics.add(block, {"source": inputs["src_tokens"], "target": inputs["prev_output_tokens"]})
        seen.append((block, rows, columns))
    return seen


@pytest.mark.parametrize("type_", BLOCK_TYPES)
def test_streamed_numbers_equal_those_of_lists(build, make_sample, token_types, type_):
    """Special tokens have no frequency and are in no correlation: fairseq counts each once, whatever the text."""
    statistics = BlockStatistics(type_, KINDS, {"source": token_types, "target": token_types})
    samples = [make_sample(lengths, seed=i) for i, lengths in enumerate(BATCHES)]
    for name in ("src_tokens", "prev_output_tokens"):
        samples[0]["net_input"][name][0, 1] = 3  # <unk>
    classes = [TOKEN_CLASSES[c] for c in token_types.classes]
    ratios, masses, tokens, alone = [], [], [], 0
    for block, rows, columns in run(build().double(), samples, type_, 1, statistics):
        of_kinds = {(kind, -1): mixing_ratio(block, kind) for kind in KINDS}
        if type_ != DECODER_CROSS:
            of_heads = [(kind, head_mixing_ratio(block, kind)) for kind in ("attn_w", "attn_n")]
            of_kinds.update({(kind, head): ratio[:, head] for kind, ratio in of_heads for head in range(4)})
        both = [torch.cat([head_map(block, k), layer_map(block, k)[:, None]], dim=1) for k in ("attn_w", "attn_n")]
        norms = transformed_norms(block.factor).mean(1)
        for b in range(len(rows)):
            real = [t for t in range(rows.size(1)) if rows[b, t] != 1]
            for place, t in enumerate(real):
                if (type_ == DECODER_SELF and place == 0) or (type_ == ENCODER_SELF and len(real) == 1):
                    alone += 1
                    continue
                for name in ("all", classes[rows[b, t]]):
                    ratios += [(*key, name, float(ratio[b, t])) for key, ratio in of_kinds.items()]
            for s in columns[b].ne(1).nonzero()[:, 0]:
                name = classes[columns[b, s]]
                tokens.append((int(columns[b, s]), name, float(norms[b, s])))
                for head in (0, 1, 2, 3, -1):
                    masses.append((head, name, *(float(maps[b, head, real, s].sum()) for maps in both)))

    def compare(found, expected):
        found = pd.DataFrame(found).fillna({"head": -1}).set_index(expected.index.names).sort_index()
        pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_index_type=False, rtol=1e-9)

    assert statistics.left_out == alone
    frame = pd.DataFrame(ratios, columns=["kind", "head", "token_class", "ratio"])
    means = frame.groupby(["kind", "head", "token_class"])["ratio"].agg(mean="mean", positions="size")
    tables = statistics.tables()
    compare(tables["mixing"], means)
    frame = pd.DataFrame(masses, columns=["head", "token_class", "weight_share", "norm_share"])
    sums = frame.groupby(["head", "token_class"]).sum()
    seen = pd.DataFrame(tokens, columns=["id", "token_class", "norm"])
    shares = sums / sums.groupby("head").transform("sum")
    compare(tables["attention"], shares.join(seen["token_class"].value_counts(normalize=True).rename("token_share")))
    types = seen.groupby("id")["norm"].agg(["size", "mean"])
    table = pd.DataFrame(tables["token_norms"])
    assert {2, 3} < set(types.index)
    assert table["token"].tolist() == [token_types.tokens[id_] for id_ in types.index]
    assert table["token_class"].tolist() == [classes[id_] for id_ in types.index]
    assert table["occurrences"].tolist() == types["size"].tolist()
    assert table["norm"].tolist() == pytest.approx(types["mean"].tolist())
    assert table["frequency"].fillna(-1).tolist() == [token_types.frequency[i] if i > 3 else -1 for i in types.index]
    ordinary = types[types.index > 3]
    uncounted = copy.copy(token_types)
    uncounted.frequency = np.ones_like(token_types.frequency)
    for known, counts, where in (
        (token_types, token_types.frequency[ordinary.index], "training text"),
        (uncounted, ordinary["size"], "this text"),
    ):
        statistics.columns.types = known
        expected = stats.spearmanr(ordinary["mean"], counts).statistic
        correlation = {"spearman": pytest.approx(expected), "types": len(ordinary), "frequency": where}
        assert statistics.tables()["norm_by_frequency"] == [correlation]


def test_pairs_are_all_real_ones_or_a_sample_of_them(build, make_sample, token_types, monkeypatch):
    model = build().double()
    samples = [make_sample(lengths, seed=i) for i, lengths in enumerate(BATCHES)]
    whole = BlockStatistics(DECODER_SELF, KINDS, {"source": token_types, "target": token_types})
    seen = run(model, samples, DECODER_SELF, 0, whole)
    pairs = [
        (block.alpha[b, :, t, s], transformed_norms(block.factor)[b, :, s])
        for block, rows, columns in seen
        for b in range(len(rows))
        for t in range(rows.size(1))
        for s in range(t + 1)
        if rows[b, t] != 1 and columns[b, s] != 1
    ]
    for row in whole.tables()["weight_norm_correlation"]:
        alpha, norm = ([float(pair[i][row["head"]]) for pair in pairs] for i in (0, 1))
        assert row["pairs"] == len(pairs)
        assert row["spearman"] == pytest.approx(stats.spearmanr(alpha, norm).statistic)
    monkeypatch.setattr(analysis, "SAMPLED_PAIRS", 20)
    sampled = BlockStatistics(DECODER_SELF, KINDS, {"source": token_types, "target": token_types})
    run(model, samples, DECODER_SELF, 0, sampled)
    counts = [sum((n + 1) * (n + 2) // 2 for _, n in lengths) for lengths in BATCHES]
    generator = torch.Generator().manual_seed(0)
    keys = torch.cat([torch.rand(count, generator=generator) for count in counts])
    assert len(keys) == len(pairs)
    expected = sorted(torch.cat(pairs[i]).tolist() for i in keys.topk(20).indices)
    assert sorted(row.tolist() for row in sampled.pairs[:, 1:]) == expected


def test_token_classes(token_types):
    named = {token: TOKEN_CLASSES[c] for token, c in zip(token_types.tokens, token_types.classes)}
    assert (named["<s>"], named["</s>"], named["."], named[",@@"]) == ("<s>", "</s>", "punctuation", "punctuation")
    assert {named[token] for token in token_types.tokens[12:]} == {"other"}


def test_spearman_has_mean_ranks_for_ties_and_nothing_to_say_of_constants():
    x, y = [1, 2, 2, 4, 9], [3, 1, 1, 0, 7]
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))
    assert math.isnan(spearman([1, 2, 3], [0, 0, 0]))
    assert math.isnan(spearman(0.5 + 1e-7 * np.arange(9), range(9)))
    assert spearman(0.5 + 1e-4 * np.arange(9), range(9)) == pytest.approx(1)
    assert math.isnan(spearman([1], [1]))


@pytest.fixture
def analyse(make_sample, tgt_dict, token_types):
    """The tables of a model over :data:`BATCHES`."""

    def run(model, kinds=KINDS):
        analysis = Analysis(model, SimpleNamespace(source_dictionary=tgt_dict, target_dictionary=tgt_dict), kinds)
        for seed, lengths in enumerate(BATCHES):
            analysis.add(make_sample(lengths, seed=seed))
        return analysis.tables()

    return run


def test_nan_in_a_model_is_named_where_it_arises(build, analyse):
    model = build()
    model.decoder.layers[1].self_attn.out_proj.weight.data[0, 0] = float("nan")
    with pytest.raises(InputError, match=rf"{DECODER_SELF} 1 .*NaN"):
        analyse(model)


# -- figures, read from matplotlib's own objects


def test_lines_are_the_means_of_whole_blocks_in_percent(build, analyse):
    """A kind that is constant has no line where others vary."""
    tables = analyse(build(), ("attnres_w", "attnres_n"))
    for name, kinds in (("encoder-self", ("attnres_w", "attnres_n")), ("decoder-cross", ("attnres_n",))):
        figure, mixing = draw_figures(tables)[f"mixing-{name}"], tables["mixing"]
        rows = mixing[(mixing["block"] == name.replace("-", ".")) & mixing["head"].isna()]
        means = rows[rows["token_class"] == "all"].set_index(["kind", "layer"])["mean"]
        lines = {line.get_label(): line.get_xydata().tolist() for line in figure.axes[0].lines}
        expected = {kind_name(k): [[n, pytest.approx(100 * m)] for n, m in means[k].items()] for k in kinds}
        assert lines == expected
        check_print(figure)


@pytest.mark.parametrize(("counted", "text"), [("frequency", "training"), ("occurrences", "analysed")])
def test_points_are_the_tokens_that_are_counted(build, analyse, counted, text):
    """Not ``</s>``, whose frequency is fairseq's placeholder; without frequencies the text itself is counted."""
    tables = analyse(build())
    norms = tables["token_norms"]
    if counted == "occurrences":
        norms["frequency"] = norms["frequency"].where(lambda f: f.isna(), 1)
    figure = draw_figures(tables)["norm-frequency-decoder-cross"]
    points = figure.axes[0].collections[1]
    rows = norms[(norms["block"] == DECODER_CROSS) & (norms["layer"] == 1) & (norms["token"] != "</s>")]
    assert sorted(map(tuple, points.get_offsets().tolist())) == sorted(zip(rows[counted], rows["norm"]))
    (rho,) = tables["norm_by_frequency"].query(f"block == '{DECODER_CROSS}' and layer == 1")["spearman"]
    assert points.get_label() == f"layer 1, ρ {rho:.2f}"
    assert figure.axes[0].get_xlabel() == f"frequency in the {text} text"
    check_print(figure)


# -- what the command line refuses before it loads anything


@pytest.mark.parametrize(
    ("options", "status", "facts"),
    [
        (("--path", "a.pt", "--mixing-kinds", "attn_w,alti"), 2, ("'alti'", "attn_w", "ffresln_n")),
        (("--path", "no-such.pt"), 1, ("no-such.pt", "no such file")),
        (("--path", "a.pt:b.pt"), 2, ("--path a.pt:b.pt", "one checkpoint")),
        ((), 2, ("--path",)),
    ],
)
def test_bad_input(tmp_path, capsys, options, status, facts):
    with contextlib.ExitStack() as stack:
        if not options:
            stack.enter_context(pytest.raises(SystemExit, match=str(status)))
        assert main([str(tmp_path), "-o", str(tmp_path / "out"), *options]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("norm-analyze: ")
    assert all(fact in err for fact in facts), err
    assert not (tmp_path / "out").exists()
