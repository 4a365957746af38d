"""What identifies a run."""

from types import SimpleNamespace

import torch

from fairseq_norm_plugin.checkpoints.identity import ParameterHash, architecture_hash, data_hash, model_hash
from fairseq_norm_plugin.hooks.mixin import generation_options


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
