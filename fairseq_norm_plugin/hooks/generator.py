"""Beam search and forced scoring whose hypotheses carry maps.

fairseq's search is unchanged.  The map that ``--print-alignment`` shows is computed step by step and carried in
fairseq's own attention buffer (in float32, not cast to the model's dtype).  Recorded quantities come from one
teacher-forced pass over the final hypotheses and have the key ``norm_maps``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from fairseq import utils
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.profiles.chosen import ChosenMethod
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, in_one_thread, norm_attentions, teacher_forcing
from fairseq_norm_plugin.capture.recorder import (
    MAPS_KEY,
    BatchMaps,
    Hypotheses,
    RecordedMaps,
    Recorder,
    forced_maps,
    layer_capture,
    real_positions,
)

_SPECIAL, _PAD = -1, -2  # what stands for all special tokens, and for padding, of which there is none


@dataclass(frozen=True)
class NormOptions:
    """The options of a norm task, checked against a model (hooks.options.resolve)."""

    maps: ExtractionOptions  #: what is printed: a layer or some of its heads; it is extracted unless a profile says
    recorded_kinds: tuple[str, ...]
    recorded_layers: tuple[int, ...]  #: decoder layers, from 0
    layer_heads: int  #: number of heads of a layer
    extraction: ChosenMethod | None  #: how word alignments are read from the maps; None: there are none


@dataclass(frozen=True)
class PrintedMap:
    """The map of ``maps`` that ``--print-alignment`` shows.

    ``specials`` are the ids, of source and target, that a hard alignment omits (tokens.special_ids).
    """

    maps: ExtractionOptions
    style: str  # hard or soft
    specials: Sequence[Collection[int]]

    def captures(self, models: Sequence[Any]) -> list[MapCapture[Tensor]]:
        """A capture of the map for each model."""
        heads = [name.head for name in self.maps.heads if name.head is not None]
        return [layer_capture(self.maps.kind, self.maps.heads[0].layer, heads or None) for _ in models]

    def alignment(self, map_: Tensor, source: Tensor, target: Tensor) -> Any:
        """The alignment in the form that fairseq-generate prints, from a map [T, S] without padding.

        AWO takes the row that predicts a token, AWI the row that it is input to; ``</s>``, the last, is no input.
        """
        if self.maps.setting == "awi":
            map_, target = map_[1:], target[:-1]
        extract = utils.extract_soft_alignment if self.style == "soft" else utils.extract_hard_alignment
        tokens = (
            ids.masked_fill(torch.isin(ids, torch.tensor(sorted(special), device=ids.device)), _SPECIAL)
            for ids, special in zip((source, target), self.specials)
        )
        return extract(map_, *tokens, _PAD, _SPECIAL)


class NormEnsembleModel(EnsembleModel):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's ensemble, whose attention is the printed map, if there is one: the mean over the models."""

    def __init__(self, models: Sequence[Any], printed: PrintedMap | None) -> None:
        super().__init__(models)
        self.captures = printed.captures(models) if printed else []
        self.attentions = [norm_attentions(model) for model in models]  # once here, not in every step
        self.encoder_outs: list[Any] = []  #: what the encoders returned last, by model

    def forward_encoder(self, net_input: dict[str, Tensor]) -> Any:
        """fairseq's pass; keeps what it returns, which fairseq's search throws away."""
        self.encoder_outs = super().forward_encoder(net_input)
        return self.encoder_outs

    def forward_decoder(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """fairseq's step, with the map of the last target position, [B, S], instead of its attention."""
        if not self.captures:
            log_probs, attention = super().forward_decoder(*args, **kwargs)
            return log_probs, attention
        with ExitStack() as stack:
            for attentions, capture in zip(self.attentions, self.captures):
                stack.enter_context(capturing(attentions, capture))
            log_probs, _ = super().forward_decoder(*args, **kwargs)
        maps = [capture.take()[0][:, -1] for capture in self.captures]
        return log_probs, torch.stack(maps).mean(dim=0)


class NormSequenceGenerator(SequenceGenerator):  # type: ignore[misc]
    """fairseq's beam search; hypotheses carry the alignment of the printed map and the recorded quantities."""

    model: EnsembleModel
    printed: PrintedMap | None = None
    recorded: RecordedMaps | None = None

    @torch.no_grad()
    def generate(self, models: Sequence[Any], sample: dict[str, Any], **kwargs: Any) -> Hypotheses:
        """fairseq's generate."""
        with in_one_thread(models):
            hypotheses: Hypotheses = self._generate(sample, **kwargs)
        src_tokens = sample["net_input"]["src_tokens"]
        columns = real_positions(src_tokens, self.pad)
        if self.printed:
            prefixes = kwargs.get("prefix_tokens")
            whole = [] if prefixes is None or self.beam_size == 1 else prefixes.eq(self.eos).any(dim=1).tolist()
            for tokens, places, nbest, junk in zip_longest(src_tokens, columns, hypotheses, whole):
                for hypothesis in nbest:
                    if junk:  # the whole target was given, and fairseq's attention is of other hypotheses
                        hypothesis["alignment"] = []
                        continue
                    map_ = hypothesis["attention"].t()[:, places]  # fairseq's is [S with pads, T]
                    hypothesis["alignment"] = self.printed.alignment(map_, tokens[places], hypothesis["tokens"])
        if self.recorded:
            bos = self.eos if kwargs.get("bos_token") is None else kwargs["bos_token"]
            ranks = forced_maps(models, sample, hypotheses, self.recorded, self.pad, bos, self.model.encoder_outs)
            for rank, (present, batch) in enumerate(ranks):
                rows = [slice(0, len(hypotheses[i][rank]["tokens"])) for i in present]
                for i, arrays in zip(present, batch.sentences([columns[i] for i in present], rows)):
                    hypotheses[i][rank][MAPS_KEY] = arrays
        return hypotheses


class NormSequenceScorer(SequenceScorer):  # type: ignore[misc]
    """fairseq's forced scoring; the maps come from the scoring pass itself."""

    printed: PrintedMap | None = None
    recorded: RecordedMaps | None = None

    @torch.no_grad()
    def generate(self, models: Sequence[Any], sample: dict[str, Any], **kwargs: Any) -> Hypotheses:
        """fairseq's generate."""
        if sample.get("target") is None:
            raise InputError("--score-reference needs references, but the data set has no target side; binarise one")
        printed = self.printed.captures(models) if self.printed else []
        recorders = [Recorder(model, self.recorded, sample) for model in models] if self.recorded else []
        with in_one_thread(models), ExitStack() as stack:
            for i, model in enumerate(models):
                stack.enter_context(teacher_forcing(model))
                captures = [capture for recorder in recorders[i : i + 1] for capture in recorder.captures]
                stack.enter_context(capturing(norm_attentions(model), *printed[i : i + 1], *captures))
            hypotheses: Hypotheses = super().generate(models, sample, **kwargs)
        src_tokens, target = sample["net_input"]["src_tokens"], sample["target"]
        columns, rows = real_positions(src_tokens, self.pad), real_positions(target, self.pad)
        if self.printed:
            maps = torch.stack([capture.take()[0] for capture in printed]).mean(dim=0)
            for i, (hypothesis,) in enumerate(hypotheses):
                source, map_ = src_tokens[i, columns[i]], maps[i][rows[i], columns[i]]
                hypothesis["alignment"] = self.printed.alignment(map_, source, hypothesis["tokens"])
        if self.recorded:
            batch = BatchMaps()
            for recorder in recorders:
                batch.add(recorder.take())
            for (hypothesis,), arrays in zip(hypotheses, batch.sentences(columns, rows)):
                hypothesis[MAPS_KEY] = arrays
        return hypotheses


def carry_maps(generator: Any, printed: PrintedMap | None, recorded: RecordedMaps | None) -> Any:
    """Turn the generator or scorer that a fairseq task has built into the one of this module, in place.

    Everything that the task has set on it is kept (end of sentence, stripped symbols, search).
    """
    for stock, ours in ((SequenceGenerator, NormSequenceGenerator), (SequenceScorer, NormSequenceScorer)):
        if type(generator) is stock:
            generator.__class__ = ours
            generator.printed, generator.recorded = printed, recorded
            if stock is SequenceGenerator:
                generator.model = NormEnsembleModel(list(generator.model.models), printed)
            return generator
    raise UsageError(
        f"the task builds a {type(generator).__name__}, but only fairseq's SequenceGenerator and SequenceScorer can "
        f"carry maps"
    )
