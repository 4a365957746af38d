"""What identifies a run."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from fairseq_norm_plugin.output.identity import data_hash, generation_options, model_hash


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
