from __future__ import annotations

import pytest
import torch

from fairseq_norm_plugin.capture.attention import norm_attentions
from fairseq_norm_plugin.capture.capturing import MapCapture, capturing, teacher_forcing


def identity(block):
    return block


def test_a_layer_that_did_not_run_is_an_error():
    capture = MapCapture("decoder.cross", [0, 1], identity, needs_norms=False)
    capture.receive(0, torch.zeros(1))
    with pytest.raises(RuntimeError, match=r"recorded nothing of layers \[1\]"):
        capture.take()


def test_a_layer_that_ran_twice_is_an_error():
    capture = MapCapture("decoder.cross", [0], identity, needs_norms=False)
    capture.receive(0, torch.zeros(1))
    with pytest.raises(RuntimeError, match="ran twice"):
        capture.receive(0, torch.zeros(1))


def test_taking_empties(build):
    capture = MapCapture("decoder.cross", [0], identity, needs_norms=False)
    capture.receive(0, torch.ones(1))
    assert capture.take()[0] == 1
    with pytest.raises(RuntimeError, match="nothing"):
        capture.take()


def test_nothing_stays_attached_after_an_error(build):
    attentions = norm_attentions(build(), "decoder.cross")

    def raise_inside():
        with capturing(attentions, MapCapture("decoder.cross", [0], identity, False)):
            assert [bool(a.captures) for a in attentions] == [a.site.number == 0 for a in attentions]
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        raise_inside()
    assert not any(attention.captures for attention in attentions)


def test_teacher_forcing_is_undone(build):
    model = build()
    model.full_context_alignment = True
    attention = norm_attentions(model)[0]
    attention.beam_size = 5
    with teacher_forcing(model):
        assert not model.full_context_alignment
        assert attention.beam_size == 1
    assert model.full_context_alignment
    assert attention.beam_size == 5
