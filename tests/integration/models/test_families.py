"""Models of each family, read from Transformers' files: states, logits, translations and maps are Transformers'."""

import argparse
import json
import sys
from types import SimpleNamespace

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

import fairseq_norm_plugin
from tests.families import KINDS, save, transformers

pytest.importorskip("safetensors")

OWN_VOCABULARIES = {"share_encoder_decoder_embeddings": False, "activation_function": "relu"}
#: Shapes that are run by hand: the proportions of the released models, and others than fairseq's usual ones.
BASE = {
    "width": 256,
    "layers": (12, 12),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 16),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 1024),
}
OPUS = {**BASE, "layers": (6, 6), **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 8)}
ODD = {
    "width": 48,
    "layers": (1, 4),
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 70,
    "activation_function": "gelu",
    "scale_embedding": False,
    "tie_word_embeddings": False,
}
#: Options of a small model; a shape of SLOW has the figures of docs/models.md.
SMALL = {name: {} for name in KINDS} | {
    "marian": {"activation_function": "swish"},
    "fsmt": {"tie_word_embeddings": True},
}
SLOW = [
    *((name, OPUS if name in ("marian", "fsmt") else BASE) for name in KINDS),
    *((name, ODD) for name in KINDS),
    ("marian", OWN_VOCABULARIES),
    ("mbart", {"activation_function": "relu"}),
]
#: The longest translation, in tokens without </s>.
LONGEST = 20


def both(directory, name, **options):
    """A random model in Transformers and in fairseq, with the id in fairseq of each of Transformers'."""
    save(directory, name, **options)
    source, target = KINDS[name][2]
    ours = fairseq_norm_plugin.load(directory, source_lang=source, target_lang=target)
    reference = transformers(KINDS[name][1]).from_pretrained(directory, attn_implementation="eager").eval()
    config = reference.config
    if name == "fsmt":  # its own function fails in float64
        vars(sys.modules[type(reference).__module__])["fill_with_neg_inf"] = lambda mask: mask.fill_(-1e9)
    ids, plain = [], []
    for vocabulary, file in zip(ours.vocabularies, ("vocab.json", "target_vocab.json")):
        dictionary = vocabulary.dictionary
        known = directory / (file if (directory / file).exists() else "vocab.json")
        numbers = list(range(len(dictionary)))
        if name == "marian":
            numbers = [dictionary.index(token) for token in json.loads(known.read_text(encoding="utf-8"))]
        ids.append(torch.tensor(numbers))
        plain.append([k for k, n in enumerate(numbers) if n > 3 and n not in vocabulary.specials])
    tags = [ours.forward.special_tokens.around(which)[0] for which in (0, 1)]
    return SimpleNamespace(ours=ours, reference=reference, ids=ids, plain=plain, tags=tags, config=config)


def batches(models, count, longest=12, size=20):
    """Batches of sentence pairs in Transformers' ids, padded on the right: sources, and inputs of the decoder."""
    config, generator = models.config, torch.Generator().manual_seed(count)
    before = models.tags[0], (config.decoder_start_token_id, *models.tags[1])
    sides = []
    for plain, first, last in zip(models.plain, before, ([config.eos_token_id], [])):
        lengths = torch.randint(1, longest + 1, (count,), generator=generator).tolist()
        rows = (torch.tensor(plain)[torch.randint(0, len(plain), (n,), generator=generator)] for n in lengths)
        sides.append([torch.tensor([*first, *row.tolist(), *last]) for row in rows])
    for begin in range(0, count, size):
        part = slice(begin, begin + size)
        yield tuple(pad_sequence(rows[part], batch_first=True, padding_value=config.pad_token_id) for rows in sides)


def fairseq_source(models, source):
    """The sources of a batch as fairseq makes them: in its ids, padded on the left."""
    rows = [models.ids[0][row[row != models.config.pad_token_id]] for row in source]
    return pad_sequence(rows, batch_first=True, padding_value=1, padding_side="left")


@torch.no_grad()
def difference_of_logits(models, source, inputs):
    """The largest difference of the logits of a batch, where there is no padding."""
    mask = (source != models.config.pad_token_id).long()
    expected = models.reference(input_ids=source, attention_mask=mask, decoder_input_ids=inputs, use_cache=False)
    ours = models.ids[1][inputs]
    ours[:, 0] = models.ours.forward.special_tokens.first
    model = models.ours.models[0]
    logits, _ = model.decoder(ours, encoder_out=model.encoder(fairseq_source(models, source)))
    return float((logits[..., models.ids[1]] - expected.logits)[ours != 1].abs().max())


class Force:
    """Forces a tag and the last </s> as fairseq does; Transformers' own way gives them the log probability 0."""

    def __init__(self, tag, eos):
        self.tag, self.eos = tag, eos

    def __call__(self, tokens, scores):
        forced = self.eos if tokens.size(1) > LONGEST else self.tag if tokens.size(1) == 1 else None
        if forced is not None:
            scores[:, torch.arange(scores.size(1)) != forced] = -torch.inf
        return scores


@torch.no_grad()
def translations(models, source):
    """The best translations of a batch by Transformers and by fairseq, with a beam of 5, in fairseq's ids."""
    config, tag = models.config, models.tags[1]
    real = source != config.pad_token_id
    expected = models.reference.generate(
        input_ids=source, attention_mask=real.long(), num_beams=5, max_new_tokens=LONGEST + 1, min_new_tokens=5,
        do_sample=False, early_stopping=True, bad_words_ids=[[config.pad_token_id]], forced_eos_token_id=None,
        max_length=None, pad_token_id=config.pad_token_id, eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id, length_penalty=1.0,
        logits_processor=[Force(tag[0] if tag else None, config.eos_token_id)],
    )  # fmt: skip
    src_tokens = fairseq_source(models, source)
    options = argparse.Namespace(beam=5, max_len_b=LONGEST, min_len=5)
    generator = models.ours.task.build_generator(models.ours.models, options)
    prefix = src_tokens.new_tensor(tag).expand(len(source), -1) if tag else None
    sample = {"net_input": {"src_tokens": src_tokens}}
    found = generator.generate(models.ours.models, sample, prefix_tokens=prefix)
    rows = [models.ids[1][row[1:]].tolist() for row in expected]
    return [row[: row.index(2) + 1] for row in rows], [nbest[0]["tokens"].tolist() for nbest in found]


@torch.no_grad()
def differences_of_maps(models, count, longest=12):
    """The largest difference of the maps from those in float64: absolute of weights, relative to the norm of attn_n."""
    result = {"attn_w": 0.0, "attn_n": 0.0}
    for source, inputs in batches(models, count, longest, size=1):
        numbers = source[0, len(models.tags[0]) :], inputs[0, 1 + len(models.tags[1]) :]
        pair = ([ids[of].tolist()] for ids, of in zip(models.ids, numbers))
        (maps,) = models.ours.maps(*pair, kinds=["attn_w", "attn_n"])
        for kind, expected in zip(("attn_w", "attn_n"), reference_maps(models.reference.double(), source, inputs)):
            difference = (torch.tensor(maps.layer_maps(kind)).double() - expected).abs()
            if kind == "attn_n":
                difference /= expected.amax(dim=-1, keepdim=True)
            result[kind] = max(result[kind], float(difference.max()))
        models.reference.float()
    return result


def reference_maps(reference, source, inputs):
    """attn_w and attn_n [L, T, S] of one pair, by the definition, from the modules of Transformers."""
    output = reference.model(input_ids=source, decoder_input_ids=inputs, output_attentions=True, use_cache=False)
    maps = []
    for layer, alpha in zip(reference.model.decoder.layers, output.cross_attentions):
        attention = layer.encoder_attn
        values = attention.v_proj(output.encoder_last_hidden_state[0]).unflatten(-1, (attention.num_heads, -1))
        weights = attention.out_proj.weight.unflatten(-1, (attention.num_heads, -1))  # [D, H, d]
        transformed = torch.einsum("shd,ehd->hse", values, weights)
        norms = torch.einsum("hts,hse->tse", alpha[0], transformed).norm(dim=-1)
        maps.append((alpha[0].mean(0), norms))
    return [torch.stack(kind) for kind in zip(*maps)]


@pytest.mark.parametrize(
    ("name", "options", "count", "longest", "of_maps", "least"),
    [
        *((name, options, 20, 12, 4, 8) for name, options in SMALL.items()),
        *(pytest.param(name, options, 200, 30, 50, 20, marks=pytest.mark.slow) for name, options in SLOW),
    ],
)
def test_a_model_computes_what_transformers_does(tmp_path, name, options, count, longest, of_maps, least):
    models = both(tmp_path / "model", name, **options)
    found = differences_of_maps(models, of_maps, longest)
    found["logits"] = max(difference_of_logits(models, *batch) for batch in batches(models, count, longest))
    assert max(found.values()) < 1e-5, found
    sharp, different = both(tmp_path / "sharp", name, sharp=True, **options), set()
    for source, _ in batches(sharp, count, longest):
        expected, translated = translations(sharp, source)
        assert translated == expected
        different.update(map(tuple, translated))
    assert len(different) >= least
