"""Marian models into fairseq: states, logits, translations and maps are those of Transformers."""

from __future__ import annotations

import argparse
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

import fairseq_norm_plugin
from fairseq_norm_plugin.convert.cli import main
from tests import marian

pytest.importorskip("safetensors")

#: Small models of every form; the first is that of OPUS-MT.
SMALL = {
    "tied": {},
    "relu, own vocabulary for each side": {
        "activation_function": "relu",
        "share_encoder_decoder_embeddings": False,
        "decoder_vocab_size": 30,
        "pad_token_id": 2,
        "decoder_start_token_id": 2,
    },
    "gelu, untied, not scaled": {
        "activation_function": "gelu",
        "tie_word_embeddings": False,
        "scale_embedding": False,
    },
}
#: The shape of OPUS-MT's base models, and a tiny one.
REAL = {
    "tiny, relu, untied": {"size": 32001, "width": 256, "layers": (6, 2), "heads": 8, "inner": 1536},
    "base": {"size": 58101, "width": 512, "layers": (6, 6), "heads": 8, "inner": 2048},
}
#: The longest translation, in tokens without </s>.
LONGEST = 20
SIZES = ("vocab_size", "decoder_vocab_size")


def transformers(name):
    """A class of the package, without torchaudio, which fairseq installs and which may be of another torch build."""
    modules: Any = sys.modules
    known = modules.pop("torchaudio", None)
    modules["torchaudio"] = None  # Python then says that there is none
    try:
        return getattr(pytest.importorskip("transformers"), name)
    finally:
        del modules["torchaudio"]
        if known is not None:
            modules["torchaudio"] = known


def both(directory, config):
    """A random model in Transformers, and its conversion in fairseq, with the id in fairseq of each of Marian's."""
    marian.save(directory / "model", config)
    assert main(["translation", str(directory / "model"), str(directory / "out")]) == 0
    ours = fairseq_norm_plugin.load(directory / "out" / "checkpoint.pt", directory / "out", "de", "en")
    reference = transformers("MarianMTModel").from_pretrained(directory / "model", attn_implementation="eager").eval()
    ids = []
    for size, dictionary in zip(SIZES, (ours.task.source_dictionary, ours.task.target_dictionary)):
        tokens = marian.vocabulary(config[size], config["pad_token_id"])
        ids.append(torch.tensor([dictionary.index(token) for token in tokens]))
    return SimpleNamespace(ours=ours, reference=reference, ids=ids, config=config)


@pytest.fixture(scope="module", params=SMALL)
def models(request, tmp_path_factory):
    return both(tmp_path_factory.mktemp("marian"), marian.config(**SMALL[request.param]))


def sentences(config, size, count, longest):
    """Random sentences in Marian's ids, with </s> and without <pad>."""
    generator = torch.Generator().manual_seed(config[size])
    lengths = torch.randint(1, longest + 1, (count,), generator=generator).tolist()
    rows = (torch.randint(1, config[size] - 1, (n,), generator=generator) for n in lengths)
    return [torch.cat([row + (row >= config["pad_token_id"]), torch.tensor([0])]) for row in rows]


def batches(models, count, longest=12, size=20):
    """Batches of sentence pairs in Marian's ids, padded on the right: sources, and inputs of the decoder."""
    sources, targets = (sentences(models.config, name, count, longest) for name in SIZES)
    start = torch.tensor([models.config["decoder_start_token_id"]])
    inputs = [torch.cat([start, target[:-1]]) for target in targets]
    for first in range(0, count, size):
        yield (
            pad_sequence(sources[first : first + size], batch_first=True, padding_value=models.config["pad_token_id"]),
            pad_sequence(inputs[first : first + size], batch_first=True, padding_value=int(start)),
        )


def fairseq_source(models, source):
    """The sources of a batch as fairseq makes them: in its ids, padded on the left."""
    rows = [models.ids[0][row[row != models.config["pad_token_id"]]] for row in source]
    return pad_sequence(rows, batch_first=True, padding_value=1, padding_side="left")


def fairseq_inputs(models, inputs):
    """The inputs of fairseq's decoder, which begin with </s>."""
    result = models.ids[1][inputs]
    result[:, 0] = models.ours.task.target_dictionary.eos()
    return result


@torch.no_grad()
def differences(models, source, inputs):
    """The largest difference of encoder states, decoder states and logits of a batch, where there is no padding."""
    real = source != models.config["pad_token_id"]
    expected = models.reference(
        input_ids=source, attention_mask=real.long(), decoder_input_ids=inputs, output_hidden_states=True
    )
    src_tokens, inputs = fairseq_source(models, source), fairseq_inputs(models, inputs)
    model = models.ours.models[0]
    encoded = model.encoder(src_tokens, return_all_hiddens=True)
    logits, extra = model.decoder(inputs, encoder_out=encoded)
    on_left = src_tokens != 1
    rows = inputs != 1
    found = {
        "encoder": zip(encoded["encoder_states"], expected.encoder_hidden_states, [(on_left, real)] * 99),
        "decoder": zip(extra["inner_states"], expected.decoder_hidden_states, [(rows, rows)] * 99),
    }
    result = {
        name: max(float((a.transpose(0, 1)[mask] - b[other]).abs().max()) for a, b, (mask, other) in states)
        for name, states in found.items()
    }
    result["logits"] = float((logits[..., models.ids[1]] - expected.logits)[rows].abs().max())
    return result


class ForceEnd:
    """Forces </s> at the longest length as fairseq does; Transformers' own way gives it the log probability 0."""

    def __call__(self, tokens, scores):
        if tokens.size(1) > LONGEST:
            scores[:, 1:] = -torch.inf
        return scores


@torch.no_grad()
def translations(models, source):
    """The best translations of a batch by Transformers and by fairseq, with a beam of 5, in fairseq's ids."""
    real = source != models.config["pad_token_id"]
    start = models.config["decoder_start_token_id"]
    expected = models.reference.generate(
        input_ids=source, attention_mask=real.long(), num_beams=5, max_new_tokens=LONGEST + 1, min_new_tokens=5,
        do_sample=False, early_stopping=True, bad_words_ids=[[start]], forced_eos_token_id=None, max_length=None,
        pad_token_id=start, eos_token_id=0, decoder_start_token_id=start,
        logits_processor=[ForceEnd()],
    )  # fmt: skip
    src_tokens = fairseq_source(models, source)
    options = argparse.Namespace(beam=5, max_len_b=LONGEST, min_len=5)
    generator = models.ours.task.build_generator(models.ours.models, options)
    found = generator.generate(models.ours.models, {"net_input": {"src_tokens": src_tokens}})
    rows = [models.ids[1][row[1:]].tolist() for row in expected]
    return [row[: row.index(2) + 1] for row in rows], [nbest[0]["tokens"].tolist() for nbest in found]


def test_states_and_logits_are_equal(models):
    for source, inputs in batches(models, 40):
        found = differences(models, source, inputs)
        assert max(found.values()) < 1e-5, found


def test_beam_search_gives_the_same_translations(models):
    different = set()
    for source, _ in batches(models, 20):
        expected, found = translations(models, source)
        assert found == expected
        different.update(map(tuple, found))
    assert len(different) > 1


def reference_maps(reference, source, inputs):
    """attn_w and attn_n [L, T, S] of one pair, by the definition, from the modules of Transformers."""
    output = reference.model(input_ids=source[None], decoder_input_ids=inputs[None], output_attentions=True)
    maps = []
    for layer, alpha in zip(reference.model.decoder.layers, output.cross_attentions):
        attention = layer.encoder_attn
        values = attention.v_proj(output.encoder_last_hidden_state[0]).unflatten(-1, (attention.num_heads, -1))
        weights = attention.out_proj.weight.unflatten(-1, (attention.num_heads, -1))  # [D, H, d]
        transformed = torch.einsum("shd,ehd->hse", values, weights)
        norms = torch.einsum("hts,hse->tse", alpha[0], transformed).norm(dim=-1)
        maps.append((alpha[0].mean(0), norms))
    return [torch.stack(kind) for kind in zip(*maps)]


@torch.no_grad()
def differences_of_maps(models, count, longest=12):
    """The largest difference of the maps from those in float64: absolute of attn_w, relative to the norm of attn_n."""
    reference = models.reference.double()
    result = {"attn_w": 0.0, "attn_n": 0.0}
    for source, inputs in batches(models, count, longest, size=1):
        ids = models.ids[0][source[0]].tolist(), models.ids[1][inputs[0, 1:]].tolist()
        maps = models.ours.maps(*ids, kinds=["attn_w", "attn_n"])
        for kind, expected in zip(result, reference_maps(reference, source[0], inputs[0])):
            difference = (torch.tensor(maps.layer_maps(kind)).double() - expected).abs()
            if kind == "attn_n":
                difference /= expected.amax(dim=-1, keepdim=True)
            result[kind] = max(result[kind], float(difference.max()))
    reference.float()
    return result


def test_maps_are_equal(models):
    found = differences_of_maps(models, 6)
    assert max(found.values()) < 1e-5, found


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_shapes(name, tmp_path):
    """The figures of docs/models.md."""
    shape = dict(REAL[name])
    heads, inner = shape.pop("heads"), shape.pop("inner")
    options = {
        f"{stack}_{key}": n
        for stack in ("encoder", "decoder")
        for key, n in (("attention_heads", heads), ("ffn_dim", inner))
    }
    options["activation_function"] = "relu" if "relu" in name else "swish"
    options["tie_word_embeddings"] = "untied" not in name
    models = both(tmp_path, marian.config(**shape, **options))
    found = dict.fromkeys(("encoder", "decoder", "logits"), 0.0)
    equal, different = 0, set()
    for source, inputs in batches(models, 200, longest=30):
        found = {key: max(found[key], value) for key, value in differences(models, source, inputs).items()}
        expected, translated = translations(models, source)
        equal += sum(a == b for a, b in zip(expected, translated))
        different.update(map(tuple, translated))
    found.update(differences_of_maps(models, 50, longest=30))
    print(f"\n{name}: {found}; {equal} of 200 translations equal, {len(different)} different ones")
    assert max(found.values()) < 1e-5
    assert equal == 200
