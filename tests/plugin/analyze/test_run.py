"""A model's batches into tables, in this process: what belongs to which block, what is counted, what is refused."""

from types import SimpleNamespace

import pytest
import torch

from alignment_eval.errors import InputError
from fairseq_norm_plugin.analyze.statistics import Analysis
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, DECODER_SELF, ENCODER_SELF

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


def test_every_block_has_the_kinds_that_apply_to_it(build, analyse):
    tables = analyse(build()).tables()
    mixing = tables["mixing"]
    kinds = {block: list(dict.fromkeys(rows["kind"])) for block, rows in mixing.groupby("block")}
    assert kinds == {
        ENCODER_SELF: ["attn_w", "attn_n", "attnres_n", "ff_n"],
        DECODER_SELF: ["attn_w", "attn_n", "attnres_n"],
        DECODER_CROSS: ["attnres_n", "ff_n"],
    }
    layers = {block: sorted(rows["layer"].unique()) for block, rows in mixing.groupby("block")}
    assert layers == {ENCODER_SELF: [0, 1], DECODER_SELF: [0, 1, 2], DECODER_CROSS: [0, 1, 2]}
    positions = mixing[(mixing["token_class"] == "all") & mixing["head"].isna()].groupby("block")["positions"].unique()
    # with </s>; the first position of the decoder has nothing to mix in self-attention
    assert positions.to_dict() == {ENCODER_SELF: [7 + 3 + 4 + 3], DECODER_SELF: [5 + 6 + 2], DECODER_CROSS: [13 + 3]}
    for name in ("mixing", "attention"):  # whole numbers where some are missing
        assert str(tables[name]["head"].dtype) == "Int64"
        assert set(tables[name]["head"].dropna()) == {0, 1, 2, 3}


def test_columns_of_encoder_decoder_attention_are_source_tokens(build, analyse, make_sample):
    norms = analyse(build()).tables()["token_norms"]
    samples = [make_sample(lengths, seed=seed)["net_input"] for seed, lengths in enumerate(BATCHES)]
    for block, name in zip(BLOCK_TYPES, ("src_tokens", "prev_output_tokens", "src_tokens")):
        rows = norms[(norms["block"] == block) & (norms["layer"] == 0)]
        ids = torch.cat([inputs[name][inputs[name].ne(1)] for inputs in samples])
        assert rows["occurrences"].sum() == len(ids)
        assert len(rows) == len(ids.unique())


@pytest.mark.parametrize(
    ("stack", "attention", "projection", "place"),
    [
        ("decoder", "encoder_attn", "v_proj", f"{DECODER_CROSS} 1"),
        ("decoder", "self_attn", "out_proj", f"{DECODER_SELF} 1"),
        ("encoder", "self_attn", "v_proj", f"{ENCODER_SELF} 1"),
    ],
)
def test_nan_in_a_model_is_named_where_it_arises(build, analyse, stack, attention, projection, place):
    model = build()
    layer = getattr(model, stack).layers[1]
    getattr(getattr(layer, attention), projection).weight.data[0, 0] = float("nan")
    with pytest.raises(InputError, match=rf"{place} .*NaN"):
        analyse(model).tables()
