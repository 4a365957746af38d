"""The criterion ``guided_alignment``: translation, and maps that learn given links between subwords.

Garg et al. (2019, "Jointly Learning to Align and Translate with Transformer Models") guide a head of one layer in the
row that predicts the target word, and let it see the whole target sentence so that it can know that word.  The maps
here are causal.  So they are guided in AWI, where the row has read the word (Chen et al. 2020, "Accurate Word Alignment
Induction from Neural Machine Translation", shift the row for the same reason).
"""

# No `from __future__ import annotations` here: fairseq reads the field types at run time.
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy_with_alignment import (
    LabelSmoothedCrossEntropyCriterionWithAlignment,
    LabelSmoothedCrossEntropyCriterionWithAlignmentConfig,
)
from fairseq.modules.checkpoint_activations import unwrap_checkpoint
from torch import Tensor, nn

from alignment_eval.command_line import option
from alignment_eval.errors import InputError, UsageError, say
from alignment_eval.extraction.method import MapName, MapNames
from alignment_eval.links.files import CONTRADICTED
from fairseq_norm_plugin.capture.attention import MapCapture, Parts, capturing, in_one_thread, norm_attentions
from fairseq_norm_plugin.capture.layers import DECODER_CROSS
from fairseq_norm_plugin.capture.recorder import layers_and_heads
from fairseq_norm_plugin.text.tokens import Vocabulary

_SMALLEST = 1e-9  # a weight that underflows to 0 would make the loss infinite
_SHOWN = "alignment_loss_shown"  # whether the loss of a batch is one to log
_SAMPLE = 2000  # sentences that tell links of words from links of subwords
_REMEDY = "make the links of the very text that was binarised (align-eval convert --subwords auto)"


@dataclass
class GuidedAlignmentConfig(LabelSmoothedCrossEntropyCriterionWithAlignmentConfig):  # type: ignore[misc]
    """fairseq's options of training with alignments, and the maps that learn them."""

    guided_maps: str = option(
        "maps of weights that learn the links: LAYER.HEAD:SETTING, or LAYER:SETTING for the mean of a layer's heads, "
        "counted from 0, several separated by commas; awi (the row that reads the target token) unless the setting is "
        "awo (the row that predicts it)",
        "0.0:awi",
    )


@register_criterion("guided_alignment", dataclass=GuidedAlignmentConfig)
class GuidedAlignmentCriterion(LabelSmoothedCrossEntropyCriterionWithAlignment):  # type: ignore[misc]
    """fairseq's ``label_smoothed_cross_entropy_with_alignment`` for any heads of any Transformer, in AWI or AWO.

    The loss of a map is the cross-entropy of its rows against the links, equal shares for the links of one target
    token.  Rows without links are free.  The losses of several maps are averaged.  A batch of validation
    without links has no alignment loss.

    Raises:
        UsageError: maps that the model lacks, or training data without links.
        InputError: links that do not fit their text (:func:`check_links`).
    """

    def __init__(
        self, task: Any, sentence_avg: bool, label_smoothing: float, alignment_lambda: float, guided_maps: str
    ) -> None:
        super().__init__(task, sentence_avg, label_smoothing, alignment_lambda)
        self._maps = MapNames(guided_maps)
        layers = sorted({name.layer for name in self._maps})
        self._guided = MapCapture(DECODER_CROSS, layers, attrgetter("alpha"), Parts.WEIGHTS, first_pass=True)
        task.check_loaded = self._check_links

    def forward(self, model: nn.Module, sample: dict[str, Any], reduce: bool = True) -> Any:
        """The loss of a batch, as fairseq's criteria compute it."""
        linked = sample.get("alignments") is not None
        with ExitStack() as stack:
            if linked:
                self._check_maps(model)
                stack.enter_context(in_one_thread([model]))
                stack.enter_context(capturing(norm_attentions(model, DECODER_CROSS), self._guided))
            loss, size, logged = super().forward(model, sample, reduce)
        # processes wait for each other's values, so each logs the same ones, also of a batch without links
        return loss, size, {"alignment_loss": 0.0, **logged, _SHOWN: float(linked or model.training)}

    def compute_alignment_loss(self, sample: dict[str, Any], net_output: Any) -> Tensor:
        """The mean loss of the guided maps, summed over the target tokens that have links."""
        weights = dict(zip(self._guided.layers, self._guided.take()))
        losses = [map_loss(weights[name.layer], name, sample) for name in self._maps]
        loss = sum(losses[1:], losses[0]) / len(losses)
        if torch.is_grad_enabled() and not loss.requires_grad:
            raise UsageError("--guided-maps: the maps have no gradient, so nothing would be learnt; train their layers")
        return loss

    @staticmethod
    def reduce_metrics(logging_outputs: Sequence[dict[str, Any]]) -> None:
        """Log the mean losses of several batches; in validation, that of the maps only where there are links."""
        shown = any(logged.get(_SHOWN) for logged in logging_outputs)
        criterion = LabelSmoothedCrossEntropyCriterionWithAlignment if shown else LabelSmoothedCrossEntropyCriterion
        criterion.reduce_metrics(logging_outputs)

    def _check_maps(self, model: nn.Module) -> None:
        layers, heads = layers_and_heads([model])
        if beyond := self._maps.beyond(range(layers), heads, "the model"):
            raise UsageError(f"--guided-maps: {beyond}; name maps in that range")
        for attention in norm_attentions(model, DECODER_CROSS):
            if attention.site.number in self._guided.layers and hasattr(attention.site.layer, "precheckpoint_forward"):
                # its first pass has no gradients, and the second one comes after the loss
                unwrap_checkpoint(attention.site.layer)
                say(f"--guided-maps: decoder layer {attention.site.number} keeps its activations")

    def _check_links(self, subset: str, data: Any) -> None:
        """Check the links of a subset as it is loaded: fairseq drops those that do not fit."""
        if getattr(data, "align_dataset", None) is not None:
            check_links(data, subset, self.task.vocabularies)
        elif subset == self.task.cfg.train_subset:
            raise UsageError(
                f"--criterion guided_alignment: subset {subset} has no links; give --load-alignments and data of "
                f"fairseq-preprocess --align-suffix"
            )


def check_links(data: Any, subset: str, vocabularies: Sequence[Vocabulary]) -> None:
    """Check that the links of ``data``, fairseq's LanguagePairDataset, are links of its tokens.

    Raises:
        InputError: no links, links of another number of lines, a link outside its sentence pair, or indices that count
            from 1 or count words.
    """
    links, sizes = data.align_dataset, np.stack([data.src_sizes, data.tgt_sizes], axis=1) - 1  # without </s>
    if len(links) != len(sizes):
        raise InputError(f"subset {subset}: links of {len(links)} lines for a text of {len(sizes)}; {_REMEDY}")
    lowest, highest = np.ones_like(sizes), np.full_like(sizes, -1)
    for n in range(len(sizes)):
        of_pair = np.asarray(links[n]).reshape(-1, 2)
        if len(of_pair):
            lowest[n], highest[n] = of_pair.min(axis=0), of_pair.max(axis=0)
    linked = highest[:, 0] >= 0
    if not linked.any():
        raise InputError(f"subset {subset}: no line has a link; {_REMEDY}")
    ones = lowest[linked].all() and (lowest[linked] == 1).any(axis=1).sum() >= CONTRADICTED
    outside = np.flatnonzero((highest >= sizes).any(axis=1))
    if ones:
        raise InputError(
            f"subset {subset}: no link names the first token of its sentence, so the links count from 1; make them "
            f"count from 0: align-eval convert --from-base 1"
        )
    if len(outside):
        n = outside[0]
        (i, j), (height, width) = highest[n], sizes[n]
        raise InputError(
            f"subset {subset}, line {n + 1}: links name tokens up to {i} and {j}, counted from 0, but the source has "
            f"{height} and the target {width}; {len(outside)} of {len(sizes)} lines have such links; {_REMEDY}"
        )
    sample = np.flatnonzero(linked)[:_SAMPLE]
    sides = zip((data.src, data.tgt), vocabularies)
    words = np.stack([[known.spell(side[n]).side.word_count for n in sample] for side, known in sides], axis=1)
    cut = (words < sizes[sample]).any(axis=1)
    if cut.sum() >= CONTRADICTED and (highest[sample] < words)[cut].all():
        raise InputError(
            f"subset {subset}: no link names a token beyond the number of words, so the links count words, but the "
            f"text is in subwords; {_REMEDY}"
        )


def map_loss(weights: Tensor, name: MapName, sample: dict[str, Any]) -> Tensor:
    """Cross-entropy of one map against the links of a batch, summed over the target tokens that have links.

    ``weights`` are those of the map's layer, [B, H, T, S].  fairseq's batch has ``alignments`` [links, 2]: the source
    position, and the target position counted through the batch [B · T]; ``align_weights`` [links] are the shares of
    each link in its target token.  The setting is AWI unless stated.
    """
    rows = weights.mean(dim=1) if name.head is None else weights[:, name.head]
    source, target = sample["alignments"].T
    # fairseq loads no link of </s>, so the next row is always one of the same sentence
    read = target if name.setting == "awo" else target + 1
    given = rows.flatten(0, 1)[read, source].clamp(min=_SMALLEST)
    loss: Tensor = -(given.log() * sample["align_weights"]).sum()
    return loss
