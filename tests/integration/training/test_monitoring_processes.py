"""Monitoring in several processes, and under fairseq's other way to start: real commands."""

from __future__ import annotations

import json
import math
import os
import random
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def gold(texts, tmp_path_factory):
    """Gold of subset test4 (9 pairs), links at random."""
    rng = random.Random(5)
    lines = []
    for pair in texts[6]:
        source, target = (sum(not token.endswith("@@") for token in side.split()) for side in pair)
        lines.append(" ".join(f"{rng.randint(1, source)}-{rng.randint(1, target)}" for _ in range(source)))
    path = tmp_path_factory.mktemp("gold") / "gold.talp"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def words(data, directory, gold, *extra):
    options = [data, "--user-dir", ROOT / "fairseq_norm_plugin", "--task", "translation_norm", "--cpu"]
    options += ["--arch", "transformer", "--optimizer", "adam", "--max-update", 1, "--lr", "1e-9", "--seed", 1]
    for side in ("encoder", "decoder"):
        options += [f"--{side}-layers", 2, f"--{side}-embed-dim", 16, f"--{side}-ffn-embed-dim", 16]
        options += [f"--{side}-attention-heads", 2]
    options += ["--aer-gold", f"test4={gold}", "--aer-gold-base", 1, "--valid-subset", "test4,valid"]
    options += ["--max-tokens", 400, "--batch-size-valid", 2, "--num-workers", 0, "--log-format", "json"]
    return [str(word) for word in [*options, "--save-dir", directory, "--no-save", *extra]]


def figures(stderr):
    lines = [line for line in stderr.splitlines() if " | test4 | " in line]
    line = json.loads(lines[-1].rpartition(" | ")[2])
    return {key.removeprefix("test4_"): value for key, value in line.items()}


def start(bin_directory, options):
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [str(bin_directory / "fairseq-train"), *options]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env, check=False, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout + result.stderr


def start_several(bin_directory, options, processes):
    """Train in several processes at once; what the first one prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    common = ["--distributed-world-size", str(processes), "--distributed-init-method", address]
    # fairseq hands torch's own DDP a device number, which it refuses for modules on a CPU
    common += ["--distributed-no-spawn", "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
    shards = [[*options, *common, "--distributed-rank", str(rank)] for rank in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        first, *_ = pool.map(lambda shard: start(bin_directory, shard), shards)
    return first


@pytest.mark.slow
def test_training_in_two_processes_restarts_from_its_checkpoint(data, gold, bin_directory, tmp_path):
    options = [word for word in words(data, tmp_path / "ckpt", gold) if word != "--no-save"]
    start_several(bin_directory, options, 2)
    output = start_several(bin_directory, [*options, "--max-update", "2"], 2)
    assert re.search(r"Loaded checkpoint \S*checkpoint_last\.pt \(epoch \d+ @ 1 updates\)", output)
    assert torch.load(tmp_path / "ckpt/checkpoint_last.pt")["optimizer_history"][-1]["num_updates"] == 2


def test_counts_of_several_processes_are_those_of_one(data, gold, bin_directory, tmp_path):
    """5 batches: over 4 processes the second round has one real batch and three of the other kind."""
    single = figures(start(bin_directory, words(data, tmp_path / "1", gold, "--aer-mixing", "attnres_n")))
    assert math.isfinite(float(single["aer"]))
    assert single["aer_sentences"] == single["aer_sentences_gold"] == "9"
    options = words(data, tmp_path / "4", gold, "--aer-mixing", "attnres_n")
    several = figures(start_several(bin_directory, options, 4))
    same = [key for key in single if "aer" in key]
    assert {key: several[key] for key in same} == {key: single[key] for key in same}
    for key in (key for key in single if "mixing" in key):
        assert float(several[key]) == pytest.approx(float(single[key]), abs=2e-6)


def test_hydra_train(data, gold, command, bin_directory, tmp_path):
    overrides = [
        f"common.user_dir={ROOT / 'fairseq_norm_plugin'}", "common.cpu=true", "common.log_format=json",
        "+task._name=translation_norm", f"+task.data={data}", f"+task.aer_gold='test4={gold}'",
        "+task.aer_gold_base='1'",
        "dataset.valid_subset='test4,valid'", "dataset.max_tokens=400", "dataset.num_workers=0",
        "+model._name=transformer", "+model.encoder_layers=1", "+model.decoder_layers=1", "+optimizer._name=adam",
        "+model.encoder.embed_dim=16", "+model.decoder.embed_dim=16", "criterion._name=cross_entropy",
        "lr_scheduler._name=fixed", "optimization.lr=[1e-9]", "optimization.max_update=1", "checkpoint.no_save=true",
    ]  # fmt: skip
    result = command(bin_directory / "fairseq-hydra-train", *overrides, cwd=tmp_path, check=False)
    output = result.stdout + result.stderr + "".join(path.read_text() for path in tmp_path.rglob("*.log"))
    assert result.returncode == 0, output[-3000:]
    line = next(line for line in output.splitlines() if "][test4][INFO] - " in line)
    assert math.isfinite(float(json.loads(line.partition(" - ")[2])["test4_aer"]))
