"""Monitoring in several processes, and under fairseq's other way to start."""

import json
import math
import os
import random
import re
import socket
import subprocess
import sys
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


def figures(printed):
    lines = [line for line in printed.splitlines() if " | test4 | " in line]
    line = json.loads(lines[-1].rpartition(" | ")[2])
    return {key.removeprefix("test4_"): value for key, value in line.items()}


# fairseq-train once for each line of options, all at once; what each writes goes to the file that its line begins with.
# The processes are forks of one that has imported fairseq, which takes longer than the training.
TRAININGS = """
import json, os, sys
import torch._dynamo, fairseq_norm_plugin  # the first is what a training imports
from fairseq_cli import train

processes = []
for output, *options in json.load(sys.stdin):
    processes.append(os.fork())
    if not processes[-1]:
        file = os.open(output, os.O_CREAT | os.O_WRONLY)
        os.dup2(file, 1), os.dup2(file, 2)
        sys.argv = ["fairseq-train", *options]
        train.cli_main()
        sys.exit()
sys.exit(max(os.waitpid(process, 0)[1] for process in processes) and 1)
"""


def train_at_once(directory, *lines):
    """Train with each line of options in a process of its own; what each prints."""
    outputs = [directory / f"printed{number}" for number in range(len(lines))]
    given = json.dumps([[str(output), *line] for output, line in zip(outputs, lines)])
    command, env = [sys.executable, "-c", TRAININGS], {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, cwd=ROOT, input=given, text=True, env=env, check=False, timeout=300)
    printed = [output.read_text() for output in outputs]
    assert result.returncode == 0, "".join(text[-3000:] for text in printed)
    return printed


def several(options, processes):
    """The options of each process that trains together with the others."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    common = ["--distributed-world-size", str(processes), "--distributed-init-method", address]
    # fairseq hands torch's own DDP a device number, which it refuses for modules on a CPU
    common += ["--distributed-no-spawn", "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
    return [[*options, *common, "--distributed-rank", str(rank)] for rank in range(processes)]


@pytest.mark.slow
def test_training_in_two_processes_restarts_from_its_checkpoint(data, gold, tmp_path):
    options = [word for word in words(data, tmp_path / "ckpt", gold) if word != "--no-save"]
    train_at_once(tmp_path, *several(options, 2))
    output = train_at_once(tmp_path, *several([*options, "--max-update", "2"], 2))[0]
    assert re.search(r"Loaded checkpoint \S*checkpoint_last\.pt \(epoch \d+ @ 1 updates\)", output)
    assert torch.load(tmp_path / "ckpt/checkpoint_last.pt")["optimizer_history"][-1]["num_updates"] == 2


def test_counts_of_several_processes_are_those_of_one(data, gold, tmp_path):
    """5 batches: over 4 processes the second round has one real batch and three of the other kind."""
    one, four = (words(data, tmp_path / name, gold, "--aer-mixing", "attnres_n") for name in ("1", "4"))
    alone, first, *_ = map(figures, train_at_once(tmp_path, one, *several(four, 4))[:2])
    assert math.isfinite(float(alone["aer"]))
    assert alone["aer_sentences"] == alone["aer_sentences_gold"] == "9"
    same = [key for key in alone if "aer" in key]
    assert {key: first[key] for key in same} == {key: alone[key] for key in same}
    for key in (key for key in alone if "mixing" in key):
        assert float(first[key]) == pytest.approx(float(alone[key]), abs=2e-6)


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
