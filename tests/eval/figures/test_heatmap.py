import itertools
import re

import numpy as np
import pandas as pd

from alignment_eval.commands.sweep import save_heatmaps, summary
from alignment_eval.figures.style import DEFAULT

PNG = b"\x89PNG\r\n\x1a\n"


def table():
    """Two configurations of layers 2 and 5 with three heads; AER 0.10, 0.11, …, that of whole layers 0.99."""
    rows = []
    aer = iter(np.arange(0.10, 0.30, 0.01))
    for setting, layer, head in itertools.product(("awo", "awi"), (2, 5), (0, 1, 2, None)):
        names = {"kind": "attn_n", "setting": setting, "rule": "kobayashi2020", "null": "mask", "layer": layer}
        level, value = ("layer", 0.99) if head is None else ("head", next(aer))
        rows.append({**names, "head": head, "level": level, "aer": value})
    return pd.DataFrame(rows).astype({"head": "Int64"})


def texts(svg):
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.read_text(encoding="utf-8"))


def test_one_figure_a_configuration_and_a_summary(tmp_path):
    save_heatmaps(table(), tmp_path, DEFAULT, ("png", "svg"))
    stems = ["summary", "heads-attn_n-awo-kobayashi2020-mask", "heads-attn_n-awi-kobayashi2020-mask"]
    names = {f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert (tmp_path / "summary.png").read_bytes().startswith(PNG)
    shown = texts(tmp_path / f"{stems[2]}.svg")
    heading = "Heads: norms, AWI; rule kobayashi2020, null masked. Lowest: 16.0, layer 2, head 0"
    assert heading in " ".join(shown)
    assert {"layer 2", "layer 5", "head", "AER %"} <= set(shown)
    cells = [text for text in shown if re.fullmatch(r"\d\d\.\d", text)]
    assert cells == ["16.0", "17.0", "18.0", "19.0", "20.0", "21.0"]  # no 99.0: whole layers are left out


def test_summary_is_of_the_rule_with_the_lowest_layer():
    """Settings and kinds are rows, layers columns; layers that a kind lacks stay empty."""
    rows = [
        {"kind": kind, "setting": setting, "rule": rule, "null": "mask", "level": level, "layer": layer, "aer": aer}
        for kind, setting, rule, level, layer, aer in [
            ("attn_w", "awo", "a", "layer", 0, 0.5),
            ("attn_w", "awo", "b", "layer", 0, 0.6),
            ("attn_w", "awo", "b", "layer", 1, 0.4),
            ("attn_n", "awo", "b", "layer", 1, 0.3),
            ("attn_n", "awi", "b", "layer", 1, 0.35),
            ("attn_n", "awi", "a", "head", 1, 0.1),
        ]
    ]
    grid, text = summary(pd.DataFrame(rows))
    assert list(grid.index) == ["AWO, weights", "AWO, norms", "AWI, weights", "AWI, norms"]
    assert [*map(int, grid.columns)] == [0, 1]
    np.testing.assert_allclose(grid.values, [[60, 40], [np.nan, 30], [np.nan, np.nan], [np.nan, 35]])
    assert text == "Whole layers; rule b, null masked. Lowest: 30.0, norms, AWO, layer 1"
