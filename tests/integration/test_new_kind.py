"""A new map kind is a row of the table and its functions: commands, tables, figures and the check of docs find it."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from alignment_eval import commands as cli
from alignment_eval.figures.style import kind_look, kind_name
from alignment_eval.maps.kinds import KINDS, MapKind, block_kinds, head_kinds, mixing_kinds, quantities
from alignment_eval.records import Records
from fairseq_norm_plugin.analyze.cli import main as analyze
from fairseq_norm_plugin.formulas import kinds as functions

MAPS = Path(__file__).resolve().parents[2] / "docs/maps.md"
NEW = MapKind("attn_new", "new maps", ("layer_attn_new",))
MIXED = MapKind("attnres_new", "new mixing", ("layer_attnres_new",), mixing=True)


def undocumented():
    """Kinds without a row in the table of docs/maps.md."""
    rows = [line for line in MAPS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    return set(KINDS) - named


def test_the_table_says_what_is_there():
    assert undocumented() == set()
    assert tuple(functions.LAYER_MAPS) == block_kinds()
    assert tuple(functions.HEAD_MAPS) == head_kinds()
    assert tuple(functions.MIXING_RATIOS) == mixing_kinds()
    for kind in KINDS.values():
        assert kind.rollout is None or kind.rollout in block_kinds()
    looks = [tuple(kind_look(kind).values()) for kind in mixing_kinds()]
    assert len(set(looks)) == len(looks)


@pytest.fixture
def new(monkeypatch):
    for kind in (NEW, MIXED):
        monkeypatch.setitem(KINDS, kind.name, kind)
        monkeypatch.setitem(functions.LAYER_MAPS, kind.name, lambda block: block.alpha.mean(1))
    monkeypatch.setitem(functions.MIXING_RATIOS, MIXED.name, lambda block: block.alpha[:, 0, :, 0])


@pytest.mark.usefixtures("new")
def test_a_new_kind_is_found_everywhere(norm, tmp_path, capsys):
    for command in ("sweep", "plot", "report"):
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        assert NEW.name in capsys.readouterr().out, command
    assert undocumented() == {NEW.name, MIXED.name}
    assert kind_name(NEW.name) == "new maps"
    assert "layer_attn_new" in quantities()

    norm("--score-reference", "--norm-record-kinds", "attn_w,attn_new", "--norm-records", tmp_path / "r")
    (first, *_) = Records(tmp_path / "r")
    assert first.kinds == ("attn_w", "attnres_w", "attn_new")
    np.testing.assert_allclose(first.layer_maps("attn_new"), first.layer_maps("attn_w"), rtol=1e-5)
    (tmp_path / "gold").write_text("0-0\n" * 12)
    records = [str(tmp_path / "r"), "--gold", str(tmp_path / "gold"), "--gold-base", "0"]
    assert cli.main(["sweep", *records, "-o", str(tmp_path / "s"), "--figure-formats", "svg"]) == 0
    assert NEW.name in (tmp_path / "s/sweep.csv").read_text()
    assert "AWO, new maps" in (tmp_path / "s/summary.svg").read_text()
    assert cli.main(["plot", records[0], "--sentence", "0", "--kinds", "attn_new", "-o", str(tmp_path / "p.svg")]) == 0
    assert "new maps" in (tmp_path / "p.svg").read_text()


@pytest.mark.usefixtures("new")
def test_a_new_mixing_kind_is_analysed_and_drawn(data, checkpoint, tmp_path):
    kinds = ",".join(mixing_kinds())
    words = [data, "--path", checkpoint, "-o", tmp_path / "a", "--cpu", "--mixing-kinds", kinds]
    assert analyze([str(word) for word in [*words, "--gen-subset", "valid", "--figure-formats", "svg"]]) == 0
    mixing = pd.read_csv(tmp_path / "a/mixing.csv")
    assert set(mixing["kind"]) == set(mixing_kinds())
    assert "new mixing" in (tmp_path / "a/mixing-decoder-cross.svg").read_text()
