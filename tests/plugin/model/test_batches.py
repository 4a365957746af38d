from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.capture.layers import DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.model.batches import NumberedPair, SentenceEncoder, check_max_tokens, parts_of, windows
from fairseq_norm_plugin.text.tokens import Vocabulary, special_ids
from tests.plugin.conftest import dictionary


def side(length):
    """An encoded side of w0 w1 … </s>, ``length`` tokens."""
    tokens = (*(f"w{i}" for i in range(length - 1)), "</s>")
    return SimpleNamespace(ids=torch.arange(length), side=SimpleNamespace(tokens=tokens))


def pairs(*lengths):
    return [NumberedPair(n, side(source), side(target)) for n, (source, target) in enumerate(lengths)]


def numbers(parts):
    return [[pair.number for pair in part] for part in parts]


def test_windows_hold_as_much_as_they_may_and_one_pair_at_least():
    assert numbers(windows(pairs((3, 2), (2, 3), (4, 1), (90, 1), (1, 1)), 6)) == [[0, 1], [2], [3], [4]]
    assert list(windows([], 6)) == []


def test_parts_of_a_window_are_of_similar_lengths():
    window = pairs((2, 2), (9, 9), (2, 3), (9, 8))
    parts = numbers(parts_of(window, 72))
    assert sorted(map(sorted, parts)) == [[0, 2], [1, 3]]


def test_axes_of_the_decoder_are_its_inputs():
    (pair,) = pairs((3, 2))
    source, inputs = ("w0", "w1", "</s>"), ("</s>", "w0")
    assert pair.axes(ENCODER_SELF) == (source, source)
    assert pair.axes(DECODER_SELF) == (inputs, inputs)
    assert pair.axes(DECODER_CROSS) == (inputs, source)


def test_translation_has_no_target_yet():
    pair = NumberedPair(0, side(3), None)
    assert pair.lengths == [3]
    assert pair.axes(DECODER_CROSS)[0] == ()


@pytest.mark.parametrize("tokens", [0, -1])
def test_batches_of_nothing(tokens):
    with pytest.raises(UsageError, match=f"max_tokens {tokens}: expected a number of tokens, 1 or more"):
        check_max_tokens(tokens)


@pytest.mark.parametrize(
    "ids", [[4.5, 5], [4.0], torch.tensor([4.2]), [True], [[4, 5]], ["4"], [None], [1 + 2j], "\x1b"], ids=str
)
def test_only_whole_numbers_are_token_ids(ids):
    """A float was cut to a whole number."""
    words = dictionary()
    known = Vocabulary(words, "none", special_ids(words))
    frame = SimpleNamespace(before=[], after=[words.eos()])
    frames = SimpleNamespace(source=frame, target=frame)
    encoder = SentenceEncoder(SimpleNamespace(limits=(9, 9), frames=frames), (known, known))
    assert encoder.side([4, 5], 0, "s").ids.tolist() == [4, 5, 2]
    assert encoder.side(torch.tensor([4, 2], dtype=torch.int32), 0, "s").ids.tolist() == [4, 2]
    with pytest.raises(InputError, match=r"s: .*expected text or token ids"):
        encoder.side(iter(ids), 0, "s")
