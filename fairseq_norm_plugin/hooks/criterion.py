"""The criterion ``guided_alignment``: translation, and maps that learn given links between subwords.

Garg et al. (2019, "Jointly Learning to Align and Translate with Transformer Models") guide a head of one layer in the
row that predicts the target word, and let it see the whole target sentence so that it can know that word.  The maps
here are causal.  So they are guided in AWI, where the row has read the word (Chen et al. 2020, "Accurate Word Alignment
Induction from Neural Machine Translation", shift the row for the same reason).
"""

# No `from __future__ import annotations` here: fairseq reads the field types at run time.
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy_with_alignment import (
    LabelSmoothedCrossEntropyCriterionWithAlignment,
    LabelSmoothedCrossEntropyCriterionWithAlignmentConfig,
)
from torch import Tensor, nn

from alignment_eval.command_line import option
from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import MapName, MapNames
from fairseq_norm_plugin.capture.attention import MapCapture, Parts, capturing, in_one_thread, norm_attentions
from fairseq_norm_plugin.capture.layers import DECODER_CROSS
from fairseq_norm_plugin.capture.recorder import layers_and_heads

_SMALLEST = 1e-9  # a weight that underflows to 0 would make the loss infinite


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
    token.  Rows without links are free.  The losses of several maps are averaged.  Validation has no alignment loss.
    """

    def __init__(
        self, task: Any, sentence_avg: bool, label_smoothing: float, alignment_lambda: float, guided_maps: str
    ) -> None:
        super().__init__(task, sentence_avg, label_smoothing, alignment_lambda)
        self._maps = MapNames(guided_maps)
        layers = sorted({name.layer for name in self._maps})
        self._guided = MapCapture(DECODER_CROSS, layers, attrgetter("alpha"), Parts.WEIGHTS, first_pass=True)

    def forward(self, model: nn.Module, sample: dict[str, Any], reduce: bool = True) -> Any:
        """The loss of a batch, as fairseq's criteria compute it."""
        if not model.training:
            return super().forward(model, {**sample, "alignments": None}, reduce)
        if sample.get("alignments") is None:
            self._check_links()
            return super().forward(model, sample, reduce)
        self._check_maps(model)
        with in_one_thread([model]), capturing(norm_attentions(model, DECODER_CROSS), self._guided):
            return super().forward(model, sample, reduce)

    def compute_alignment_loss(self, sample: dict[str, Any], net_output: Any) -> Tensor:
        """The mean loss of the guided maps, summed over the target tokens that have links."""
        weights = dict(zip(self._guided.layers, self._guided.take()))
        losses = [map_loss(weights[name.layer], name, sample) for name in self._maps]
        return sum(losses[1:], losses[0]) / len(losses)

    def _check_maps(self, model: nn.Module) -> None:
        layers, heads = layers_and_heads([model])
        if beyond := self._maps.beyond(range(layers), heads, "the model"):
            raise UsageError(f"--guided-maps: {beyond}; name maps in that range")

    def _check_links(self) -> None:
        """A batch may lack links, the training data may not: fairseq passes a missing file by without a word."""
        subset = self.task.cfg.train_subset
        if getattr(self.task.datasets.get(subset), "align_dataset", None) is None:
            raise UsageError(
                f"--criterion guided_alignment: subset {subset} has no links; give --load-alignments and data of "
                f"fairseq-preprocess --align-suffix"
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
