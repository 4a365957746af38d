"""What the figures of an analysis show, read from matplotlib's own objects, and the files that are written."""

from __future__ import annotations

import pandas as pd
import pytest

from fairseq_norm_plugin.analyze import figures
from fairseq_norm_plugin.analyze.figures import save_figures


@pytest.fixture
def tables():
    """Two blocks of two layers; attnres_w of the second is constant."""
    mixing, correlated = [], []
    for block, kinds in (("encoder.self", ("attn_w", "attn_n")), ("decoder.cross", ("attnres_w", "attnres_n"))):
        for layer in (0, 1):
            for k, kind in enumerate(kinds):
                place = {"block": block, "layer": layer, "kind": kind}
                for token_class, mean in (("all", 0.1 * layer + 0.2 * k + 0.3), ("other", 0.9)):
                    mixing.append({**place, "head": None, "token_class": token_class, "mean": mean})
                correlated.append({**place, "spearman": None if kind == "attnres_w" else 0.1, "types": 9})
                if block == "encoder.self":
                    heads = [
                        {**place, "head": h, "token_class": "all", "mean": 0.1 * h + 0.5 * layer} for h in range(3)
                    ]
                    mixing += heads
    token_norms = [
        {"block": block, "layer": 0, "token": token, "frequency": f, "occurrences": o, "norm": n, "token_class": c}
        for block in ("encoder.self", "decoder.cross")
        for token, f, o, n, c in (
            ("</s>", None, 60, 3.0, "</s>"),
            ("<unk>", None, 2, 2.5, "other"),
            ("a", 100, 5, 1.0, "other"),
            ("b", 10, 7, 2.0, "other"),
            (".", 1000, 9, 0.5, "punctuation"),
        )
    ]
    result = {"mixing": mixing, "mixing_by_frequency": correlated, "token_norms": token_norms}
    frames = {name: pd.DataFrame(rows) for name, rows in result.items()}
    frames["mixing"]["head"] = frames["mixing"]["head"].astype("Int64")
    frames["token_norms"]["frequency"] = frames["token_norms"]["frequency"].astype("Int64")
    return frames


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draw, and give the axes of each file by its name."""

    def draw(tables):
        saved = {}
        save = figures._save

        def keep(figure, path):
            saved[path.stem] = figure.axes[0]
            return save(figure, path)

        monkeypatch.setattr(figures, "_save", keep)
        paths = save_figures(tables, tmp_path)
        assert sorted(paths) == sorted(tmp_path.iterdir())
        assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
        return saved

    return draw


def test_lines_are_the_means_of_whole_blocks_in_percent(tables, drawn):
    axes = drawn(tables)["mixing-encoder-self"]
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert lines == {
        "attn_w": [[0, pytest.approx(30)], [1, pytest.approx(40)]],
        "attn_n": [[0, pytest.approx(50)], [1, pytest.approx(60)]],
    }
    assert axes.get_title() == "encoder.self"


def test_a_constant_kind_has_no_line(tables, drawn):
    assert [line.get_label() for line in drawn(tables)["mixing-decoder-cross"].lines] == ["attnres_n"]


def test_kinds_stay_where_no_frequency_is_known(tables, drawn):
    tables["mixing_by_frequency"]["spearman"] = float("nan")
    assert [line.get_label() for line in drawn(tables)["mixing-decoder-cross"].lines] == ["attnres_w", "attnres_n"]


def test_heads_of_norms_as_a_heatmap_where_there_are_any(tables, drawn):
    saved = drawn(tables)
    assert "mixing-heads-decoder-cross" not in saved
    image = saved["mixing-heads-encoder-self"].images[0].get_array()
    assert image.tolist() == [pytest.approx([0, 10, 20]), pytest.approx([50, 60, 70])]


def points(axes):
    return {c.get_label(): sorted(map(tuple, c.get_offsets().tolist())) for c in axes.collections}


def test_tokens_of_unknown_frequency_are_not_drawn(tables, drawn):
    """``</s>`` stood at frequency 1, the commonest token drawn as the rarest."""
    axes = drawn(tables)["norm-frequency-decoder-cross"]
    assert points(axes) == {"other": [(10, 2.0), (100, 1.0)], "punctuation": [(1000, 0.5)]}
    assert axes.get_xlabel() == "frequency in the training text"


def test_without_frequencies_the_text_itself_is_counted_and_special_tokens_too(tables, drawn):
    tables["token_norms"]["frequency"] = tables["token_norms"]["frequency"].where(lambda f: f.isna(), 1)
    axes = drawn(tables)["norm-frequency-encoder-self"]
    assert points(axes) == {
        "</s>": [(60, 3.0)],
        "other": [(2, 2.5), (5, 1.0), (7, 2.0)],
        "punctuation": [(9, 0.5)],
    }
    assert axes.get_xlabel() == "frequency in the analysed text"
