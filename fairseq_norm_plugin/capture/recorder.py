"""Records the quantities of a batch: takes them from each block, averages over an ensemble, cuts out sentences."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils
from numpy.typing import NDArray
from torch import Tensor, nn

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import KINDS, axes_of, quantities
from fairseq_norm_plugin.capture.attention import (
    MapCapture,
    Parts,
    PassEnd,
    capturing,
    norm_attentions,
    teacher_forcing,
)
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, at_least_float32
from fairseq_norm_plugin.formulas.block import Block, layer_norms, layer_weights, transformed_norms, vector_norms
from fairseq_norm_plugin.formulas.kinds import decoder_rollout, encoder_rollout, head_map, layer_map

Quantities = dict[str, Tensor]
#: The n-best hypotheses of each sentence of a batch, as fairseq gives them.
Hypotheses = list[list[dict[str, Any]]]

#: Key of a hypothesis for its recorded quantities.
MAPS_KEY = "norm_maps"
#: Rows of a softmax at a time: the numbers of more do not stay in the caches of a CPU.
_SOFTMAX_ROWS = 256
#: What quantities are computed of; others of the whole block.
_COMPUTED_OF = {
    "head_attn_w": Parts.WEIGHTS,
    **dict.fromkeys(("transformed_norm", "head_attn_n", "layer_attn_n"), Parts.VALUES),
}


def recorded_quantities(kinds: Sequence[str], models: int) -> tuple[str, ...]:
    """The quantities that records of ``kinds`` hold (alignment_eval.maps.sentence).

    The mean of α‖f(x)‖ over an ensemble does not follow from the means of its factors, so it is recorded itself.
    """
    names = {name for kind in kinds for name in KINDS[kind].quantities}
    if models > 1 and "transformed_norm" in names:
        names = names - {"transformed_norm"} | {"head_attn_n"}
    return tuple(name for name in quantities() if name in names)


@dataclass(frozen=True)
class RecordedMaps:
    """The quantities and layers that are recorded."""

    layers: tuple[int, ...]  #: layer numbers, from 0
    quantities: tuple[str, ...]  #: names (:func:`recorded_quantities`)
    nbest: int = 1  #: the number of best hypotheses that are recorded
    #: The layers whose layer maps are recorded, None: all.  The maps of others hold zeros, which nothing may read.
    whole: Collection[int] | None = None


def layer_capture(kind: str, layer: int, heads: Sequence[int] | None) -> MapCapture[Tensor]:
    """A capture of a layer's map [B, T, S], ``attn_w`` or ``attn_n``, over ``heads`` (default: all)."""
    if kind == "attn_w":
        return MapCapture(DECODER_CROSS, [layer], lambda block: layer_weights(block.alpha, heads), Parts.WEIGHTS)
    return MapCapture(DECODER_CROSS, [layer], lambda block: layer_norms(block.alpha, block.factor, heads), Parts.VALUES)


class Recorder:
    """Takes the recorded quantities of a batch from one encoder pass and any number of decoder passes.

    ``first_pass``: take the first of several decoder passes, instead of raising an error.
    """

    def __init__(
        self, model: nn.Module, recorded: RecordedMaps, sample: dict[str, Any], first_pass: bool = False
    ) -> None:
        self._layers = recorded.layers
        # quantities that need the maps of all blocks up to a layer -> the kind of those maps
        rollouts = {kind.quantities[-1]: kind.rollout for kind in KINDS.values() if kind.rollout}
        names = [name for name in recorded.quantities if name not in rollouts]
        #: The sentences of the batch that the next decoder pass has.
        self.order: Sequence[int] = range(len(sample["id"]))
        parts = max((_COMPUTED_OF.get(name, Parts.WHOLE) for name in names), default=Parts.WEIGHTS)
        whole = [layer for layer in self._layers if recorded.whole is None or layer in recorded.whole]
        self._cross = [
            MapCapture(DECODER_CROSS, layers, partial(self._quantities, names=names, whole=of), parts, first_pass)
            for layers, of in ((whole, True), ([layer for layer in self._layers if layer not in whole], False))
        ]
        #: By quantity, the captures of encoder, decoder and between them; with any, an encoder pass is needed.
        self.rollouts: dict[str, list[MapCapture[Tensor]]] = {
            name: [
                MapCapture(block, range(len(norm_attentions(model, block))), partial(layer_map, kind=rollouts[name]))
                for block in BLOCK_TYPES
            ]
            for name in recorded.quantities
            if name in rollouts
        }
        self._encoders: dict[str, Tensor] = {}
        self._decoder: Any = model.decoder
        #: The tokens that the rows of the next decoder pass predict, [B, T].
        self.predicted: Tensor | None = sample.get("target")

    @property
    def captures(self) -> list[MapCapture[Any]]:
        """The captures to attach to the model's attentions."""
        return [*self._cross, *(capture for captures in self.rollouts.values() for capture in captures)]

    def take(self) -> list[Quantities]:
        """The quantities of the last decoder pass, one dictionary per layer; arrays [B, …]."""
        found = {layer: of for capture in self._cross for layer, of in zip(capture.layers, capture.take())}
        layers = [found[layer] for layer in self._layers]
        for name, (encoder, decoder_self, decoder_cross) in self.rollouts.items():
            if name not in self._encoders:
                self._encoders[name] = encoder_rollout(encoder.take())
            maps = decoder_rollout(decoder_self.take(), decoder_cross.take(), self._encoders[name][list(self.order)])
            for recorded, layer in zip(layers, self._layers):
                recorded[name] = maps[layer]
        return layers

    def _quantities(self, block: Block, names: Sequence[str], whole: bool) -> Quantities:
        result = {}
        block = replace(block, readout=self._readout)
        for name in names:
            part, _, kind = name.partition("_")
            if part == "layer" and not whole:
                result[name] = torch.zeros_like(block.alpha[:, 0])
            elif name == "transformed_norm":
                of_values = block.values, block.weights.gram_basis, block.real
                result[name] = transformed_norms(block.factor) if whole else vector_norms(*of_values)
            elif part == "head":
                result[name] = head_map(block, kind)
            else:  # without the column of the residual, which belongs to no source token
                result[name] = layer_map(block, kind)[..., : block.alpha.size(-1)]
        return result

    def _readout(self) -> Tensor:
        """E[w] − mean(E) of the :attr:`predicted` tokens w, [B, T, D]; E are the rows of the output projection."""
        if self.predicted is None or not has_readout(self._decoder):
            raise InputError(
                "kind attn_logit needs an output embedding for each predicted token, as wide as the decoder; models "
                "with an adaptive softmax or another output width have none; choose another kind"
            )
        weight = self._decoder.output_projection.weight
        rows = at_least_float32(weight[self.predicted])
        found: Tensor = rows - weight.detach().mean(0, dtype=rows.dtype)
        return found


def has_readout(decoder: Any) -> bool:
    """Whether a decoder has an output embedding of each token, as wide as its layers; ``attn_logit`` needs it."""
    weight = getattr(getattr(decoder, "output_projection", None), "weight", None)
    return weight is not None and weight.size(1) == decoder.embed_dim


class BatchMaps:
    """Quantities of a batch, averaged over the models that were added; float32 on the CPU.

    Each array is [B, L, …], with the axes of ``alignment_eval.maps.sentence`` after the batch axis.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._models = 0
        self._log_probs: list[Tensor] = []

    def add(self, layers: Sequence[Quantities]) -> None:
        """Add one model's quantities, one dictionary per layer."""
        for name in layers[0]:
            stacked = torch.stack([layer[name] for layer in layers], dim=1).float()
            self._sums[name] = self._sums[name] + stacked if name in self._sums else stacked
        self._models += 1

    def add_log_probs(self, model: Any, features: Tensor, tokens: Sequence[Tensor]) -> None:
        """Add one model's log probabilities of the target ``tokens``, from what its decoder returns, [B, T, D]."""
        rows = torch.cat([of_sentence[: len(target)] for of_sentence, target in zip(features, tokens)])
        parts = zip(torch.split(rows, _SOFTMAX_ROWS), torch.split(torch.cat(list(tokens)), _SOFTMAX_ROWS))
        self._log_probs.append(torch.cat([_log_probs(model, *part) for part in parts]))

    def log_probs(self, lengths: Sequence[int]) -> list[NDArray[np.float64]]:
        """The log probabilities of the target tokens of each sentence, of the mean probability over the models."""
        mean = torch.stack(self._log_probs).double().logsumexp(dim=0) - math.log(len(self._log_probs))
        return [of_sentence.cpu().numpy() for of_sentence in torch.split(mean, list(lengths))]

    def means(self) -> dict[str, NDArray[Any]]:
        """The mean of each quantity over the models, [B, L, …]."""
        return {name: (total / self._models).cpu().numpy() for name, total in self._sums.items()}

    def sentences(self, source: Sequence[slice], target: Sequence[slice]) -> list[dict[str, NDArray[Any]]]:
        """The arrays of each sentence without padding: ``source[i]`` and ``target[i]`` are its columns and rows."""
        arrays = self.means()
        cut = []
        for i, (columns, rows) in enumerate(zip(source, target)):
            slices = {"S": columns, "T": rows}
            index = {name: tuple(slices.get(axis, slice(None)) for axis in axes_of(name)) for name in arrays}
            cut.append({name: np.ascontiguousarray(array[i][index[name]]) for name, array in arrays.items()})
        return cut


def _log_probs(model: Any, features: Tensor, target: Tensor) -> Tensor:
    """The log probabilities of ``target`` [N] by the softmax of ``features`` [N, D]."""
    output = model.decoder.output_layer(features[None]), None
    found: Tensor = model.get_normalized_probs(output, log_probs=True, sample={"target": target[None]})
    return found[0].gather(-1, target[:, None])[:, 0]


def real_positions(tokens: Tensor, pad: int) -> list[slice]:
    """The positions of the tokens of each row of ``tokens`` [B, N] that are not padding (padding is on one side)."""
    real = tokens.ne(pad)
    starts, lengths = real.int().argmax(dim=1).tolist(), real.sum(dim=1).tolist()
    return [slice(start, start + length) for start, length in zip(starts, lengths)]


def layers_and_heads(models: Sequence[nn.Module]) -> tuple[int, int]:
    """The number of decoder layers and of heads in each, which the models of an ensemble must share."""
    shapes = [[attention.num_heads for attention in norm_attentions(model, DECODER_CROSS)] for model in models]
    if any(shape != shapes[0] for shape in shapes) or len(set(shapes[0])) != 1:
        raise InputError(
            f"decoder layers differ in their number of heads (one list per model: {shapes}), but maps are stacked and "
            f"averaged over layers and models; give models with the same number of heads, or one model at a time"
        )
    return len(shapes[0]), shapes[0][0]


def forced_maps(
    models: Sequence[Any],
    sample: dict[str, Any],
    hypotheses: Hypotheses,
    recorded: RecordedMaps,
    pad: int,
    bos: int,
    encoder_outs: Sequence[Any] = (),
    log_probs: bool = False,
) -> list[tuple[list[int], BatchMaps]]:
    """For each rank of n-best ``hypotheses`` the sentences that have it, and their quantities, by teacher forcing.

    A decoder pass per rank and model ends with the highest recorded map, unless ``log_probs`` of the hypotheses' tokens
    are computed, too.  ``bos`` is the decoder's first input.  Encoders whose ``encoder_outs`` for this batch are given
    run again only if maps of theirs are recorded.
    """
    net_input = sample["net_input"]
    ranks = range(min(recorded.nbest, max(map(len, hypotheses))))
    # A sentence may have fewer hypotheses than the beam size.
    present = [[i for i, nbest in enumerate(hypotheses) if rank < len(nbest)] for rank in ranks]
    batches = [BatchMaps() for _ in ranks]
    for number, model in enumerate(models):
        recorder = Recorder(model, recorded, sample)
        with teacher_forcing(model), capturing(norm_attentions(model), *recorder.captures, end_pass=not log_probs):
            known = bool(encoder_outs) and not recorder.rollouts
            encoder_out = encoder_outs[number] if known else model.encoder.forward_torchscript(net_input)
            for rank in ranks:
                tokens = [hypotheses[i][rank]["tokens"] for i in present[rank]]
                inputs = data_utils.collate_tokens(tokens, pad, bos, left_pad=False, move_eos_to_beginning=True)
                order = torch.tensor(present[rank], device=inputs.device)
                recorder.order = present[rank]
                recorder.predicted = data_utils.collate_tokens(tokens, pad, left_pad=False)
                rank_out = model.encoder.reorder_encoder_out(encoder_out, order)
                with suppress(PassEnd):
                    features, _ = model.decoder(inputs, encoder_out=rank_out, features_only=True)
                    batches[rank].add_log_probs(model, features, tokens)
                batches[rank].add(recorder.take())
    return list(zip(present, batches))
