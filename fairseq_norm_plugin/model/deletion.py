"""What a model loses without words of the source, or without the attention patterns that it learned.

The first is the measure of which map says what a prediction needs; the second is a claim of Kobayashi et al. (2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import numpy as np
import torch
from numpy.typing import NDArray

from alignment_eval.extraction.method import DEFAULTS
from alignment_eval.maps.sentence import SentenceSide
from fairseq_norm_plugin.capture.attention import NormAttention, in_one_thread, norm_attentions, teacher_forcing
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES
from fairseq_norm_plugin.capture.recorder import BatchMaps
from fairseq_norm_plugin.environment import enough_threads
from fairseq_norm_plugin.model.model import Model, length_batches
from fairseq_norm_plugin.text.pair import SentencePair

Floats = NDArray[np.float64]


def losses_of_words(model: Model, pair: SentencePair, unknown: bool = False) -> Floats:
    """The log probability of each target word minus that without each source word, [target words, source words]."""
    size = pair.source.side.word_count
    whole, *without = word_log_probs(model, pair, np.eye(size + 1, size, k=-1, dtype=bool), unknown)
    losses: Floats = (whole - np.stack(without)).T
    return losses


@torch.no_grad()
def word_log_probs(model: Model, pair: SentencePair, deleted: NDArray[np.bool_], unknown: bool = False) -> Floats:
    """The log probability (base e) of each target word, all words before it given, without source words.

    ``deleted`` [N, source words] are the words of each of N cases.  The encoder-decoder attention of no layer sees
    them, as if they were padding; with ``unknown`` the encoder reads ``<unk>`` in their place.  Words that share a
    subword go and count together.  Returns [N, target words], of the mean probability of the networks.
    """
    hidden = torch.from_numpy((deleted.astype(int) @ _tokens_of(pair.source.side)) > 0)
    rows = max(1, DEFAULTS.max_tokens // max(pair.lengths))
    found = []
    for part in torch.split(hidden.to(model.device), rows):
        sample = model.sample(dict.fromkeys(range(len(part)), pair))
        inputs, target = sample["net_input"], list(sample["target"])
        if unknown:
            ids = inputs["src_tokens"].masked_fill(part, model.vocabularies[0].dictionary.unk())
            inputs["src_tokens"] = ids
        log_probs = BatchMaps()
        for network in model.networks:
            with enough_threads([network], part.numel()), teacher_forcing(network):
                # the encoder reads the same text in each case, unless words are unknown
                read = {name: tensor[: len(part) if unknown else 1] for name, tensor in inputs.items()}
                encoded = network.encoder.forward_torchscript(read)
                if not unknown:
                    encoded = network.encoder.reorder_encoder_out(encoded, part.new_zeros(len(part), dtype=torch.long))
                    encoded["encoder_padding_mask"] = [part]
                decoded = network.decoder(inputs["prev_output_tokens"], encoder_out=encoded, features_only=True)
                log_probs.add_log_probs(network, decoded[0], target)
        found += log_probs.log_probs([len(target[0])] * len(part))
    return np.stack(found) @ _tokens_of(pair.target.side).T


@torch.no_grad()
def uniform_losses(
    model: Model, pairs: Mapping[int, SentencePair], max_tokens: int
) -> Iterator[tuple[str, int | None, float]]:
    """What a target token of encoded pairs loses of its log probability if a layer's attention weights are uniform.

    A query of zeros gives all positions that a row sees the same weight.  Yields block type, layer (None: all of the
    type) and mean loss, by the first network.
    """
    network = model.networks[0]
    batches = list(length_batches(pairs, max_tokens))

    def mean(layers: Sequence[NormAttention]) -> float:
        queries = [part for attention in layers for part in attention.q_proj.parameters()]
        with in_one_thread([network]), ExitStack() as stack:
            for part in queries:
                stack.callback(part.copy_, part.clone())
                part.zero_()
            scores = [scores for batch in batches for scores in model.scores(batch).values()]
        return float(np.concatenate(scores).mean())

    whole = mean([])
    for block in BLOCK_TYPES:
        attentions = norm_attentions(network, block)
        for attention in attentions:
            yield block, attention.site.number, whole - mean([attention])
        yield block, None, whole - mean(attentions)


def _tokens_of(side: SentenceSide) -> NDArray[np.int64]:
    """1 where a token belongs to a word, [words, tokens]."""
    counts = np.ones(side.word_count, dtype=int) if side.words_per_run is None else side.words_per_run
    runs = np.repeat(np.arange(len(counts)), counts)
    members: NDArray[np.int64] = np.equal(runs[:, None], side.words).astype(np.int64)
    return members
