"""scripts/strip_checkpoint.py: the bundled file is the model that was trained, and no more; scripts/train.sh.

With --mix it is the weighted mean of a model and its continuation, and of nothing else.
"""

import json
import os
import re

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import fairseq_norm_plugin as fnp
from tests.facts import says
from tests.integration.conftest import PATH, ROOT, without_fairseqs_warnings
from tests.integration.scripts.preparing import names, run


@pytest.fixture(scope="module")
def whole(trained, tmp_path_factory):
    """A checkpoint of monitored training with tied embeddings."""
    gold = tmp_path_factory.mktemp("gold") / "gold.talp"
    gold.write_text("1-1\n" * 11)
    monitoring = ["--aer-gold", f"valid={gold}", "--aer-gold-base", "1", "--valid-subset", "valid"]
    return trained("tied", "--share-all-embeddings", *monitoring, task="translation_norm")


@pytest.fixture(scope="module")
def out(whole, tmp_path_factory):
    """What is made of it."""
    path = tmp_path_factory.mktemp("out") / "checkpoint.pt"
    done = run("strip_checkpoint.py", whole, path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def continuation(whole, tmp_path_factory):
    """The same with small changes of every parameter."""
    state = torch.load(whole, weights_only=False)
    generator = torch.Generator().manual_seed(0)
    for tensor in {tensor.data_ptr(): tensor for tensor in state["model"].values()}.values():
        if tensor.is_floating_point():
            tensor += 0.1 * tensor.norm() / tensor.numel() ** 0.5 * torch.randn(tensor.shape, generator=generator)
    path = tmp_path_factory.mktemp("continuation") / "checkpoint.pt"
    torch.save(state, path)
    return path


def parameters(path):
    """The parameters of a checkpoint; those of both embeddings are tied."""
    found = torch.load(path, weights_only=False)["model"]
    assert len({found[f"{side}.embed_tokens.weight"].data_ptr() for side in ("encoder", "decoder")}) == 1
    return found


def test_weights_are_those_that_were_trained(whole, out):
    trained, found = map(parameters, (whole, out))
    assert list(trained) == list(found)
    for name, tensor in trained.items():
        assert found[name].dtype == torch.float16
        torch.testing.assert_close(found[name], tensor.half(), rtol=0, atol=0)
    weights = {tensor.data_ptr(): 2 * tensor.numel() for tensor in found.values()}
    assert out.stat().st_size < sum(weights.values()) + 100_000
    assert list(out.parent.iterdir()) == [out]


def test_nothing_is_left_of_the_training(whole, out, data):
    state = torch.load(out, weights_only=False)
    text = repr(state["cfg"]) + repr({name: value for name, value in state.items() if name not in ("cfg", "model")})
    for word in (str(data), str(whole.parent), "gold.talp", "aer_", "norm_records", "translation_norm", "exp_avg"):
        assert word not in text
    assert state["optimizer_history"][-1]["num_updates"] == 8


def test_every_parameter_is_the_weighted_mean(whole, continuation, data, tmp_path):
    out, share = tmp_path / "mixed.pt", 0.25
    assert run("strip_checkpoint.py", whole, out, "--mix", continuation, "--share", share).returncode == 0
    first, second, found = map(parameters, (whole, continuation, out))
    assert list(found) == list(second)
    for name, tensor in found.items():
        if tensor.is_floating_point():
            mean = (1 - share) * first[name].double() + share * second[name].double()
            torch.testing.assert_close(tensor.double(), mean, rtol=2**-10, atol=1e-7)
    assert fnp.load(out, data, "xx", "yy", bpe="none").maps("ba ki", "ab ik").layer_maps("attn_n").shape[0] == 2


def test_models_that_are_no_continuation_are_refused(whole, continuation, trained, tmp_path):
    other = trained("seed2", "--share-all-embeddings", "--seed", "2", task="translation_norm")
    deeper = trained("deeper", "--share-all-embeddings", "--decoder-layers", "3", task="translation_norm")
    state = torch.load(continuation, weights_only=False)
    state["model"]["encoder.embed_tokens.weight"][0, 0] = float("nan")
    torch.save(state, tmp_path / "nan.pt")
    for model in (other, deeper, tmp_path / "nan.pt"):
        done = run("strip_checkpoint.py", whole, tmp_path / "mixed.pt", "--mix", model)
        assert (done.returncode, says(done.stderr, "cannot be mixed … further training")) == (1, True)
        assert names(tmp_path) == ["nan.pt"]


# -- scripts/train.sh and scripts/train_bf16.py


SMALL = [option for side in ("encoder", "decoder") for option in (f"--{side}-layers", 1, f"--{side}-embed-dim", 32)]
SMALL += ["--max-update", 3, "--max-tokens", 400, "--disable-validation", "--dropout", 0]


@pytest.mark.slow
def test_bfloat16_products_train_almost_alike(command, data, tmp_path):
    """The log is fairseq's own, the weights are float32 and near those of float32 products, and not the very ones."""

    def train(setting):
        words = ["bash", "scripts/train.sh", setting, data, "xx", "yy", tmp_path / setting, *SMALL]
        result = command(*words, "--log-interval", 1)
        (checkpoint,) = (tmp_path / setting).glob("*.pt")
        return result.stdout + result.stderr, torch.load(checkpoint, weights_only=False)["model"]

    log, exact = train("cpu")
    bf16_log, rounded = train("cpu-bf16")
    first, first_rounded = (
        json.loads(re.search(r"\| INFO \| train_inner \| (\{.*\})", text)[1]) for text in (log, bf16_log)
    )
    assert float(first_rounded["loss"]) == pytest.approx(float(first["loss"]), rel=2e-2)
    assert all(weight.dtype == exact[name].dtype for name, weight in rounded.items())
    weights = [name for name, weight in exact.items() if weight.ndim == 2]
    assert all(torch.allclose(rounded[name], exact[name], atol=5e-3) for name in weights)
    assert any(not torch.equal(rounded[name], exact[name]) for name in weights)


@pytest.fixture
def config(command, data, tmp_path):
    """What fairseq-train gets of train.sh; ``python`` says where the plugin is, without the wait."""
    plugin, given = ROOT / "fairseq_norm_plugin", tmp_path / "words"
    for name, line in (("fairseq-train", f'printf "%s\\n" "$@" >{given}'), ("python", f"echo {plugin}")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)

    def read(setting, *extra):
        words = ["bash", "scripts/train.sh", setting, data, "xx", "yy", tmp_path / "ckpt", *extra]
        command(*words, PATH=f"{tmp_path}{os.pathsep}{PATH}")
        words = given.read_text().splitlines()
        args = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
        with without_fairseqs_warnings():
            return convert_namespace_to_omegaconf(args)

    return read


def test_another_scheduler_takes_its_own_options(config):
    found = config("cpu", "--lr-scheduler", "triangular", "--max-lr", "0.1", "--lr", "5e-4")
    assert (found.lr_scheduler._name, found.lr_scheduler.max_lr, found.optimization.lr) == ("triangular", 0.1, [5e-4])
