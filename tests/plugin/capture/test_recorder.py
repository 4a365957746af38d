"""What a recorder takes of each block, the mean over an ensemble, and the cut to sentences."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import KINDS
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions
from fairseq_norm_plugin.capture.layers import DECODER_CROSS
from fairseq_norm_plugin.capture.recorder import (
    BatchMaps,
    RecordedMaps,
    Recorder,
    forced_maps,
    layers_and_heads,
    real_positions,
    recorded_quantities,
)
from fairseq_norm_plugin.formulas.kinds import head_map, layer_map

LENGTHS = [(7, 5), (3, 6), (1, 1)]


def record(model, sample, kinds, layers=(0, 1, 2)):
    """The recorded quantities of ``sample``, and the block of each of its decoder layers."""
    recorded = RecordedMaps(layers, recorded_quantities(kinds, 1))
    recorder = Recorder(model, recorded, sample)
    blocks = MapCapture(DECODER_CROSS, layers, lambda block: block)
    with torch.no_grad(), capturing(norm_attentions(model), *recorder.captures, blocks):
        model(**sample["net_input"])
    return recorder.take(), blocks.take()


def test_each_quantity_is_its_map_without_the_residuals_column(build, make_sample):
    sample, layers = make_sample(LENGTHS), (2, 0)
    kinds = [kind for kind in KINDS if "rollout" not in kind]
    model = build()
    quantities, blocks = record(model, sample, kinds, layers)
    output = model.decoder.output_projection.weight.detach()
    source = sample["net_input"]["src_tokens"].size(1)
    for found, block in zip(quantities, blocks):
        block = replace(block, readout=lambda: output[sample["target"]] - output.mean(0))
        assert set(found) == set(recorded_quantities(kinds, 1))
        for name, value in found.items():
            part, _, kind = name.partition("_")
            if name == "transformed_norm":
                torch.testing.assert_close(block.alpha * value[:, :, None], head_map(block, "attn_n"))
            else:
                expected = head_map(block, kind) if part == "head" else layer_map(block, kind)[..., :source]
                torch.testing.assert_close(value, expected)


def forced(model, sample, nbest):
    """The sentences of each rank, and their maps where all hypotheses of a sentence are its target."""
    kinds = recorded_quantities(["attn_n", "attn_logit", "rollout_w", "alti_rollout"], 1)
    recorded = RecordedMaps((1, 2), kinds, max(nbest))
    columns, rows = (real_positions(tokens, 1) for tokens in (sample["net_input"]["src_tokens"], sample["target"]))
    hypotheses = [[{"tokens": t[row]}] * number for t, row, number in zip(sample["target"], rows, nbest)]
    with torch.no_grad():
        for ids, maps in forced_maps([model], sample, hypotheses, recorded, 1, 2):
            yield ids, maps.sentences([columns[i] for i in ids], [rows[i] for i in ids])


def test_each_rank_has_the_maps_of_the_sentences_that_have_it(build, make_sample):
    """Against each sentence by itself; a search may find fewer hypotheses of one sentence than of another."""
    model, sample = build(), make_sample(LENGTHS)
    ranks, alone = list(forced(model, sample, [1, 3, 2])), []
    for i in range(len(LENGTHS)):
        inputs = {name: tensor[i : i + 1] for name, tensor in sample["net_input"].items()}
        one = {"id": sample["id"][i : i + 1], "target": sample["target"][i : i + 1], "net_input": inputs}
        alone += next(forced(model, one, [1]))[1]
    assert [ids for ids, _ in ranks] == [[0, 1, 2], [1, 2], [1]]
    for i, arrays in ((i, arrays) for ids, found in ranks for i, arrays in zip(ids, found)):
        for name, array in arrays.items():
            np.testing.assert_allclose(array, alone[i][name], atol=1e-6, rtol=1e-4, err_msg=name)


def test_a_forced_hypothesis_has_the_logits_of_its_own_tokens(build, make_sample):
    model, sample = build(), make_sample(LENGTHS[:1])
    ((_, (arrays,)),) = forced(model, sample, [1])
    layers, _ = record(model, sample, ["attn_logit"], (1, 2))
    for number, quantities in enumerate(layers):
        for name, value in quantities.items():
            np.testing.assert_allclose(arrays[name][number], value[0], atol=1e-6, rtol=1e-4, err_msg=name)


def test_the_maps_of_an_ensemble_are_means_cut_to_each_sentence():
    torch.manual_seed(0)
    models = [
        [{"head_attn_w": torch.rand(2, 4, 3, 5).double(), "layer_attn_n": torch.rand(2, 3, 5)} for _ in range(2)]
        for _ in range(3)
    ]
    maps = BatchMaps()
    for layers in models:
        maps.add(layers)
    columns, rows = [slice(1, 5), slice(0, 3)], [slice(0, 3), slice(2, 3)]
    for b, arrays in enumerate(maps.sentences(columns, rows)):
        for name, array in arrays.items():
            mean = torch.stack([torch.stack([layer[name][b] for layer in layers]) for layers in models]).mean(0)
            assert array.dtype == np.float32
            np.testing.assert_allclose(array, mean[..., rows[b], columns[b]], rtol=1e-6)


def test_norms_of_an_ensemble_are_recorded_as_products():
    """The mean of the products is not the product of the means of weights and norms."""
    assert recorded_quantities(["attn_n"], 2) == recorded_quantities(["attn_n"], 3)
    assert "transformed_norm" not in recorded_quantities(["attn_n"], 2)


@torch.no_grad()
def test_the_probability_of_an_ensemble_is_the_mean_of_its_models(build, make_sample):
    models, sample = [build(), build(seed=1)], make_sample(LENGTHS)
    rows = real_positions(sample["target"], 1)
    hypotheses = [[{"tokens": tokens[row]}] for tokens, row in zip(sample["target"], rows)]
    recorded = RecordedMaps((0,), recorded_quantities(["attn_w"], 2))
    ((_, maps),) = forced_maps(models, sample, hypotheses, recorded, pad=1, bos=2, log_probs=True)
    shares = torch.stack([model(**sample["net_input"])[0].softmax(-1) for model in models]).mean(0)
    expected = shares.gather(-1, sample["target"][..., None])[..., 0].log()
    for found, of_sentence, row in zip(maps.log_probs([row.stop - row.start for row in rows]), expected, rows):
        np.testing.assert_allclose(found, of_sentence[row], atol=1e-5)


def test_models_of_an_ensemble_have_the_same_layers_and_heads(build):
    assert layers_and_heads([build(), build(seed=1)]) == (3, 4)
    with pytest.raises(InputError, match=r"\[\[4, 4, 4\], \[2, 2, 2\]\]"):
        layers_and_heads([build(), build(decoder_attention_heads=2)])
    with pytest.raises(InputError, match=r"\[\[4, 4, 4\], \[4, 4\]\]"):
        layers_and_heads([build(), build(decoder_layers=2)])
    with pytest.raises(InputError, match=r"TransformerModel .*--task translation_norm"):
        layers_and_heads([build(swap=False)])
