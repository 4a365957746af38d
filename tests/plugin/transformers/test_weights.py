"""Weights in one file or in parts, safetensors or a .bin that cannot run code."""

import json

import pytest
import torch

from alignment_eval.errors import InputError
from fairseq_norm_plugin.transformers.files import read_weights
from tests.facts import facts

safetensors = pytest.importorskip("safetensors.torch")
TENSORS = {"a": torch.ones(2, 3), "b": torch.zeros(4).half()}
WHOLE = {"safetensors": "model.safetensors", "bin": "pytorch_model.bin"}


def in_parts(directory, save, ending):
    names = {"a": f"model-1-of-2.{ending}", "b": f"model-2-of-2.{ending}"}
    for name, file in names.items():
        save({name: TENSORS[name]}, directory / file)
    (directory / f"{WHOLE[ending]}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))


@pytest.mark.parametrize(("save", "ending"), [(safetensors.save_file, "safetensors"), (torch.save, "bin")])
def test_one_file_or_parts(tmp_path, save, ending):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    save(TENSORS, whole / WHOLE[ending])
    in_parts(parts, save, ending)
    for directory in (whole, parts):
        found = read_weights(directory)
        assert found.keys() == TENSORS.keys()
        assert {name: stored.dtype for name, stored in found.items()} == {"a": torch.float32, "b": torch.float16}
        assert all(torch.equal(found[name], tensor) for name, tensor in TENSORS.items())


def test_a_part_is_missing_or_another_one(tmp_path):
    in_parts(tmp_path, safetensors.save_file, "safetensors")
    safetensors.save_file({"c": torch.ones(1)}, tmp_path / "model-2-of-2.safetensors")
    with pytest.raises(InputError, match=facts("model-2-of-2.safetensors: … no b … index.json")):
        read_weights(tmp_path)
    (tmp_path / "model-2-of-2.safetensors").unlink()
    with pytest.raises(InputError, match=facts("model-2-of-2.safetensors: no such file … index.json")):
        read_weights(tmp_path)


def test_parts_are_read_in_the_directory_only(tmp_path):
    torch.save(TENSORS, tmp_path / "secret.bin")
    (tmp_path / "model").mkdir()
    index = tmp_path / "model" / "pytorch_model.bin.index.json"
    index.write_text('{"weight_map": {"a": "../secret.bin"}}')
    with pytest.raises(InputError, match=facts("model/secret.bin: no such file")):
        read_weights(tmp_path / "model")
    index.write_text('{"weight_map": {"a": 1}}')
    with pytest.raises(InputError, match=facts("index.json: … weight_map")):
        read_weights(tmp_path / "model")


class Code:
    def __reduce__(self):
        return print, ("this file ran code",)


def test_a_bin_cannot_run_code(tmp_path, capsys):
    torch.save({"a": Code()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=facts("pytorch_model.bin: the file holds … could run code")) as caught:
        read_weights(tmp_path)
    assert "weights_only=False" not in str(caught.value)
    assert capsys.readouterr().out == ""


def test_files_that_are_no_weights(tmp_path):
    with pytest.raises(InputError, match=facts("neither model.safetensors nor pytorch_model.bin")):
        read_weights(tmp_path)
    torch.save({"model": {}}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=facts("pytorch_model.bin: … more than named tensors")):
        read_weights(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(InputError, match=facts("model.safetensors: damaged")):
        read_weights(tmp_path)
