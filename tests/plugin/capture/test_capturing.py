import threading
import time

import pytest
import torch

from fairseq_norm_plugin.capture.attention import (
    MapCapture,
    PassEnd,
    capturing,
    norm_attentions,
    one_thread,
    teacher_forcing,
)
from tests.facts import facts


def identity(block):
    return block


def test_every_layer_runs_once_and_is_taken_once():
    capture = MapCapture("decoder.cross", [0, 1], identity, needs_norms=False)
    capture.receive(0, torch.ones(1))
    with pytest.raises(RuntimeError, match=facts("of layers [1]")):
        capture.take()
    with pytest.raises(RuntimeError, match="ran twice"):
        capture.receive(0, torch.zeros(1))
    capture.receive(1, torch.zeros(1))
    assert capture.take() == [1, 0]
    with pytest.raises(RuntimeError, match="no maps of layers"):
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


def test_a_pass_ends_after_the_last_capture(build, make_sample):
    model, inputs, ran = build(), make_sample([(3, 4)])["net_input"], []
    attentions = norm_attentions(model)
    for number, layer in enumerate(model.decoder.layers):
        layer.fc1.register_forward_hook(lambda *_, number=number: ran.append(number))
    whole, cut = (MapCapture("decoder.cross", [0, 1], lambda block: block.output) for _ in range(2))
    with torch.no_grad():
        with capturing(attentions, whole):
            model(**inputs)
        everything, ran[:] = list(ran), []
        with capturing(attentions, cut, end_pass=True), pytest.raises(PassEnd):
            model(**inputs)
    assert everything == list(range(len(model.decoder.layers)))
    assert ran == [0]  # neither the network of layer 1 nor what is above it
    assert all(map(torch.equal, whole.take(), cut.take()))
    assert not any(attention.ends_pass for attention in attentions)


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


def test_a_model_runs_in_one_thread_at_a_time(build):
    """What is captured lies on the modules, where another thread's pass would be taken for this one's."""
    first, second = build(), build(seed=1)
    order = []

    def wait(model, name):
        with teacher_forcing(model):
            order.append(name)

    with one_thread([first]), teacher_forcing(first):  # the same thread enters twice
        waiting = threading.Thread(target=wait, args=(first, "same model"))
        free = threading.Thread(target=wait, args=(second, "other model"))
        waiting.start()
        free.start()
        free.join(10)
        time.sleep(0.05)
        order.append("first leaves")
    waiting.join(10)
    assert order == ["other model", "first leaves", "same model"]


def test_two_threads_with_two_models_each_do_not_wait_for_each_other_for_ever(build):
    models, done = [build(), build(seed=1)], []

    def enter(order):
        for _ in range(500):
            with one_thread(order):
                time.sleep(0)  # the other thread may run
        done.append(order)

    threads = [threading.Thread(target=enter, args=(order,), daemon=True) for order in (models, models[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(done) == 2
