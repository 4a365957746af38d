"""``norm-align --dtype auto``: the processor's fastest type for long texts whose links it hardly changes."""

from __future__ import annotations

import re
from argparse import Namespace

import pytest
import torch

from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.options import ExtractionOptions
from fairseq_norm_plugin.align import precision
from fairseq_norm_plugin.loading.int8 import has_int8

RUN = re.compile(r"^run:(\w+)", re.MULTILINE)
RUN_LINE = re.compile(r"^run:.*", re.MULTILINE)


@pytest.fixture
def long(monkeypatch):
    """The text of 12 pairs counts as long."""
    monkeypatch.setattr(precision, "LONG_TEXT", 12)
    return monkeypatch


@pytest.fixture(params=["bfloat16", "int8"])
def fastest(request, monkeypatch):
    """The type that this processor computes fastest, as it were."""
    if request.param == "int8" and not has_int8():
        pytest.skip("torch has no products in 8 bits on this processor")
    monkeypatch.setattr(precision, "fastest_dtype", lambda: request.param)
    return request.param


def test_a_long_text_is_aligned_in_the_fastest_type(run, backward, long, fastest):
    long.setattr(precision, "LEAST_EQUAL", 0.01)
    both = ("--reverse-path", backward, "--overwrite")
    auto, stated, float32 = (run("--dtype", name, *both) for name in ("auto", fastest, "float32"))
    assert re.search(
        rf"--dtype {fastest}, since [\d.]+ % of the links of 12 sampled pairs are those of float32", auto.err
    )
    assert auto.lines == stated.lines
    assert f"|dtype:{fastest}|" in auto.err
    assert "dtype" not in RUN_LINE.search(float32.err)[0]
    assert RUN.search(auto.err)[1] == RUN.search(stated.err)[1] != RUN.search(float32.err)[1]


def test_another_text_in_float32(run, long, fastest):
    """Models whose links change keep float32, and nothing of the other type stays in them."""
    long.setattr(precision, "LEAST_EQUAL", 1.01)
    auto, float32 = run(), run("--dtype", "float32", "--overwrite")
    assert re.search(rf"--dtype float32, since in {fastest} only [\d.]+ % of the links of 12 sampled pairs", auto.err)
    assert auto.lines == float32.lines
    assert RUN.search(auto.err)[1] == RUN.search(float32.err)[1]


def test_a_share_without_links(run, long):
    """Where a sample has no links at all, nothing is known."""
    long.setattr(precision, "_links", lambda *_: set())
    assert "--dtype float32" in run().err


@pytest.mark.parametrize("how", ["short", "gpu", "other processor", "ray", "stated"])
def test_nothing_is_tried_elsewhere(run, monkeypatch, how):
    monkeypatch.setattr(precision, "use_dtype", None)
    monkeypatch.setattr(precision, "fastest_dtype", lambda: "float32" if how == "other processor" else "int8")
    if how != "short":
        monkeypatch.setattr(precision, "LONG_TEXT", 12)
    if how in ("gpu", "ray"):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: how == "gpu")
        args = Namespace(dtype="auto", cpu=False, engine="ray" if how == "ray" else "local", ray_address="host:6379")
        precision.choose_dtype(args, [], AlignmentMethod(ExtractionOptions("attn_n", 0)), None, 12, [])
        assert args.dtype == "float32"
        return
    done = run(*(("--dtype", "float32") if how == "stated" else ()))
    assert done.status == 0, done.err
    assert "--dtype" not in done.err


def test_one_network_for_both_directions(long, fastest):
    """A multilingual model may read both; then it is changed twice."""
    answers = iter([{(0, 0, 0)}, set()])
    long.setattr(precision, "_links", lambda *_: next(answers))
    network = torch.nn.ModuleDict({"layers": torch.nn.ModuleDict({"a": torch.nn.Linear(4, 3)})})
    network = torch.nn.ModuleDict({"decoder": network})
    given = torch.randn(2, 4)
    exact = network["decoder"]["layers"]["a"](given)
    args = Namespace(dtype="auto", cpu=True, engine="local", ray_address=None)
    method = AlignmentMethod(ExtractionOptions("attn_n", 0))
    precision.choose_dtype(args, [Namespace(models=[network])] * 2, method, None, 12, [])
    assert args.dtype == "float32"
    assert torch.equal(network["decoder"]["layers"]["a"](given), exact)


@pytest.mark.parametrize("emulated", [True, False])
def test_a_type_without_instructions_is_told(run, monkeypatch, emulated):
    monkeypatch.setattr(precision, "is_emulated", lambda dtype: emulated and dtype == "bfloat16")
    told = "--dtype bfloat16: this processor has no instructions for it"
    assert (told in run("--dtype", "bfloat16", "--cpu").err) == emulated
    assert told not in run("--overwrite").err
