"""Sizes in a checkpoint's options are compared with the weights before fairseq builds a model of these sizes."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf

import fairseq_norm_plugin
from alignment_eval.errors import InputError
from fairseq_norm_plugin.checkpoint_sizes import MAX_POSITIONS, check_sizes
from tests.facts import facts

DEMO = Path(__file__).resolve().parents[2] / "data" / "demo"
WEIGHTS = {
    "encoder.embed_tokens.weight": torch.zeros(50, 16),
    **{f"{stack}.layers.{k}.fc1.weight": torch.zeros(24, 16) for stack in ("encoder", "decoder") for k in range(2)},
    "encoder.layers.1.fc2.weight": torch.zeros(16, 24),
}


@pytest.fixture
def changed(tmp_path):
    def make(**options):
        state = torch.load(DEMO / "checkpoint.pt", weights_only=True)
        vars(state["cfg"]["model"]).update(options)
        torch.save(state, tmp_path / "large.pt")
        return tmp_path / "large.pt"

    return make


@pytest.mark.parametrize("size", [10**7, 10**9, "1000000000"])
@pytest.mark.parametrize("option", ["max_source_positions", "encoder_layers"])
def test_a_large_size_is_refused_before_the_model_is_built(changed, monkeypatch, option, size):
    """Without the check, each step of a table of 10^7 positions takes 10 GB, and 10^9 layers are built one by one."""
    path = changed(**{option: size})
    monkeypatch.setattr("fairseq_norm_plugin.tasks.norm_mixin.NormMixin.build_model", None)
    with pytest.raises(InputError, match=facts(f"large.pt: option {option} is {size!r}: expected at most")):
        fairseq_norm_plugin.load(path, DEMO, "de", "en")
    with pytest.raises(InputError, match=facts(f"large.pt: option {option} is {size!r}: expected at most")):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))  # as fairseq-generate does


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"decoder_layers": 5}, "decoder_layers is 5: expected at most 4"),
        ({"encoder_embed_dim": 25}, "encoder_embed_dim is 25: expected at most 24"),
        ({"encoder": {"ffn_embed_dim": 2048}}, "encoder_ffn_embed_dim is 2048: expected at most 24"),
        ({"decoder": {"output_dim": "${model.x}"}, "x": 10**12}, f"decoder_output_dim is {10**12}: expected"),
        ({"max_target_positions": MAX_POSITIONS + 1}, f"max_target_positions is 131073: expected at most {2**17}"),
        ({"max_positions": float("inf")}, "max_positions is inf: expected"),
        ({"tokens_per_sample": 10**400}, "tokens_per_sample is 1000"),
    ],
    ids=str,
)
def test_each_size(options, problem):
    for model in (Namespace(**options), OmegaConf.create({"model": options}).model):
        if "x" not in options or not isinstance(model, Namespace):
            with pytest.raises(InputError, match=facts(f"c.pt: option {problem}")):
                check_sizes(model, WEIGHTS, "c.pt")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"encoder_layers": 2, "decoder_layers": "2", "encoder_embed_dim": 16, "decoder_ffn_embed_dim": 24},
        {"max_source_positions": MAX_POSITIONS, "max_positions": (1024, 1024), "tokens_per_sample": None},
        {"encoder": None, "decoder": {"embed_dim": 16, "layers": 2}, "encoder_layers_to_keep": "0,1", "x_dim": "wide"},
    ],
    ids=str,
)
def test_sizes_that_fit(options):
    check_sizes(Namespace(**options), WEIGHTS, "c.pt")
    check_sizes(OmegaConf.create(options), WEIGHTS, "c.pt")


def test_learned_positions_may_be_as_many_as_the_weights_have():
    table = {"encoder.embed_positions.weight": torch.empty(MAX_POSITIONS + 9, 1)}
    check_sizes(Namespace(max_source_positions=MAX_POSITIONS + 7), table, "c.pt")
