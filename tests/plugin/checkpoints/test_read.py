"""Checkpoints cannot run code, and what fairseq writes loads; what identifies a run."""

import argparse
import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils

import fairseq_norm_plugin.tasks  # noqa: F401  # admits the safe types
from alignment_eval.errors import InputError
from fairseq_norm_plugin.checkpoints.identity import ParameterHash, architecture_hash, data_hash, model_hash
from fairseq_norm_plugin.hooks.mixin import generation_options

HISTORY = {
    "extra_state": {"train_iterator": {"epoch": 1}},
    "optimizer_history": [
        {"optimizer_name": "Adam", "lr_scheduler_state": {}, "num_updates": 1, "criterion_name": "c"}
    ],
}


def save(path, **extra):
    state = {
        "args": None,
        "cfg": {"model": argparse.Namespace(arch="transformer")},
        "model": {"w": torch.zeros(1)},
        **extra,
    }
    torch.save(state, path)
    return str(path)


def test_namespaces_and_numpy_scalars_load(tmp_path):
    scalars = {"best": np.float64(3.5), "val_loss": np.float32(2.5), "train_iterator": {"epoch": np.int64(4)}}
    path = save(tmp_path / "c.pt", **{**HISTORY, "extra_state": scalars})
    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    assert state["cfg"]["model"].arch == "transformer"
    assert state["extra_state"]["best"] == 3.5


def test_second_copies_of_encoder_parameters_are_dropped(tmp_path, build):
    """fairseq 0.12.2 saves them; and the hash leaves out its uninitialised memory."""
    kept = ["encoder.layers.0.fc1.weight", "encoder.layers.0.self_attn.out_proj.bias", "decoder.layers.0.fc1.bias"]
    names = ("in_proj", "out_proj", "fc1", "fc2")
    copies = [f"encoder.layers.0.{name}_{kind}" for name in names for kind in ("weight", "bias")]
    path = save(tmp_path / "c.pt", model={name: torch.zeros(1) for name in kept + copies}, **HISTORY)
    assert list(checkpoint_utils.load_checkpoint_to_cpu(path)["model"]) == kept
    models = [build(), build()]
    for number, model in enumerate(models):
        model.encoder.embed_positions.register_buffer("_float_tensor", torch.tensor([float(number)]))
    assert model_hash(models[:1]) == model_hash(models[1:])


def test_a_flipped_bit_is_seen(tmp_path):
    """torch itself does not compare the checksums of the archive."""
    path = Path(save(tmp_path / "c.pt", model={"w": torch.ones(1000)}))
    content = bytearray(path.read_bytes())
    at = content.index(torch.ones(8).numpy().tobytes())
    content[at + 2000] ^= 1
    path.write_bytes(bytes(content))
    assert not torch.load(path, weights_only=True)["model"]["w"].eq(1).all()
    with pytest.raises(InputError, match=r"c\.pt: the file is damaged \(wrong checksum of .*data/0\)"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))


NAMED = {"model": argparse.Namespace(arch="transformer"), "task": {"_name": "translation"}}


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"model": [torch.zeros(1)]}, "no weights"),
        ({"model": {"w": 3}}, "weight 'w' is not a named tensor"),
        ({"model": {"\x1b" * 999: None}}, r"weight '\\x1b"),
        ({"model": {"w": torch.zeros(1)}, "cfg": None, "args": None}, "no options of a model"),
        ({"model": {"w": torch.zeros(1)}, "cfg": NAMED}, "not a checkpoint .KeyError"),
        (b"#version: 0.2\ne n</w>\n", "not a checkpoint.* expected a file that fairseq-train"),
        (b"", "incomplete"),
        (b"PK\x03\x04" + bytes(100), "incomplete"),
        (pickle.dumps("text", protocol=2), "not a checkpoint"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_something_else(tmp_path, state, problem):
    path = tmp_path / "c.pt"
    if isinstance(state, bytes):
        path.write_bytes(state)
    else:
        torch.save(state, path)
    with pytest.raises(InputError, match=rf"c\.pt: .*{problem}") as error:
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 450
    assert "weights_only" not in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None  # nor a traceback that says so


def test_hashes_see_what_changes(tmp_path, build):
    model, other = build(seed=1), build(seed=1)
    assert model_hash([model]) == model_hash([other])
    with torch.no_grad():
        other.decoder.layers[0].fc1.bias[0] += 1e-3
    assert model_hash([model]) != model_hash([other])
    assert model_hash([model.half()]) != model_hash([build(seed=1)])
    for name in ("test.de-en.de.bin", "dict.de.txt", "train.de-en.de.bin"):
        (tmp_path / name).write_text("a")
    before = data_hash(str(tmp_path), "test", ("de", "en"))
    (tmp_path / "train.de-en.de.bin").write_text("b")
    assert data_hash(str(tmp_path), "test", ("de", "en")) == before
    assert data_hash(str(tmp_path), "test", ("en", "de")) == before  # the direction stands in the signature by itself
    (tmp_path / "test.de-en.de.bin").write_text("b")
    assert data_hash(str(tmp_path), "test", ("de", "en")) != before


def test_printing_belongs_to_no_signature():
    first = SimpleNamespace(beam=5, print_alignment="hard", lenpen=1.0)
    second = SimpleNamespace(beam=5, print_alignment=None, lenpen=1.0)
    assert generation_options(first) == generation_options(second) == {"beam": 5, "lenpen": 1.0}


def test_what_changes_a_number_is_architecture_and_paths_and_training_are_not(build):
    options = {"dropout": 0.4, "encoder_layerdrop": 0.1, "max_source_positions": 99, "save_dir": "x", "lr": [3]}
    model = build()
    expected = architecture_hash([model])
    assert architecture_hash([build(seed=5, **options)]) == expected
    model.train()
    model.eval()
    model.prepare_for_inference_(
        SimpleNamespace(generation=SimpleNamespace(no_beamable_mm=False, print_alignment=None))
    )
    model.half()
    assert architecture_hash([model]) == expected
    assert architecture_hash([build(decoder_attention_heads=2)]) != expected
    assert architecture_hash([build(no_scale_embedding=True)]) != expected
    assert architecture_hash([build(), build()]) != expected
    model.decoder.layers[0].final_layer_norm.eps = 1e-12
    assert architecture_hash([model]) != expected


def test_the_hash_of_what_was_read_is_that_of_float32(build):
    stored, read = build(), ParameterHash(torch.float32)
    for model in (build(seed=3), build(seed=4)):
        read.watch(model)
        model.load_state_dict(stored.state_dict())
        model.bfloat16()
    assert read.whole == model_hash([stored, stored])
