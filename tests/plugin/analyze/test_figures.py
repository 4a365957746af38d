"""What the figures of an analysis show, read from matplotlib's own objects."""

import itertools

import pandas as pd
import pytest

from fairseq_norm_plugin.analyze.cli import draw_figures
from tests.eval.figures.printed import check_print


@pytest.fixture
def tables():
    """Two blocks of two layers; attnres_w of the second is constant."""
    blocks = {"encoder.self": ("attn_w", "attn_n"), "decoder.cross": ("attnres_w", "attnres_n")}
    mixing, correlated = [], []
    for (block, kinds), layer in itertools.product(blocks.items(), (0, 1)):
        for k, kind in enumerate(kinds):
            mixing.append((block, layer, kind, None, "all", 0.1 * layer + 0.2 * k + 0.3))
            mixing.append((block, layer, kind, None, "other", 0.9))
            if block == "encoder.self":
                mixing += [(block, layer, kind, head, "all", 0.1 * head + 0.5 * layer) for head in range(3)]
            correlated.append((block, layer, kind, None if kind == "attnres_w" else 0.1, 9))
    tokens = [
        ("</s>", None, 60, 3.0, "</s>"),
        ("<unk>", None, 2, 2.5, "other"),
        ("a", 100, 5, 1.0, "other"),
        ("b", 10, 7, 2.0, "other"),
        (".", 1000, 9, 0.5, "punctuation"),
    ]
    norms = [(block, 0, *token) for block in blocks for token in tokens]
    frames = {
        "mixing": (mixing, "block layer kind head token_class mean"),
        "mixing_by_frequency": (correlated, "block layer kind spearman types"),
        "token_norms": (norms, "block layer token frequency occurrences norm token_class"),
        "norm_by_frequency": ([(block, 0, 0.25) for block in blocks], "block layer spearman"),
    }
    whole = {"head": "Int64", "frequency": "Int64"}
    return {
        name: pd.DataFrame(rows, columns=columns.split()).astype({c: whole[c] for c in columns.split() if c in whole})
        for name, (rows, columns) in frames.items()
    }


def test_lines_are_the_means_of_whole_blocks_in_percent(tables):
    figure = draw_figures(tables)["mixing-encoder-self"]
    (axes,) = figure.axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert lines == {
        "weights": [[0, pytest.approx(30)], [1, pytest.approx(40)]],
        "norms": [[0, pytest.approx(50)], [1, pytest.approx(60)]],
    }
    assert figure.get_suptitle() == "Mixing ratio, encoder self-attention"
    check_print(figure)


@pytest.mark.parametrize(
    ("counted", "text", "expected"),
    [
        (True, "training", [(10, 2.0), (100, 1.0), (1000, 0.5)]),
        (False, "analysed", [(5, 1.0), (7, 2.0), (9, 0.5)]),
    ],
)
def test_points_are_the_tokens_that_are_counted(tables, counted, text, expected):
    """Not ``</s>``, whose frequency is fairseq's placeholder; without frequencies the text itself is counted."""
    if not counted:
        tables["token_norms"]["frequency"] = tables["token_norms"]["frequency"].where(lambda f: f.isna(), 1)
    figure = draw_figures(tables)["norm-frequency-decoder-cross"]
    (axes,) = figure.axes
    (points,) = axes.collections
    assert points.get_label() == "layer 0, ρ 0.25"
    assert sorted(map(tuple, points.get_offsets().tolist())) == expected
    assert axes.get_xlabel() == f"frequency in the {text} text"
    check_print(figure)
