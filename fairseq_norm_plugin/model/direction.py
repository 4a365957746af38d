"""One direction of translation: its models, their subwords, and the maps of a batch of sentence pairs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data.language_pair_dataset import collate
from numpy.typing import NDArray
from torch import nn

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import ExtractionOptions, MapName
from alignment_eval.maps.kinds import KINDS
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.profiles.profile import profile_path
from fairseq_norm_plugin.capture.attention import teacher_forcing
from fairseq_norm_plugin.capture.recorder import (
    Hypotheses,
    RecordedMaps,
    forced_maps,
    layers_and_heads,
    real_positions,
    recorded_quantities,
)
from fairseq_norm_plugin.process import enough_threads
from fairseq_norm_plugin.text.tokenise import Line, SentencePair, TextPipeline
from fairseq_norm_plugin.text.tokens import Frames


def lengths_of(pairs: Mapping[int, SentencePair]) -> dict[int, list[int]]:
    """The number of tokens of the sides of each pair."""
    return {id_: pair.lengths for id_, pair in pairs.items()}


def count_tokens(pairs: Mapping[int, SentencePair]) -> int:
    """The tokens of all sides of a batch."""
    return sum(sum(pair.lengths) for pair in pairs.values())


class Direction:
    """A model (or an ensemble) of one direction, with the segmentation of its text.

    Args:
        models: the models, in evaluation mode.
        dictionaries: fairseq's dictionaries of source and target.
        pipelines: make words and their subwords of a source and of a target.
        name: path of the checkpoint, also for messages.
        frames: the special tokens around the sides; default: ``</s>`` after them.
        profile: where its profile is; default: beside the checkpoint.
        trained: the languages that the checkpoint says it was trained from and to, if it is used for others.
        guided: the maps that it was trained to align with (``--guided-maps``), some in AWI and some in AWO.

    Attributes:
        name, pipelines, frames, profile, trained, guided: as given, or their defaults.
        layers: number of decoder layers.
        limits: maximum length of source and target, in tokens with ``</s>``.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        dictionaries: tuple[Any, Any],
        pipelines: tuple[TextPipeline, TextPipeline],
        name: str,
        frames: Frames | None = None,
        profile: Path | None = None,
        trained: tuple[str, str] | None = None,
        guided: Sequence[MapName] = (),
    ) -> None:
        self._models: list[Any] = list(models)
        self._dictionaries = dictionaries
        self.pipelines = pipelines
        self.frames = frames or Frames.plain(dictionaries[1].eos())
        self._special_ids = self.frames.ids
        self.name, self.profile = name, profile or profile_path(name)
        self.trained = trained
        self.guided = tuple(guided)
        self.layers = layers_and_heads(self._models)[0]
        self.limits = tuple(min(model.max_positions()[which] for model in self._models) for which in (0, 1))

    @property
    def device(self) -> torch.device:
        """Where the models are."""
        return torch.device(next(self._models[0].parameters()).device)

    def check(self, options: ExtractionOptions) -> None:
        """Check that the models have the maps that ``options`` name."""
        layers, heads = layers_and_heads(self._models)
        for map_ in options.heads:
            if map_.head is not None and not KINDS[options.kind].heads:
                raise UsageError(
                    f"head {map_} of kind {options.kind}: this kind has maps of whole layers only; name a layer"
                )
            if map_.layer >= layers or (map_.head is not None and map_.head >= heads):
                raise UsageError(
                    f"map {map_} (LAYER.HEAD, or LAYER for a whole layer): {self.name} has {layers} decoder layers of "
                    f"{heads} heads, counted from 0; name maps in that range"
                )

    def encode(self, pair: tuple[Line, Line]) -> SentencePair:
        """Encode source and target of a pair."""
        return SentencePair(self.encode_line(pair[0], 0), self.encode_line(pair[1], 1))

    def encode_line(self, line: Line, which: int) -> Line:
        """Encode a source (``which`` 0) or a target (1).

        A word of the text that looks like ``</s>``, ``<pad>`` or a tag is unknown.
        """
        dictionary, frame = self._dictionaries[which], (self.frames.source, self.frames.target)[which]
        side = self.pipelines[which].segment(
            line, *([dictionary[i] for i in part] for part in (frame.before, frame.after))
        )
        known = map(dictionary.index, side.tokens[len(frame.before) : len(side.tokens) - len(frame.after)])
        unknown = dictionary.unk()
        ids = [id_ if id_ >= dictionary.nspecial and id_ not in self._special_ids else unknown for id_ in known]
        whole = np.array([*frame.before, *ids, *frame.after], dtype=np.int64)
        return replace(line, side=side, ids=torch.from_numpy(whole), unknown=ids.count(unknown))

    def sample(self, pairs: Mapping[int, SentencePair], targets: bool = True) -> dict[str, Any]:
        """Collate pairs, given by id, to a batch on the models' device, with their targets or without."""
        items = []
        for id_, (source, target) in pairs.items():
            items.append({"id": id_, "source": source.ids, **({"target": target.ids} if targets else {})})
        sample = dict(collate(items, self._dictionaries[0].pad(), self.frames.first))
        inputs = {name: value for name, value in sample["net_input"].items() if torch.is_tensor(value)}
        moved = {name: value.to(self.device) for name, value in inputs.items()}
        whole = None if sample["target"] is None else sample["target"].to(self.device)
        return {**sample, "net_input": moved, "target": whole}

    def knows(self, piece: str, which: int) -> bool:
        """Whether the dictionary of the source (``which`` 0) or of the target (1) has a piece."""
        return piece in self._dictionaries[which]

    def refusal(self, lines: Sequence[Line]) -> str:
        """Why the models cannot read an encoded source, and its target if it is there; empty if they can.

        A line is empty if it has no words, or if the models read no subword of them.
        """
        longer = [limit for limit, line in zip(self.limits, lines) if len(line.ids) > limit]
        if longer:
            return f"longer than {longer[0]} tokens"
        return "" if all(line.side.word_count for line in lines) else "empty"

    @torch.no_grad()
    def maps(
        self, pairs: Mapping[int, SentencePair], kinds: Sequence[str], names: Sequence[MapName], log_probs: bool = False
    ) -> dict[int, SentenceMaps]:
        """Compute the maps ``names`` of each pair of a batch, by id, in one pass that stops at the highest layer.

        ``log_probs``: the pass goes on to the log probabilities of the target tokens.
        """
        recorded = self.recorded(pairs, kinds, [name.layer for name in names])
        recorded = replace(recorded, whole={name.layer for name in names if name.head is None})
        sample = self.sample(pairs, targets=False)
        ids = sample["id"].tolist()
        src_tokens = sample["net_input"]["src_tokens"]
        hypotheses: Hypotheses = [[{"tokens": pairs[id_][1].ids.to(src_tokens.device)}] for id_ in ids]
        pad = self._dictionaries[1].pad()
        with enough_threads(self._models, count_tokens(pairs)):
            ((_, batch),) = forced_maps(
                self._models, sample, hypotheses, recorded, pad, self.frames.first, log_probs=log_probs
            )
        lengths = [len(pairs[id_][1].ids) for id_ in ids]
        arrays = batch.sentences(real_positions(src_tokens, pad), list(map(slice, lengths)))
        probs = batch.log_probs(lengths) if log_probs else itertools.repeat(None)
        return {
            id_: SentenceMaps(
                id_, pairs[id_][0].side, pairs[id_][1].side, recorded.layers, arrays=of_pair, log_probs=of_tokens
            )
            for id_, of_pair, of_tokens in zip(ids, arrays, probs)
        }

    def recorded(self, pairs: Mapping[int, SentencePair], kinds: Sequence[str], layers: Sequence[int]) -> RecordedMaps:
        """The quantities to record of a batch for maps of ``kinds`` and ``layers``."""
        quantities = recorded_quantities(list(kinds), len(self._models))
        return RecordedMaps(tuple(sorted(set(layers))), quantities)

    @torch.no_grad()
    def scores(self, pairs: Mapping[int, SentencePair]) -> dict[int, NDArray[np.float64]]:
        """The log probability (base e) of each token of each target given its source, by the first model."""
        sample = self.sample(pairs)
        target = sample["target"]
        model = self._models[0]
        with enough_threads([model], count_tokens(pairs)), teacher_forcing(model):
            lprobs = model.get_normalized_probs(model(**sample["net_input"]), log_probs=True, sample=sample)
        pads = target == self._dictionaries[1].pad()
        of_tokens = lprobs.gather(-1, target[..., None])[..., 0].masked_fill(pads, 0)
        rows = zip(sample["id"].tolist(), of_tokens.double().cpu().numpy(), (~pads).sum(-1).tolist())
        return {id_: row[:length] for id_, row, length in rows}
