"""A checkpoint that would run code: every way in reads it with the plugin's reader first."""

import shutil
from pathlib import Path

import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.errors import InputError
from tests.demo import DEMO


class Hostile:
    def __init__(self, victim):
        self.victim = victim

    def __reduce__(self):
        return (Path.touch, (self.victim,))


def test_no_way_in_runs_it(tmp_path, program, command, monkeypatch):
    """Neither Python nor fairseq's commands."""
    shutil.copytree(DEMO, tmp_path / "model")
    path, victim = tmp_path / "model" / "checkpoint.pt", tmp_path / "victim"
    state = torch.load(path, weights_only=True)
    torch.save({**state, "extra_state": {"hook": Hostile(victim)}}, path)
    text = ["--testpref", DEMO / "demo", "--validpref", DEMO / "demo", "--destdir", tmp_path / "bin"]
    dictionaries = ["--srcdict", DEMO / "dict.de.txt", "--tgtdict", DEMO / "dict.en.txt"]
    program("fairseq-preprocess", "-s", "de", "-t", "en", *text, *dictionaries)
    # fairseq's newer main branch asks torch to run what a checkpoint holds; so does this variable, for every fairseq
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(InputError, match=r"checkpoint\.pt: the file holds .* could run code"):
        fairseq_norm_plugin.load(path)
    words = ["--user-dir", "fairseq_norm_plugin", "--task", "translation_norm", "--cpu"]
    result = command("fairseq-generate", tmp_path / "bin", "--path", path, *words, check=False)
    assert result.returncode == 1
    assert "checkpoint.pt: the file holds" in result.stderr
    assert not victim.exists()
    torch.load(path, weights_only=False)
    assert victim.exists()  # the file is hostile indeed
