"""One direction of translation: its models, their subwords, the maps of a batch of pairs, and its profile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from fairseq.data.data_utils import batch_by_size
from fairseq.data.language_pair_dataset import collate
from numpy.typing import NDArray
from torch import nn

from alignment_eval.errors import UsageError, progress_bar
from alignment_eval.extraction.method import DEFAULTS, ExtractionOptions, MapName
from alignment_eval.maps.kinds import KINDS
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.profiles.profile import UPPER_KIND, Profile, fit_profile, profile_path
from fairseq_norm_plugin.capture.attention import teacher_forcing
from fairseq_norm_plugin.capture.recorder import (
    Hypotheses,
    RecordedMaps,
    forced_maps,
    has_readout,
    layers_and_heads,
    real_positions,
    recorded_quantities,
)
from fairseq_norm_plugin.environment import enough_threads
from fairseq_norm_plugin.text.pair import Line, SentencePair
from fairseq_norm_plugin.text.tokenise import TextPipeline
from fairseq_norm_plugin.text.tokens import SpecialTokens, Vocabulary

#: Tokens of a batch at most whose maps of all layers are held, which takes gigabytes of larger batches in large models.
_HELD_TOKENS = 1000
#: A pair as each model reads it: encoded by the model of its own direction, and exchanged by that of the other.
Encoded = tuple[SentencePair, ...]
#: An encoded pair, of one direction or of all.
Pair = TypeVar("Pair")


def count_tokens(pairs: Mapping[int, SentencePair]) -> int:
    """The tokens of all sides of a batch."""
    return sum(sum(pair.lengths) for pair in pairs.values())


def length_batches(
    pairs: Mapping[int, Pair], max_tokens: int, lengths: Callable[[Any], Sequence[int]] = attrgetter("lengths")
) -> Iterator[dict[int, Pair]]:
    """Batches of encoded pairs of similar length, by id, short pairs first, with at least one pair in each.

    Pads included, the longer sides of a batch have ``max_tokens``; ``lengths`` gives the tokens of each side of a pair.
    """
    if not pairs:
        return
    ids, table = list(pairs), np.array(list(map(lengths, pairs.values())), dtype=np.int64)
    order = np.lexsort((*table.T, table.max(axis=1)))
    longest = table.max(axis=1)[order]
    # fairseq's function indexes the lengths by these numbers
    batches = batch_by_size(
        np.arange(len(order)), None, num_tokens_vec=longest, max_tokens=max(max_tokens, int(longest[-1]))
    )
    for batch in batches:
        yield {ids[row]: pairs[ids[row]] for row in order[batch]}


def encode(pair: SentencePair, directions: Sequence[Direction]) -> Encoded:
    """A source-target pair as each of the models reads it."""
    return tuple(direction.encode(own) for direction, own in zip(directions, (pair, pair.exchanged)))


def refusal(encoded: Encoded, directions: Sequence[Direction]) -> str:
    """Why one of the models cannot read a pair; empty if all can."""
    return next(filter(None, (direction.refusal(own) for direction, own in zip(directions, encoded))), "")


def usable_pairs(pairs: Iterable[SentencePair], directions: Sequence[Direction]) -> list[Encoded]:
    """The first different source-target pairs that all models can align; they are read as far as needed."""
    different: dict[tuple[tuple[str, ...], ...], Encoded] = {}
    for pair in itertools.chain.from_iterable(pair.sentences for pair in pairs):
        encoded = encode(pair, directions)
        if not refusal(encoded, directions):
            different.setdefault(pair.words, encoded)
        if len(different) == DEFAULTS.profile_pairs:
            break
    return list(different.values())


class Direction:
    """A model (or an ensemble) of one direction, with the segmentation of its text.

    Args:
        models: the models, in evaluation mode.
        name: path of the checkpoint, also for messages.
        special_tokens: around the sides; default: ``</s>`` after them.
        profile: where its profile is; default: beside the checkpoint.
        trained: the languages that the checkpoint says it was trained from and to, if it is used for others.
        guided: the maps that it was trained to align with (``--guided-maps``), some in AWI and some in AWO.
        named: whether the checkpoint says its languages.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        vocabularies: tuple[Vocabulary, Vocabulary],
        pipelines: tuple[TextPipeline, TextPipeline],
        name: str,
        special_tokens: SpecialTokens | None = None,
        profile: Path | None = None,
        trained: tuple[str, str] | None = None,
        guided: Sequence[MapName] = (),
        named: bool = False,
    ) -> None:
        self.models: list[Any] = list(models)
        self.vocabularies = vocabularies
        self.pipelines = pipelines
        self.special_tokens = special_tokens or SpecialTokens.plain(vocabularies[1].dictionary.eos())
        self._special_ids = self.special_tokens.ids
        self.name, self.profile = name, profile or profile_path(name)
        self.trained, self.named = trained, named
        self.guided = tuple(guided)
        self.layers, self.heads = layers_and_heads(self.models)
        #: The maximum lengths of source and target, in tokens with ``</s>``.
        self.limits = tuple(min(model.max_positions()[which] for model in self.models) for which in (0, 1))

    @property
    def device(self) -> torch.device:
        """Where the models are."""
        return torch.device(next(self.models[0].parameters()).device)

    def check(self, options: ExtractionOptions) -> None:
        """Check that the models have the maps that ``options`` name."""
        for map_ in options.heads:
            if map_.head is not None and not KINDS[options.kind].heads:
                raise UsageError(
                    f"head {map_} of kind {options.kind}: this kind has maps of whole layers only; name a layer"
                )
        if beyond := options.heads.beyond(range(self.layers), self.heads, self.name):
            raise UsageError(f"{beyond}; name maps in that range")

    def encode(self, pair: tuple[Line, Line]) -> SentencePair:
        """Encode source and target of a pair."""
        return SentencePair(self.encode_line(pair[0], 0), self.encode_line(pair[1], 1))

    def encode_line(self, line: Line, which: int) -> Line:
        """Encode a source (``which`` 0) or a target (1).

        A word of the text that looks like ``</s>``, ``<pad>`` or a tag is unknown.
        """
        dictionary, (prefix, suffix) = self.vocabularies[which].dictionary, self.special_tokens.around(which)
        side = self.pipelines[which].segment(line, *([dictionary[i] for i in part] for part in (prefix, suffix)))
        known = map(dictionary.index, side.tokens[len(prefix) : len(side.tokens) - len(suffix)])
        unknown = dictionary.unk()
        ids = [id_ if id_ >= dictionary.nspecial and id_ not in self._special_ids else unknown for id_ in known]
        whole = np.array([*prefix, *ids, *suffix], dtype=np.int64)
        return replace(line, side=side, ids=torch.from_numpy(whole), unknown=ids.count(unknown))

    def sample(self, pairs: Mapping[int, SentencePair], targets: bool = True) -> dict[str, Any]:
        """Collate pairs, given by id, to a batch on the models' device, with their targets or without."""
        items = [
            {"id": id_, "source": pair.source.ids, **({"target": pair.target.ids} if targets else {})}
            for id_, pair in pairs.items()
        ]
        sample = dict(collate(items, self.vocabularies[0].dictionary.pad(), self.special_tokens.first))
        inputs = {name: value for name, value in sample["net_input"].items() if torch.is_tensor(value)}
        moved = {name: value.to(self.device) for name, value in inputs.items()}
        whole = None if sample["target"] is None else sample["target"].to(self.device)
        return {**sample, "net_input": moved, "target": whole}

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
        layers = tuple(sorted({name.layer for name in names}))
        whole = {name.layer for name in names if name.head is None}
        recorded = RecordedMaps(layers, recorded_quantities(list(kinds), len(self.models)), whole=whole)
        sample = self.sample(pairs, targets=False)
        ids, src_tokens = sample["id"].tolist(), sample["net_input"]["src_tokens"]
        hypotheses: Hypotheses = [[{"tokens": pairs[id_][1].ids.to(src_tokens.device)}] for id_ in ids]
        pad = self.vocabularies[1].dictionary.pad()
        with enough_threads(self.models, count_tokens(pairs)):
            ((_, batch),) = forced_maps(
                self.models, sample, hypotheses, recorded, pad, self.special_tokens.first, log_probs=log_probs
            )
        lengths = [len(pairs[id_][1].ids) for id_ in ids]
        arrays = batch.sentences(real_positions(src_tokens, pad), list(map(slice, lengths)))
        probs = batch.log_probs(lengths) if log_probs else itertools.repeat(None)
        return {
            id_: SentenceMaps(
                id_, pairs[id_].source.side, pairs[id_].target.side, layers, arrays=own, log_probs=of_tokens
            )
            for id_, own, of_tokens in zip(ids, arrays, probs)
        }

    def fit_profile(self, pairs: Iterable[SentencePair], identity: str, max_tokens: int) -> Profile:
        """The profile of the model of this ``identity``: by its training to align, else by its maps of encoded pairs.

        ``pairs`` are :func:`usable_pairs`, as this model reads them.
        """
        encoded = dict(enumerate(pairs))
        if len(encoded) < DEFAULTS.fewest_pairs:
            encoded = {}
        layers = range(self.layers)
        batches = list(length_batches(encoded, min(max_tokens, _HELD_TOKENS)))
        maps: dict[int, SentenceMaps] = {}
        for batch in progress_bar(batches, len(batches), "batches"):
            maps |= self.maps(batch, [DEFAULTS.kind], list(map(MapName, layers)))
        kind = UPPER_KIND if all(has_readout(model.decoder) for model in self.models) else DEFAULTS.kind
        return fit_profile([maps[id_] for id_ in encoded], layers, identity, self.guided, kind)

    @torch.no_grad()
    def scores(self, pairs: Mapping[int, SentencePair]) -> dict[int, NDArray[np.float64]]:
        """The log probability (base e) of each token of each target given its source, by the first model."""
        sample = self.sample(pairs)
        target = sample["target"]
        model = self.models[0]
        with enough_threads([model], count_tokens(pairs)), teacher_forcing(model):
            lprobs = model.get_normalized_probs(model(**sample["net_input"]), log_probs=True, sample=sample)
        pads = target == self.vocabularies[1].dictionary.pad()
        of_tokens = lprobs.gather(-1, target[..., None])[..., 0].masked_fill(pads, 0)
        rows = zip(sample["id"].tolist(), of_tokens.double().cpu().numpy(), (~pads).sum(-1).tolist())
        return {id_: row[:length] for id_, row, length in rows}
