"""Damaged files of a model, as tests/integration/test_fuzz_readers.py: used, or refused in one sentence.

Checkpoints are right archives whose content is changed; they are read up to the place where the model is built, and a
few are built.
"""

from __future__ import annotations

import copy
import random
import warnings
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.errors import InputError
from fairseq_norm_plugin.api import loading
from fairseq_norm_plugin.checkpoint_sizes import check_sizes
from fairseq_norm_plugin.loading.weights import read_parts
from fairseq_norm_plugin.pipeline.codes import read_bpe
from tests.integration.test_fuzz_readers import CASES, FIRST, VALUES, check_message, damaged_bytes, damaged_values

DEMO = Path(__file__).resolve().parents[2] / "data" / "demo"
WORDS = 12
#: Values that a checkpoint may hold in the place of others.
FOUND = [
    *(*VALUES, "${model.encoder_layers}", "${x}", "${oc.env:HOME}", "???", "[1]", "None", "True", (), (1, "a")),
    *(float("nan"), float("inf"), np.float64(2), Namespace(), Namespace(_name="transformer"), 10**7, "transformer"),
    *(
        torch.zeros(0),
        torch.zeros(()),
        torch.ones(3, dtype=torch.int64),
        torch.zeros(1, 2, 3),
        {1: 2},
        {"_name": "gpt2"},
    ),
    *(
        "moses",
        "fastbpe",
        {"_name": "gpt2"},
        {"_name": "fastbpe", "bpe_codes": "/x/y.codes"},
        "translation_multi_simple_epoch",
    ),
]


class BuiltError(OSError):
    """The model would be built now."""


@pytest.fixture(scope="module")
def demo():
    """The demo's checkpoint with parameters that are all 0 and have few words; its options in dictionaries."""
    state = torch.load(DEMO / "checkpoint.pt", weights_only=True)
    words = len(state["model"]["encoder.embed_tokens.weight"])
    shapes = {name: [WORDS + 4 if n == words else n for n in tensor.shape] for name, tensor in state["model"].items()}
    weights = {name: torch.zeros(1).expand(shape) for name, shape in shapes.items()}
    cfg = {name: section for name, section in state["cfg"].items() if name in ("task", "model", "bpe", "tokenizer")}
    cfg["model"] = vars(cfg["model"])
    return {**state, "model": weights, "cfg": cfg}


def dictionaries(directory):
    """Two files with the first words of the demo's dictionary; returns their content."""
    lines = (DEMO / "dict.de.txt").read_bytes().splitlines(keepends=True)
    for name in ("dict.de.txt", "dict.en.txt"):
        (directory / name).write_bytes(b"".join(lines[:WORDS]))
    return b"".join(lines[:WORDS])


def damaged_checkpoint(rng, state):
    """The content of a checkpoint with one to two changes in its whole or in a section."""
    state = copy.copy(state)
    state["cfg"] = {**state["cfg"]}
    place = rng.choice(("", "model", "cfg", "task", "arch", "bpe"))
    if place == "":
        state = damaged_values(rng, state, FOUND)
    elif place in ("model", "cfg"):
        state[place] = damaged_values(rng, state[place], FOUND)
    else:
        name = "model" if place == "arch" else place
        state["cfg"][name] = damaged_values(rng, state["cfg"][name], FOUND)
    cfg = state.get("cfg") if isinstance(state, dict) else None
    if isinstance(cfg, dict) and isinstance(cfg.get("model"), dict) and all(map(str.isidentifier, cfg["model"])):
        cfg["model"] = Namespace(**cfg["model"])
        if rng.random() < 0.1:  # as fairseq before version 1
            state["args"], state["cfg"] = cfg["model"], None
    return state


def tried(name, number, read):
    """Whether a file is refused; the only exception is InputError."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            read()
        except BuiltError:
            return False
        except InputError as error:
            check_message(error)
            return True
        except BaseException as error:
            raise AssertionError(f"{name}, case {number}: {type(error).__name__}: {error}") from error
    return False


def each(name, read, write, cases=CASES):
    refused = 0
    for number in range(FIRST, FIRST + cases):
        write(random.Random(f"{name} {number}"))
        refused += tried(name, number, read)
    print(f"{name}: {cases} cases, {refused} refused")


@pytest.mark.parametrize("counts", [False, True], ids=["subword-nmt", "fastBPE"])
def test_damaged_codes(tmp_path, counts):
    pairs = ["w o", "r d</w>", "wo rd</w>", "ä</w> b", "1 2</w>"]
    lines = [f"{pair} {9 - k}" if counts else pair for k, pair in enumerate(pairs)]
    data = "\n".join(([] if counts else ["#version: 0.2"]) + lines).encode() + b"\n"
    path = tmp_path / "codes"
    each(
        f"codes {counts}",
        lambda: read_bpe(path).segment_tokens(["w1", "word", "ä"]),
        lambda rng: path.write_bytes(damaged_bytes(rng, data)),
    )


def test_damaged_dictionaries(tmp_path, demo, monkeypatch):
    """With the model's other files, up to the place where sentences could be read."""
    torch.save(demo, tmp_path / "c.pt")
    state = read_parts([tmp_path / "c.pt"])
    monkeypatch.setattr(loading, "read_parts", lambda paths: dict(state))
    monkeypatch.setattr(loading, "build_model", lambda *args: torch.nn.Linear(1, 1))
    for name in ("Direction", "NormModel"):
        monkeypatch.setattr(loading, name, lambda *args: None)
    monkeypatch.setattr(loading, "_warn_of_languages", lambda model: None)
    data = dictionaries(tmp_path)
    each(
        "dictionary",
        lambda: fairseq_norm_plugin.load(tmp_path / "c.pt", tmp_path, "de", "en"),
        lambda rng: (tmp_path / "dict.en.txt").write_bytes(damaged_bytes(rng, data)),
    )


def unbuilt(task, state, name, dtype):
    """Nothing is built: a load ends here."""
    check_sizes(state["cfg"].model, state["model"], name)
    raise BuiltError


@pytest.mark.parametrize(("what", "share"), [("content", 1), ("whole", 0.04)])
def test_damaged_checkpoints(tmp_path, demo, monkeypatch, what, share):
    path = tmp_path / "c.pt"
    dictionaries(tmp_path)
    if what == "content":
        monkeypatch.setattr(loading, "build_model", unbuilt)
    each(
        f"checkpoint {what}",
        lambda: fairseq_norm_plugin.load(path, tmp_path, "de", "en"),
        lambda rng: torch.save(damaged_checkpoint(rng, demo), path),
        max(1, int(CASES * share)),
    )
