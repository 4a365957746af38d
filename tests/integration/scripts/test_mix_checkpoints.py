"""scripts/strip_checkpoint.py --mix: the weighted mean of a model and its continuation, and of nothing else."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import torch

import fairseq_norm_plugin as fnp
from tests.facts import says

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def models(trained, tmp_path_factory):
    """A model with tied embeddings, and a continuation: the same with small changes of every parameter."""
    model = trained("tied", "--share-all-embeddings", task="translation_norm")
    state = torch.load(model, weights_only=False)
    generator = torch.Generator().manual_seed(0)
    for tensor in {tensor.data_ptr(): tensor for tensor in state["model"].values()}.values():
        if tensor.is_floating_point():
            tensor += 0.1 * tensor.norm() / tensor.numel() ** 0.5 * torch.randn(tensor.shape, generator=generator)
    continuation = tmp_path_factory.mktemp("continuation") / "checkpoint.pt"
    torch.save(state, continuation)
    return model, continuation


@pytest.fixture
def mix(monkeypatch):
    """Run the script in this process; its status."""

    def run(model, continuation, out, *words):
        monkeypatch.syspath_prepend(ROOT / "scripts")
        argv = ["strip_checkpoint.py", model, out, "--mix", continuation, *words]
        monkeypatch.setattr(sys, "argv", [*map(str, argv)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(ROOT / "scripts/strip_checkpoint.py"), run_name="__main__")
        return ended.value.code

    return run


def parameters(path):
    return torch.load(path, weights_only=False)["model"]


@pytest.mark.parametrize("share", [0.25, 1])
def test_every_parameter_is_the_weighted_mean(models, mix, data, tmp_path, share):
    out = tmp_path / "mixed.pt"
    assert mix(*models, out, "--share", share) == 0
    first, second = map(parameters, models)
    found = parameters(out)
    assert list(found) == list(second)
    for name, tensor in found.items():
        if tensor.is_floating_point():
            mean = (1 - share) * first[name].double() + share * second[name].double()
            torch.testing.assert_close(tensor.double(), mean, rtol=2**-10, atol=1e-7)
    tied = {found[f"{side}.embed_tokens.weight"].data_ptr() for side in ("encoder", "decoder")}
    assert len(tied) == 1
    assert fnp.load(out, data, "xx", "yy").maps("ba ki", "ab ik").layer_maps("attn_n").shape[0] == 2


def refused(mix, capsys, tmp_path, *words):
    """What is said when nothing is written."""
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    assert mix(words[0], words[1], out / "mixed.pt", *words[2:]) in (1, 2)
    assert list(out.iterdir()) == []
    return capsys.readouterr().err


def test_models_that_are_no_continuation_are_refused(models, mix, trained, capsys, tmp_path):
    other = trained("seed2", "--share-all-embeddings", "--seed", "2", task="translation_norm")
    deeper = trained("deeper", "--share-all-embeddings", "--decoder-layers", "3", task="translation_norm")
    state = torch.load(models[1], weights_only=False)
    state["model"]["encoder.embed_tokens.weight"][0, 0] = float("nan")
    torch.save(state, tmp_path / "nan.pt")
    for continuation in (other, deeper, tmp_path / "nan.pt"):
        assert says(refused(mix, capsys, tmp_path, models[0], continuation), "cannot be mixed … further training")
