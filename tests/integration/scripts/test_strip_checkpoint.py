"""scripts/strip_checkpoint.py: the bundled file is the model that was trained, for stock fairseq too, and no more."""

from __future__ import annotations

import io
import runpy
import sys
from pathlib import Path

import pytest
import torch

from tests.facts import says

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def both(trained, data, command, bin_directory, tmp_path_factory):
    """A checkpoint of monitored training with tied embeddings, and what is made of it."""
    gold = tmp_path_factory.mktemp("gold") / "gold.talp"
    gold.write_text("1-1\n" * 11)
    monitoring = ["--aer-gold", f"valid={gold}", "--aer-gold-base", "1", "--valid-subset", "valid"]
    whole = trained("tied", "--share-all-embeddings", *monitoring, task="translation_norm")
    out = tmp_path_factory.mktemp("out") / "checkpoint.pt"
    command(bin_directory / "python", "scripts/strip_checkpoint.py", whole, out)
    return whole, out


def test_weights_are_those_that_were_trained(both):
    whole, out = (torch.load(path, weights_only=False)["model"] for path in both)
    assert list(whole) == list(out)
    for name, tensor in whole.items():
        assert out[name].dtype == torch.float16
        torch.testing.assert_close(out[name], tensor.half(), rtol=0, atol=0)
    tied = {out[f"{side}.embed_tokens.weight"].data_ptr() for side in ("encoder", "decoder")}
    assert len(tied) == 1
    weights = {tensor.data_ptr(): 2 * tensor.numel() for tensor in out.values()}
    assert both[1].stat().st_size < sum(weights.values()) + 100_000
    assert list(both[1].parent.iterdir()) == [both[1]]


def test_nothing_is_left_of_the_training(both, data):
    state = torch.load(both[1], weights_only=False)
    text = repr(state["cfg"]) + repr({name: value for name, value in state.items() if name not in ("cfg", "model")})
    for word in (str(data), str(both[0].parent), "gold.talp", "aer_", "norm_records", "translation_norm", "exp_avg"):
        assert word not in text
    assert state["optimizer_history"][-1]["num_updates"] == 8


@pytest.fixture
def strip(monkeypatch):
    """Run the script in this process."""

    def run(*words):
        monkeypatch.syspath_prepend(ROOT / "scripts")
        monkeypatch.setattr(sys, "argv", ["strip_checkpoint.py", *map(str, words)])
        runpy.run_path(str(ROOT / "scripts/strip_checkpoint.py"), run_name="__main__")

    return run


def test_a_file_that_exists_is_replaced_only_on_demand(both, strip, capsys, tmp_path):
    out = tmp_path / "out.pt"
    out.write_text("mine")
    with pytest.raises(SystemExit, match="1"):
        strip(both[0], out)
    assert "out.pt: already exists" in capsys.readouterr().err
    assert out.read_text() == "mine"
    with pytest.raises(SystemExit, match="1"):
        strip(out, tmp_path / "other", "--overwrite")
    with pytest.raises(SystemExit, match="2"):
        strip(both[0], both[0], "--overwrite")
    with pytest.raises(SystemExit, match="0"):
        strip(both[0], out, "--overwrite")
    assert out.read_bytes() == both[1].read_bytes()


@pytest.mark.parametrize("content", [b"", b"weights", b"PK\x03\x04 cut", None])
def test_a_file_of_another_kind_is_named_and_leaves_nothing_behind(strip, capsys, tmp_path, content):
    if content is None:
        torch.save({"weights": io.BytesIO().getvalue()}, tmp_path / "other.pt")
    else:
        (tmp_path / "other.pt").write_bytes(content)
    with pytest.raises(SystemExit, match="1"):
        strip(tmp_path / "other.pt", tmp_path / "out")
    assert says(capsys.readouterr().err, "other.pt: no checkpoint … a file that fairseq-train saved")
    assert [path.name for path in tmp_path.iterdir()] == ["other.pt"]


def test_the_criterion_of_guided_training_becomes_fairseqs(both, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    state = torch.load(both[0], weights_only=False)
    guided = {"_name": "guided_alignment", "label_smoothing": 0.25, "alignment_lambda": 1.0, "guided_maps": "0.0:awi"}
    state["cfg"]["criterion"] = guided
    vars(state["cfg"]["model"]).update(criterion="guided_alignment", guided_maps="0.0:awi")
    cfg = runpy.run_path(str(ROOT / "scripts" / "strip_checkpoint.py"))["stripped"](state)["cfg"]
    assert dict(cfg["criterion"]) == {"_name": "label_smoothed_cross_entropy", "label_smoothing": 0.25}
    assert cfg["model"].criterion == "label_smoothed_cross_entropy"
    assert "guided_alignment" not in repr(cfg)
    assert cfg["model"].guided_maps == "0.0:awi"  # norm-align reads them
