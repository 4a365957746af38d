"""A checkpoint's options cannot run code when fairseq builds its model."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import fairseq_norm_plugin as fnp
from alignment_eval.errors import InputError
from fairseq_norm_plugin.checkpoints.options import EVALUATED, check_options
from tests.facts import facts

DEMO = Path(__file__).resolve().parents[3] / "data" / "demo"
PLAIN = {"arch": "transformer", "encoder_layers": 3, "adaptive_softmax_cutoff": None, "data": "/home/me/data (old)"}


def legacy(**options):
    """A checkpoint as fairseq wrote it before version 1: all options in one namespace."""
    return {"args": argparse.Namespace(**{**PLAIN, **options})}


@pytest.fixture
def evil(tmp_path):
    """The demo's checkpoint, with changed options of its model."""

    def make(**options):
        state = torch.load(DEMO / "checkpoint.pt", weights_only=False)
        vars(state["cfg"]["model"]).update(options)
        torch.save(state, tmp_path / "evil.pt")
        return tmp_path / "evil.pt"

    return make


def call(victim):
    return f'[__import__("pathlib").Path({str(victim)!r}).touch()*0+100]'


@pytest.mark.parametrize(
    "options",
    [
        {"share_decoder_input_output_embed": False, "share_all_embeddings": False, "adaptive_softmax_cutoff": call},
        {"_name": "fconv", "arch": "fconv", "encoder_layers": call},
        {"_name": "fconv_self_att", "arch": "fconv_self_att", "pretrained": call},
        {"_name": "wav2vec2", "arch": "wav2vec2", "conv_feature_layers": call},
        {"encoder_xformers_att_config": call},
    ],
    ids=lambda options: str(options.get("arch", next(reversed(options)))),
)
def test_text_that_fairseq_would_evaluate_is_not_loaded(evil, tmp_path, options):
    victim = tmp_path / "victim"
    path = evil(**{name: value(victim) if callable(value) else value for name, value in options.items()})
    with pytest.raises(InputError, match=r"evil\.pt: (option|architecture) "):
        fnp.load(path, DEMO, "de", "en")
    assert not victim.exists()


def test_fairseq_would_have_run_it(evil, tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    path = evil(
        share_decoder_input_output_embed=False, share_all_embeddings=False, adaptive_softmax_cutoff=call(victim)
    )
    monkeypatch.setattr("fairseq_norm_plugin.checkpoints.read.check_options", lambda state, path: None)
    with suppress(Exception):  # its weights do not fit the changed options; it is too late then
        fnp.load(path, DEMO, "de", "en")
    assert victim.exists()


def test_references_to_the_environment_are_not_resolved():
    with pytest.raises(InputError, match=r"c\.pt: option decoder_embed_path is .*HOME"):
        check_options(legacy(decoder_embed_path="${oc.env:HOME}"), "c.pt")
    with pytest.raises(InputError, match=r"option print_alignment"):
        check_options(
            {"cfg": {"model": {"_name": "transformer"}, "generation": {"print_alignment": "a ${oc.env:X}"}}}, "c.pt"
        )


@pytest.mark.parametrize("options", [{"arch": "lstm"}, {"arch": None}, {"arch": "no_such"}, {"arch": ["transformer"]}])
def test_only_architectures_that_the_plugin_reads(options):
    with pytest.raises(InputError, match=r"c\.pt: .*architecture"):
        check_options(legacy(**options), "c.pt")


@pytest.mark.parametrize("group", ["args", "cfg"])
def test_options_have_names(group):
    with pytest.raises(InputError, match=facts(f"c.pt: … ({group}) … list")):
        check_options({group: ["transformer"]}, "c.pt")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"adaptive_softmax_cutoff": "[10000, 20000]", "adam_betas": "(0.9, 0.98)", "lr": [0.0005]},
        {"adaptive_softmax_cutoff": [1, 2], "left_pad_source": "True", "left_pad_target": False},
        {"arch": "transformer_wmt_en_de_big", "encoder_layers": "6", "save_dir": "/a (b)/c", "user_dir": None},
        {"arch": "roberta_base", "user_dir": "${common.user_dir}"},
        {"arch": "mbart_large"},
    ],
)
def test_options_of_real_checkpoints_pass(options):
    check_options(legacy(**options), "c.pt")


@pytest.mark.parametrize("name", sorted(EVALUATED))
@given(text=st.text(alphabet="[](){}0123456789.,'\"_abelmnrtux*+- ", max_size=30))
def test_whatever_passes_is_a_literal(name, text):
    try:
        check_options(legacy(**{name: text}), "c.pt")
    except InputError:
        return
    value = eval(text, {"__builtins__": {}})  # a literal needs no name and calls nothing
    assert not callable(value)
