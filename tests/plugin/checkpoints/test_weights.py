"""Checkpoints of every structure that released models have: loaded once, scored, aligned."""

import numpy as np
import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.errors import InputError
from fairseq_norm_plugin.checkpoints.identity import is_unread
from tests.facts import facts
from tests.released import STRUCTURES, save, scored


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_of_released_checkpoints(tmp_path, name):
    stock = save(tmp_path, name)
    model = fairseq_norm_plugin.load(tmp_path, bpe="none")
    (mine,) = model.models
    for key, value in stock.state_dict().items():
        if is_unread(key):
            continue
        assert torch.equal(mine.state_dict()[key], value), key
    tied = [len({id(p) for p in m.parameters()}) for m in (mine, stock)]
    assert tied[0] == tied[1]
    pair = "w1 w2 w3", "w4 w5"
    assert model.maps(*pair).score == pytest.approx(scored(stock, *pair), abs=1e-5)


def test_an_ensemble(tmp_path):
    stock = [save(tmp_path, "wmt big", seed, f"model{seed + 1}.pt") for seed in range(2)]
    released = fairseq_norm_plugin.load(tmp_path, bpe="none")
    named = ":".join(str(tmp_path / f"model{k}.pt") for k in (1, 2))
    stated = fairseq_norm_plugin.load(named, tmp_path, "de", "en", bpe="none")
    maps = [model.maps("w1 w2", "w3") for model in (released, stated)]
    np.testing.assert_array_equal(*(found.layer_maps("attn_n") for found in maps))
    alone = [scored(model, "w1 w2", "w3") for model in stock]
    assert maps[0].score > min(alone)
    assert released.forward.profile == tmp_path / "model1.pt+1.align.json"
    assert len(released.models) == 2


def test_parts_of_one_model(tmp_path):
    stock = save(tmp_path, "wmt big")
    state = torch.load(tmp_path / "model.pt", weights_only=True)
    names = list(state["model"])
    (tmp_path / "model.pt").unlink()
    for number, half in enumerate((names[::2], names[1::2])):
        part = {**state, "model": {name: state["model"][name] for name in half}}
        torch.save(part, tmp_path / f"model-shard{number}.pt")
    model = fairseq_norm_plugin.load(tmp_path, bpe="none")
    assert model.maps("w1", "w2").score == pytest.approx(scored(stock, "w1", "w2"), abs=1e-5)
    (tmp_path / "model-shard1.pt").unlink()
    with pytest.raises(InputError, match=facts("model-shard0.pt: its parameters do not fit")):
        fairseq_norm_plugin.load(tmp_path, bpe="none")
    name = names[0]
    state["model"] = {name: state["model"][name] + 1}
    torch.save(state, tmp_path / "model-shard1.pt")
    with pytest.raises(InputError, match=facts(f"model-shard1.pt: has a part of {name}")):
        fairseq_norm_plugin.load(tmp_path, bpe="none")
    torch.save({**state, "model": {"flat_param_0": torch.zeros(3)}}, tmp_path / "model-shard1.pt")
    with pytest.raises(InputError, match=r"flat_param_0, parameters as FSDP cuts them"):
        fairseq_norm_plugin.load(tmp_path, bpe="none")


def test_another_type(tmp_path):
    """A profile of the checkpoint serves all types, whose maps are nearly the same."""
    save(tmp_path, "wmt big")
    whole, other = (fairseq_norm_plugin.load(tmp_path, bpe="none", dtype=name) for name in ("float32", "bfloat16"))
    assert {p.dtype for p in other.models[0].parameters()} == {torch.bfloat16}
    assert (other.forward.profile, other.identity) == (whole.forward.profile, whole.identity)
    maps = [model.maps("w1 w2 w3", "w4 w5").layer_maps("attn_n") for model in (whole, other)]
    assert maps[1].dtype == np.float32
    assert not np.array_equal(*maps)
    np.testing.assert_allclose(*maps, atol=0.05)
