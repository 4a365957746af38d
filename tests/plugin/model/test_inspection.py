"""What a model loses without words: against passes that really lack them, one at a time."""

import numpy as np
import pytest
import torch

from fairseq_norm_plugin.model.inspection import losses_of_words, word_log_probs
from tests.plugin.model.conftest import pair_of

#: Words of two subwords on both sides.
PAIR = pair_of(["w3@@", "w1", "w2", "w5"], ["w4", "w6@@", "w5", "w7"])
SOURCE, TARGET = ([0, 0, 1, 2, -1], [0, 1, 1, 2, -1])


def slow_log_probs(models, source, target, deleted, unknown):
    """The sums of each target word without the source words ``deleted``: their columns of the memory are cut out."""
    hidden = np.isin(SOURCE, deleted)
    source = torch.where(torch.from_numpy(hidden & unknown), 3, source)[None]
    kept = torch.from_numpy(np.flatnonzero(~hidden | unknown))
    probs = torch.zeros(len(target), dtype=torch.float64)
    for model in models:
        out = model.encoder(source, torch.tensor([source.size(1)]))
        out = {
            **out,
            "encoder_out": [out["encoder_out"][0][kept]],
            "encoder_padding_mask": [out["encoder_padding_mask"][0][:, kept]],
        }
        logits, _ = model.decoder(torch.cat([target[-1:], target[:-1]])[None], encoder_out=out)
        probs = probs + logits[0].softmax(-1).gather(1, target[:, None])[:, 0] / len(models)
    of_tokens = probs.log().tolist()
    return [sum(p for p, word in zip(of_tokens, TARGET) if word == number) for number in range(3)]


@torch.no_grad()
@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
def test_losses_are_those_of_passes_without_the_words(make_direction, unknown, seeds):
    direction = make_direction(*seeds)
    for model in direction.networks:
        model.double()
    pair = direction.encode(PAIR)
    ids = pair.source.ids, pair.target.ids
    cases = [(), (0,), (1,), (0, 2), (0, 1, 2)]
    expected = [slow_log_probs(direction.networks, *ids, case, unknown) for case in cases]
    deleted = np.array([np.isin(range(3), case) for case in cases])
    np.testing.assert_allclose(word_log_probs(direction, pair, deleted, unknown), expected, rtol=1e-6)
    losses = np.subtract(expected[0], [slow_log_probs(direction.networks, *ids, (word,), unknown) for word in range(3)])
    np.testing.assert_allclose(losses_of_words(direction, pair, unknown), losses.T, atol=2e-6)
