"""Monitoring in several processes, and under fairseq's other way to start."""

import json
import math
import os
import re
import socket
import subprocess
import sys

import pytest
import torch

from tests.integration.conftest import ROOT, training_words
from tests.integration.training.conftest import comparable


def words(data, directory, gold, *extra):
    options = ["--user-dir", ROOT / "fairseq_norm_plugin", "--aer-gold", f"test={gold}", "--aer-gold-base", 1]
    options += ["--valid-subset", "test,valid", "--batch-size-valid", 2, "--log-format", "json", "--lr", "1e-9", *extra]
    return training_words(data, directory, *options, task="translation_norm", updates=1)


def figures(printed):
    lines = [line for line in printed.splitlines() if " | test | " in line]
    return json.loads(lines[-1].rpartition(" | ")[2])


# fairseq-train once for each line of options, all at once; what each writes goes to the file that its line begins with.
# The processes are forks of one that has imported fairseq, which takes longer than the training.
TRAININGS = """
import json, os, sys
import torch._dynamo, fairseq_norm_plugin.tasks  # the first is what a training imports
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
    directory.mkdir(exist_ok=True)
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


def test_training_in_two_processes_is_stocks_bit_for_bit(data, gold, tmp_path):
    """Validation lowers the rate and ends the training, which would do 20 updates; fairseq loses sentences of it."""
    follow = ["--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.9", "--lr-threshold", "0.05", "--lr", "0.5"]
    follow += ["--patience", "2", "--max-update", "20", "--batch-size-valid", "8"]
    ours = words(data, tmp_path / "ours", gold, *follow)
    theirs = training_words(data, tmp_path / "theirs", "--valid-subset", "test,valid", "--log-format", "json", *follow)
    logs = [
        comparable(lines_of(train_at_once(tmp_path / name, *several(each, 2))[0]))
        for name, each in (("a", ours), ("b", theirs))
    ]
    assert logs[0] == logs[1]
    epochs = [line for line in logs[1] if "train_lr" in line]
    assert float(epochs[-1]["train_lr"]) < 0.5
    assert int(epochs[-1]["train_num_updates"]) < 20
    states = [torch.load(tmp_path / name / "checkpoint_last.pt")["model"] for name in ("ours", "theirs")]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


def lines_of(printed):
    """What was logged of training and validation."""
    lines = re.findall(r" \| (?:train|test|valid) \| (\{.*\})$", printed, re.MULTILINE)
    return [json.loads(line) for line in lines]


def test_counts_of_several_processes_are_those_of_one(data, gold, tmp_path):
    """6 batches: over 4 processes the second round has two real batches and two of the other kind."""
    one, four = (words(data, tmp_path / name, gold, "--aer-mixing", "attnres_n", "--no-save") for name in ("1", "4"))
    alone, first, *_ = map(figures, train_at_once(tmp_path, one, *several(four, 4))[:2])
    assert math.isfinite(float(alone["test_aer"]))
    assert alone["test_aer_sentences"] == alone["test_aer_sentences_gold"] == "12"
    same = [key for key in alone if "aer" in key]
    assert {key: first[key] for key in same} == {key: alone[key] for key in same}
    for key in (key for key in alone if "mixing" in key):
        assert float(first[key]) == pytest.approx(float(alone[key]), abs=2e-6)


def test_hydra_train(data, gold, command, tmp_path):
    overrides = [
        f"common.user_dir={ROOT / 'fairseq_norm_plugin'}", "common.cpu=true", "common.log_format=json",
        "+task._name=translation_norm", f"+task.data={data}", f"+task.aer_gold='test={gold}'",
        "+task.aer_gold_base='1'",
        "dataset.valid_subset='test,valid'", "dataset.max_tokens=400", "dataset.num_workers=0",
        "+model._name=transformer", "+model.encoder_layers=1", "+model.decoder_layers=1", "+optimizer._name=adam",
        "+model.encoder.embed_dim=16", "+model.decoder.embed_dim=16", "criterion._name=cross_entropy",
        "lr_scheduler._name=fixed", "optimization.lr=[1e-9]", "optimization.max_update=1", "checkpoint.no_save=true",
    ]  # fmt: skip
    result = command("fairseq-hydra-train", *overrides, cwd=tmp_path, check=False)
    output = result.stdout + result.stderr + "".join(path.read_text() for path in tmp_path.rglob("*.log"))
    assert result.returncode == 0, output[-3000:]
    line = next(line for line in output.splitlines() if "][test][INFO] - " in line)
    assert math.isfinite(float(json.loads(line.partition(" - ")[2])["test_aer"]))
