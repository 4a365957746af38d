"""scripts/train.sh and scripts/train_bf16.py, on a few updates."""

import json
import os
import re

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from tests.integration.conftest import PATH, ROOT, without_fairseqs_warnings

SMALL = [option for side in ("encoder", "decoder") for option in (f"--{side}-layers", 1, f"--{side}-embed-dim", 32)]
SMALL += ["--max-update", 3, "--max-tokens", 400, "--disable-validation", "--dropout", 0]


@pytest.mark.slow
def test_bfloat16_products_train_almost_alike(command, data, tmp_path):
    """The log is fairseq's own, the weights are float32 and near those of float32 products, and not the very ones."""

    def train(setting):
        words = ["bash", "scripts/train.sh", setting, data, "xx", "yy", tmp_path / setting, *SMALL]
        result = command(*words, "--log-interval", 1)
        (checkpoint,) = (tmp_path / setting).glob("*.pt")
        return result.stdout + result.stderr, torch.load(checkpoint, weights_only=False)["model"]

    log, exact = train("cpu")
    bf16_log, rounded = train("cpu-bf16")
    first, first_rounded = (
        json.loads(re.search(r"\| INFO \| train_inner \| (\{.*\})", text)[1]) for text in (log, bf16_log)
    )
    assert float(first_rounded["loss"]) == pytest.approx(float(first["loss"]), rel=2e-2)
    assert all(weight.dtype == exact[name].dtype for name, weight in rounded.items())
    weights = [name for name, weight in exact.items() if weight.ndim == 2]
    assert all(torch.allclose(rounded[name], exact[name], atol=5e-3) for name in weights)
    assert any(not torch.equal(rounded[name], exact[name]) for name in weights)


@pytest.fixture
def config(command, data, tmp_path):
    """What fairseq-train gets of train.sh; ``python`` says where the plugin is, without the wait."""
    plugin, given = ROOT / "fairseq_norm_plugin", tmp_path / "words"
    for name, line in (("fairseq-train", f'printf "%s\\n" "$@" >{given}'), ("python", f"echo {plugin}")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)

    def read(setting, *extra):
        words = ["bash", "scripts/train.sh", setting, data, "xx", "yy", tmp_path / "ckpt", *extra]
        command(*words, PATH=f"{tmp_path}{os.pathsep}{PATH}")
        words = given.read_text().splitlines()
        args = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
        with without_fairseqs_warnings():
            return convert_namespace_to_omegaconf(args)

    return read


def test_another_scheduler_takes_its_own_options(config):
    found = config("cpu", "--lr-scheduler", "triangular", "--max-lr", "0.1", "--lr", "5e-4")
    assert (found.lr_scheduler._name, found.lr_scheduler.max_lr, found.optimization.lr) == ("triangular", 0.1, [5e-4])
