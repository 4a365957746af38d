from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from alignment_eval.figures.heatmap import draw_heatmap, layer_label, save_heatmaps

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("layer", "label"),
    [
        *((0, "layer 0 (1st)"), (1, "layer 1 (2nd)"), (2, "layer 2 (3rd)"), (3, "layer 3 (4th)")),
        *((10, "layer 10 (11th)"), (11, "layer 11 (12th)"), (12, "layer 12 (13th)"), (20, "layer 20 (21st)")),
    ],
)
def test_layer_label(layer: int, label: str) -> None:
    assert layer_label(layer) == label


def table() -> pd.DataFrame:
    """Two configurations of layers 2 and 5 with three heads; AER 0.10, 0.11, …, that of whole layers 0.99."""
    rows = []
    aer = iter(np.arange(0.10, 0.30, 0.01))
    for setting, layer, head in itertools.product(("awo", "awi"), (2, 5), (0, 1, 2, None)):
        names = {"kind": "attn_n", "setting": setting, "rule": "kobayashi2020", "null": "mask", "layer": layer}
        level, value = ("layer", 0.99) if head is None else ("head", next(aer))
        rows.append({**names, "head": head, "level": level, "aer": value})
    return pd.DataFrame(rows).astype({"head": "Int64"})


def texts(svg: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.read_text(encoding="utf-8"))


def test_one_figure_a_configuration(tmp_path: Path) -> None:
    paths = save_heatmaps(table(), tmp_path)
    stems = ["heads-attn_n-awo-kobayashi2020-mask", "heads-attn_n-awi-kobayashi2020-mask"]
    assert [path.name for path in paths] == [f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert paths[0].read_bytes().startswith(PNG)
    shown = texts(paths[3])
    assert "AER %: attn_n, AWI, kobayashi2020, null masked" in shown
    assert {"layer 2 (3rd)", "layer 5 (6th)", "head", "AER %"} <= set(shown)
    cells = [text for text in shown if re.fullmatch(r"\d\d\.\d", text)]
    assert cells == ["16.0", "17.0", "18.0", "19.0", "20.0", "21.0"]  # no 99.0: whole layers are left out


def test_rows_in_any_order_fill_the_right_cells(tmp_path: Path) -> None:
    shuffled = table().sample(frac=1, random_state=1)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    save_heatmaps(table(), tmp_path / "a")
    save_heatmaps(shuffled, tmp_path / "b")
    for path in (tmp_path / "a").glob("*.svg"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_all_figures_share_one_colour_scale() -> None:
    values = np.array([[20.0, 30.0]])
    figure = draw_heatmap(values, [0], "title", (10.0, 90.0))
    (image,) = figure.axes[0].images
    assert image.get_clim() == (10.0, 90.0)
    np.testing.assert_array_equal(image.get_array(), values)


def test_one_value_everywhere(tmp_path: Path) -> None:
    """A scale from x to x draws without a warning."""
    flat = table()
    flat["aer"] = 1.0
    assert len(save_heatmaps(flat, tmp_path)) == 4


def test_matplotlib_is_imported_only_to_draw() -> None:
    code = "import sys, alignment_eval.figures.heatmap; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
