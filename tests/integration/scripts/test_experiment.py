"""scripts/results/experiment.py: what it chooses, and that it runs from models and gold to tables."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "results"))
    import experiment
    import experiment_tables

    return experiment, experiment_tables


@pytest.fixture
def sweep():
    columns = ["kind", "level", "layer", "head", "setting", "rule", "null", "aer"]
    cells = [
        ("attn_n", "layer", 0, None, "awo", "kobayashi2020", "allow", 0.6),
        ("attn_n", "layer", 1, None, "awo", "kobayashi2020", "allow", 0.5),
        ("attn_n", "layer", 1, None, "awo", "kobayashi2020", "mask", 0.4),
        ("attn_n", "head", 1, 2.0, "awo", "shift-att", "mask", 0.3),
        ("attn_w", "layer", 0, None, "awo", "kobayashi2020", "allow", 0.7),
        ("attn_w", "layer", 1, None, "awo", "kobayashi2020", "allow", 0.8),
        ("attn_w", "head", 0, 1.0, "awo", "kobayashi2020", "allow", 0.9),
        ("attn_n", "head", 0, 1.0, "awo", "kobayashi2020", "allow", 0.95),
    ]
    return pd.DataFrame(cells, columns=columns)


def test_the_lowest_aer_among_what_is_asked_for_becomes_options_of_extract(scripts, sweep):
    experiment = scripts[0]
    asked = {"kind": "attn_n", "level": "layer", "null": "allow"}
    words = "--kind attn_n --layer 1 --setting awo --rule kobayashi2020 --null allow"
    assert experiment.extraction(experiment.cell(sweep, **asked)) == words.split()
    words = "--kind attn_n --layer 1 --head 2 --setting awo --rule shift-att --null mask --final-punctuation"
    assert experiment.extraction(experiment.cell(sweep), True) == words.split()


def test_the_table_of_layers_has_their_mean_and_the_best_head(scripts, sweep):
    tables = scripts[1]
    lines = tables.by_layer(sweep[sweep.null == "allow"]).splitlines()
    assert lines[0] == "| setting | map | `</s>` | layer 0 | layer 1 | layer mean | best head |"
    assert lines[2] == "| AWO | weights | allow | 70.00 | 80.00 | 75.00 | 90.00 (0, 1) |"
    assert lines[3] == "| AWO | norms | allow | 60.00 | 50.00 | 55.00 | 95.00 (0, 1) |"


def test_a_choice_of_one_map_has_no_steps(scripts, tmp_path):
    tables = scripts[1]
    (tmp_path / "choices").mkdir()
    steps = tmp_path / "choices/en-de-set-norms.txt"
    assert tables.sets(tmp_path, "en-de") == ""
    steps.write_text("The 10 single maps\n\nChoice: attn_n, heads 0.0, awi: AER 31.73 %\nThat AER is optimistic.\n")
    assert tables.sets(tmp_path, "en-de").endswith(": a single one. Choice: attn_n, heads 0.0, awi: AER 31.73 %")
    steps.write_text("The 10 …\n\nFrom the best map to the choice\n1.0  a\n0.5  b\n\nChoice: …\n")
    assert tables.sets(tmp_path, "en-de").endswith("```\nFrom the best map to the choice\n1.0  a\n0.5  b\n```")


@pytest.mark.slow
def test_the_whole_experiment_on_the_demo(command, bin_directory, tmp_path):
    """The demo plays both gold sets and its model both directions."""
    demo = ROOT / "data" / "demo"
    for gold, names in {
        "vilar508": ("test.de", "test.en", "alignment.talp"),
        "cmu150": ("dev.de", "dev.en", "dev.talp"),
    }.items():
        (tmp_path / gold).mkdir()
        for name, file in zip(names, ("demo.de", "demo.en", "demo.talp")):
            (tmp_path / gold / name).write_bytes((demo / file).read_bytes())
    out = tmp_path / "out"
    words = ["scripts/results/experiment.py", "--gold", tmp_path, "--forward", demo / "checkpoint.pt"]
    words += ["--reverse", demo / "checkpoint.pt", "--out", out]
    result = command(bin_directory / "python", *words, PATH=f"{bin_directory}:/usr/bin:/bin")
    rows = {(row["direction"], row["row"]): row for row in json.loads((out / "rows.json").read_text(encoding="utf-8"))}
    norms = rows["de-en", "norms"]
    assert round(100 * norms["aer"], 2) == round(100 * norms["dev_aer"], 2) == 35.11
    assert "| de-en | norms, best layer, AWO | 35.11 | 35.11 [" in result.stdout
