"""A model's batches into tables, in this process: what belongs to which block, what is counted, what is refused."""

from types import SimpleNamespace

import pytest
import torch

from alignment_eval.errors import InputError
from fairseq_norm_plugin.analyze.statistics import Analysis
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_SELF

BATCHES = [[(7, 5), (3, 6)], [(4, 2)]]
KINDS = ("attn_w", "attn_n", "attnres_n", "ff_n")


@pytest.fixture
def analyse(tgt_dict, make_sample):
    tgt_dict.count = [(i * 7) % 40 + 1 for i in range(len(tgt_dict))]
    cfg = SimpleNamespace(source_lang="de", target_lang="en")
    task = SimpleNamespace(source_dictionary=tgt_dict, target_dictionary=tgt_dict, cfg=cfg)

    def run(model, kinds=KINDS):
        analysis = Analysis(model, task, kinds)
        for seed, lengths in enumerate(BATCHES):
            analysis.add(make_sample(lengths, seed=seed))
        return analysis

    return run


def test_columns_of_encoder_decoder_attention_are_source_tokens(build, analyse, make_sample):
    norms = analyse(build()).tables()["token_norms"]
    samples = [make_sample(lengths, seed=seed)["net_input"] for seed, lengths in enumerate(BATCHES)]
    for block, name in zip(BLOCK_TYPES, ("src_tokens", "prev_output_tokens", "src_tokens")):
        rows = norms[(norms["block"] == block) & (norms["layer"] == 0)]
        ids = torch.cat([inputs[name][inputs[name].ne(1)] for inputs in samples])
        assert rows["occurrences"].sum() == len(ids)
        assert len(rows) == len(ids.unique())


def test_nan_in_a_model_is_named_where_it_arises(build, analyse):
    model = build()
    model.decoder.layers[1].self_attn.out_proj.weight.data[0, 0] = float("nan")
    with pytest.raises(InputError, match=rf"{DECODER_SELF} 1 .*NaN"):
        analyse(model).tables()
