"""Checkpoints of every structure that released models have: loaded once, scored, aligned."""

import re
from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer import TransformerModel

import fairseq_norm_plugin
from alignment_eval.errors import InputError
from fairseq_norm_plugin.checkpoints.identity import is_unread
from tests.facts import facts

WORDS = [f"w{k}" for k in range(20)]
#: Options that the WMT releases' checkpoints hold beside those of their architecture: paths, text that fairseq
#: evaluates, names that it no longer has, values of other types than today's.
RELEASED = {
    "task": "translation", "source_lang": "de", "target_lang": "en", "data": "/private/home/edunov/wmt/bin",
    "adam_betas": "(0.9, 0.98)", "criterion": "label_smoothed_cross_entropy", "curriculum": 0, "cpu": False,
    "ddp_backend": "no_c10d", "distributed_init_method": "tcp://learnfair0492:10052", "distributed_world_size": 128,
    "fp16": True, "fp16_scale_window": None, "lazy_load": False, "raw_text": False, "left_pad_source": "True",
    "left_pad_target": "False", "lr": [0.0007], "lr_shrink": 0.1, "max_positions": 64, "max_sentences": None,
    "momentum": 0.99, "no_progress_bar": True, "optimizer": "adam", "optimizer_overrides": "{}", "relu_dropout": 0.0,
    "save_dir": "/checkpoint02/edunov/20181112", "tensorboard_logdir": "", "update_freq": [1], "upsample_primary": 16,
    "user_dir": None, "remove_bpe": "@@ ",
}  # fmt: skip
SMALL = {f"{side}_{what}": 2 for side in ("encoder", "decoder") for what in ("layers", "attention_heads")}
SMALL |= {f"{side}_{what}": 16 for side in ("encoder", "decoder") for what in ("embed_dim", "ffn_embed_dim")}
SHARED = {"share_all_embeddings": True, "share_decoder_input_output_embed": True}
#: What a structure has: architecture, options, whether its layers are in the form of old checkpoints, its type.
STRUCTURES = {
    "wmt big": ("transformer_wmt_en_de_big", {}, False, torch.float32),
    "vaswani big, joined": ("transformer_vaswani_wmt_en_de_big", SHARED, False, torch.float16),
    "decoder shared": ("transformer_wmt_en_de_big", {"share_decoder_input_output_embed": True}, False, torch.float32),
    "old": ("transformer_vaswani_wmt_en_de_big", {}, True, torch.float32),
    "old, joined, fp16": ("transformer_wmt_en_de_big", SHARED, True, torch.float16),
    "pre-norm": ("transformer_wmt_en_de_big_t2t", SHARED, False, torch.float32),
}


def old_names(weights, shared):
    """The weights as fairseq of 2018 named them: projections in one, the output as embed_out, versions."""
    for name in [name for name in weights if ".q_proj." in name]:
        parts = [weights.pop(name.replace("q_proj", f"{part}_proj")) for part in "qkv"]
        weights[re.sub(r"q_proj\.(weight|bias)", r"in_proj_\1", name)] = torch.cat(parts)
    output = weights.pop("decoder.output_projection.weight")
    if not shared:
        weights["decoder.embed_out"] = output
    for stack in ("encoder", "decoder"):
        weights[f"{stack}.version"] = torch.tensor([3.0])
        weights[f"{stack}.embed_positions._float_tensor"] = torch.zeros(1)


def save(directory, name, seed=0, file="model.pt"):
    """Write a random checkpoint of a structure and its dictionaries; returns fairseq's own model."""
    arch, options, old, dtype = STRUCTURES[name]
    torch.manual_seed(seed)
    args = Namespace(**{**RELEASED, **SMALL, **options, "arch": arch})
    dictionary = Dictionary()
    for word in WORDS:
        dictionary.add_symbol(word)
    for language in ("de", "en"):
        dictionary.save(str(directory / f"dict.{language}.txt"))
    filled = Namespace(**vars(args), max_source_positions=64, max_target_positions=64)
    ARCH_CONFIG_REGISTRY[arch](filled)
    model = TransformerModel.build_model(filled, Namespace(source_dictionary=dictionary, target_dictionary=dictionary))
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype).float()
    model.eval()
    weights = {key: value.to(dtype) for key, value in model.state_dict().items()}
    if options:  # tied tensors have one storage in a file
        for key in [key for key in weights if key.endswith(("embed_tokens.weight", "output_projection.weight"))]:
            tied = key if "share_all_embeddings" not in options else "encoder.embed_tokens.weight"
            tied = "decoder.embed_tokens.weight" if "output_projection" in key and tied == key else tied
            weights[key] = weights[tied]
    if old:
        old_names(weights, bool(options))
    kept = {"args": args, "model": weights, "best_loss": 3.1, "optimizer": None, "epoch": 7, "batch_offset": 0}
    torch.save({**kept, "val_loss": 3.2, "optimizer_history": [{"optimizer_name": "FairseqAdam", "num_updates": 9,
                "lr_scheduler_state": {"best": 3.1}, "criterion_name": "x"}]}, directory / file)  # fmt: skip
    return model


@torch.no_grad()
def scored(model, source, target):
    """Mean log probability of the target by fairseq's own model."""
    index = {word: 4 + k for k, word in enumerate(WORDS)}
    source, target = ([*(index[word] for word in side.split()), 2] for side in (source, target))
    logits, _ = model(torch.tensor([source]), torch.tensor([len(source)]), torch.tensor([[2, *target[:-1]]]))
    return float(logits[0].log_softmax(-1).gather(1, torch.tensor(target)[:, None]).mean())


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
