"""What PyPI's fairseq 0.12.2 does otherwise than its main branch: what it saves of the encoder."""

from __future__ import annotations

import argparse

import torch
from fairseq import checkpoint_utils

import fairseq_norm_plugin  # noqa: F401  # wraps the loading of checkpoints
from fairseq_norm_plugin.recording.identity import model_hash


def test_its_second_copies_of_encoder_parameters_are_dropped(tmp_path):
    kept = ["encoder.layers.0.fc1.weight", "encoder.layers.0.self_attn.out_proj.bias", "decoder.layers.0.fc1.bias"]
    copies = [
        f"encoder.layers.0.{name}_{kind}"
        for name in ("in_proj", "out_proj", "fc1", "fc2")
        for kind in ("weight", "bias")
    ]
    state = {
        "args": None,
        "cfg": {"model": argparse.Namespace(arch="transformer")},
        "model": {name: torch.zeros(1) for name in kept + copies},
        "extra_state": {"train_iterator": {"epoch": 1}},
        "optimizer_history": [
            {"optimizer_name": "Adam", "lr_scheduler_state": {}, "num_updates": 1, "criterion_name": "c"}
        ],
    }
    torch.save(state, tmp_path / "c.pt")
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "c.pt"))
    assert list(state["model"]) == kept


def test_the_hash_leaves_out_uninitialised_memory(build):
    first, second = build(), build()
    first.encoder.embed_positions.register_buffer("_float_tensor", torch.tensor([1.0]))
    second.encoder.embed_positions.register_buffer("_float_tensor", torch.tensor([2.0]))
    assert model_hash([first]) == model_hash([second])
    with torch.no_grad():
        next(second.parameters()).add_(1)
    assert model_hash([first]) != model_hash([second])
