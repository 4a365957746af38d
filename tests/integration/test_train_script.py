"""scripts/train.sh and scripts/train_bf16.py, on a few updates."""

from __future__ import annotations

import json
import os
import re

import pytest
import torch

SMALL = [option for side in ("encoder", "decoder") for option in (f"--{side}-layers", 1, f"--{side}-embed-dim", 32)]
SMALL += ["--max-update", 3, "--max-tokens", 400, "--disable-validation", "--dropout", 0]


@pytest.fixture(scope="module")
def train(command, bin_directory, data, tmp_path_factory):
    """Train on the invented corpus as train.sh does; the words of its log and the weights it ends with."""

    def run(setting, *extra):
        directory = tmp_path_factory.mktemp("train")
        words = ["bash", "scripts/train.sh", setting, data, "xx", "yy", directory, *SMALL, *extra]
        path = f"{bin_directory}{os.pathsep}{os.environ['PATH']}"
        result = command(*words, PATH=path)
        (checkpoint,) = directory.glob("*.pt")
        return result.stdout + result.stderr, torch.load(checkpoint, weights_only=False)["model"]

    return run


def test_bfloat16_products_train_almost_alike(train):
    """The log is fairseq's own, the weights are float32 and near those of float32 products, and not the very ones."""
    log, exact = train("cpu", "--log-interval", 1)
    bf16_log, rounded = train("cpu-bf16", "--log-interval", 1)
    first, first_rounded = (
        json.loads(re.search(r"\| INFO \| train_inner \| (\{.*\})", text)[1]) for text in (log, bf16_log)
    )
    assert float(first_rounded["loss"]) == pytest.approx(float(first["loss"]), rel=2e-2)
    assert all(weight.dtype == exact[name].dtype for name, weight in rounded.items())
    weights = [name for name, weight in exact.items() if weight.ndim == 2]
    assert all(torch.allclose(rounded[name], exact[name], atol=5e-3) for name in weights)
    assert any(not torch.equal(rounded[name], exact[name]) for name in weights)


def test_an_unknown_setting_is_named(command):
    result = command("bash", "scripts/train.sh", "nosuch", "data", "de", "en", "out", check=False)
    assert result.returncode == 2
    assert "no setting 'nosuch': choose of cpu, cpu-bf16, paper, europarl" in result.stderr


def test_without_arguments_it_says_how_it_is_called(command):
    result = command("bash", "scripts/train.sh", check=False)
    assert result.returncode == 2
    assert "usage: train.sh cpu|cpu-bf16|paper|europarl DATA SOURCE TARGET SAVE_DIR" in result.stderr
