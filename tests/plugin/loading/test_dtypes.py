"""The type that a processor computes fastest, and models in another type for a while."""

import pytest
import torch

import fairseq_norm_plugin
from fairseq_norm_plugin.loading import dtypes
from fairseq_norm_plugin.loading.int8 import has_int8
from tests.released import save


@pytest.mark.parametrize(
    ("int8", "amx", "fastest"), [(True, True, "bfloat16"), (True, False, "int8"), (False, False, "float32")]
)
def test_the_fastest_type(monkeypatch, int8, amx, fastest):
    monkeypatch.setattr(dtypes, "has_int8", lambda: int8)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx, raising=False)
    assert dtypes.fastest_dtype() == fastest


def test_a_torch_that_does_not_tell_of_matrix_units(monkeypatch):
    monkeypatch.setattr(dtypes, "has_int8", lambda: True)
    monkeypatch.delattr(torch.cpu, "_is_amx_tile_supported", raising=False)
    assert dtypes.fastest_dtype() == "int8"


@pytest.mark.parametrize(
    ("x86", "avx512", "amx", "emulated"),
    [(True, False, False, True), (True, True, False, False), (True, False, True, False), (False, False, False, False)],
)
def test_a_type_without_instructions(monkeypatch, x86, avx512, amx, emulated):
    monkeypatch.setattr(dtypes, "has_int8", lambda: x86)
    for name, has in (("avx512_bf16", avx512), ("amx_tile", amx)):
        monkeypatch.setattr(torch.cpu, f"_is_{name}_supported", lambda has=has: has, raising=False)
    assert dtypes.is_emulated("bfloat16") == emulated
    assert not any(map(dtypes.is_emulated, ("auto", "float32", "int8")))
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert not dtypes.is_emulated("bfloat16")  # this torch does not tell


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_another_type_and_back(tmp_path, dtype):
    if dtype == "int8" and not has_int8():
        pytest.skip("torch has no products in 8 bits on this processor")
    save(tmp_path, "wmt big")
    model = fairseq_norm_plugin.load(tmp_path, bpe="none")
    pair = "w1 w2 w3", "w4 w5"
    network = model.models[0]
    exact, state = model.maps(*pair), {name: value.clone() for name, value in network.state_dict().items()}
    undo = dtypes.use_dtype(network, dtype)
    assert {parameter.dtype for parameter in network.parameters()} == {dtypes.DTYPES[dtype]}
    other = model.maps(*pair)
    assert other.score != exact.score
    assert other.score == pytest.approx(exact.score, rel=0.1)
    undo()
    again = model.maps(*pair)
    assert again.score == exact.score
    assert (again.layer_maps("attn_n") == exact.layer_maps("attn_n")).all()
    for name, value in network.state_dict().items():
        assert torch.equal(value, state[name]), name


class Positions(torch.nn.Module):
    """A table as an attribute, as fairseq 0.12.2 keeps its positions: a pass moves it to the type of the input."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(1.0))
        self.table = torch.tensor([1 / 3])

    def forward(self):
        self.table = self.table.to(self.scale)
        return self.table * self.scale


def test_tables_that_are_attributes():
    model = Positions()
    undo = dtypes.use_dtype(model, "bfloat16")
    assert model() == torch.tensor(1 / 3).bfloat16()
    undo()
    assert model() == torch.tensor(1 / 3)
