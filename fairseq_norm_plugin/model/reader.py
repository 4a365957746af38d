"""Reads the word maps of sentence pairs, in batches of similar length, by one model or by both at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import chain

import numpy as np

from alignment_eval.errors import UsageError
from alignment_eval.extraction.extract import WordMap, WordMaps, read_word_map
from alignment_eval.extraction.method import AlignmentMethod, MapName
from alignment_eval.maps.sentence import SentenceMaps
from fairseq_norm_plugin.environment import executors
from fairseq_norm_plugin.model.direction import Direction, Encoded, encode, length_batches, refusal
from fairseq_norm_plugin.text.pair import SentencePair
from fairseq_norm_plugin.text.tokens import UnknownTokens

#: Names of the sides in counts of subwords: of the first direction, and of the other.
_SIDES = ("source", "target", "reverse source", "reverse target")
#: The kind whose rows say how much of a prediction comes from the source (Ferrando et al. 2022b).
_ALTI = "alti_rollout"
#: Tokens of a batch on a CPU: the numbers of larger ones do not stay in its caches.
_CPU_TOKENS = 2000
#: Batches that are read, or wait to be, while links are made of another.
_AHEAD = 2


class MapReader:
    """Reads word maps.

    Args:
        method: names the maps.
        directions: the models, of one direction or of both.
        max_tokens: tokens of a batch, pads included.
        scores: with the log probabilities of the target tokens.
        contribution: with the contribution of the source, for which the maps of all layers are computed.
        kept: pairs of lower numbers keep the maps that their word maps are made of.

    Attributes:
        unknown: the subwords so far that the models do not know.
    """

    def __init__(
        self,
        method: AlignmentMethod,
        directions: Sequence[Direction],
        max_tokens: int = 4000,
        scores: bool = False,
        contribution: bool = False,
        kept: int = 0,
    ) -> None:
        self._options = [method.forward, *([] if method.reverse is None else [method.reverse])]
        if len(directions) != len(self._options):
            raise UsageError(
                f"models of {len(directions)} directions, but the method reads {len(self._options)}: give a model "
                f"(or an ensemble) for each direction that it reads"
            )
        for direction, options in zip(directions, self._options):
            direction.check(options)
        self.directions = directions
        self._scores, self._contribution, self._kept = scores, contribution, kept
        on_cpu = all(direction.device.type == "cpu" for direction in directions)
        different = {id(model) for direction in directions for model in direction.models}
        self._at_once = on_cpu and len(different) == sum(len(direction.models) for direction in directions)
        self._max_tokens = min(max_tokens, _CPU_TOKENS) if on_cpu else max_tokens
        self.unknown = UnknownTokens()

    def read(self, pairs: Iterable[tuple[int, SentencePair]]) -> Iterator[tuple[int, WordMaps]]:
        """The word maps of numbered pairs, each with its place in ``pairs``; batch by batch, short pairs first.

        Pairs that cannot be aligned (empty or too long) come before all others, with the reason as status.  While the
        maps of one batch are read, the caller has those of the batch before it.
        """
        encoded: dict[int, Encoded] = {}
        ids: list[int] = []
        for place, (id_, pair) in enumerate(pairs):
            ids.append(id_)
            read = encode(pair, self.directions)
            if reason := refusal(read, self.directions):
                source, target = (line.side for line in read[0])
                yield place, (WordMap(SentenceMaps(id_, source, target, (), status=reason), None), None)
                continue
            encoded[place] = read
            for name, line in zip(_SIDES, chain.from_iterable(read)):
                self.unknown.add(name, len(line.ids) - 1, line.unknown)
        waiting: deque[list[Future[dict[int, WordMap]]]] = deque()
        batches = length_batches(
            encoded, self._max_tokens, lambda read: [length for pair in read for length in pair.lengths]
        )
        with executors(len(self.directions), self._at_once) as threads:
            for batch in batches:
                waiting.append([thread.submit(self._read, which, batch, ids) for which, thread in enumerate(threads)])
                if len(waiting) > _AHEAD:
                    yield from _both(waiting.popleft())
            for futures in waiting:
                yield from _both(futures)

    def _read(self, which: int, batch: Mapping[int, Encoded], ids: Sequence[int]) -> dict[int, WordMap]:
        """The word maps of a batch by one direction, by place."""
        options, direction = self._options[which], self.directions[which]
        kinds, names = [options.kind], list(options.heads)
        contributes = self._contribution and which == 0
        if contributes:
            kinds, names = [*kinds, _ALTI], [*names, MapName(direction.layers - 1)]
        maps = direction.maps({place: read[which] for place, read in batch.items()}, kinds, names, self._scores)
        found = {}
        for place, of_pair in maps.items():
            found[place] = read_word_map(replace(of_pair, id=ids[place]), options, ids[place] < self._kept)
            if contributes:
                shares = of_pair.layer_maps(_ALTI)[-1].sum(axis=-1, dtype=np.float64)  # of the source, for each token
                found[place] = replace(found[place], contribution=float(shares.mean()))
        return found


def _both(read: Sequence[Future[dict[int, WordMap]]]) -> Iterator[tuple[int, WordMaps]]:
    """The word maps of the pairs of a batch, when all its directions are read."""
    forward, *reverse = [direction.result() for direction in read]
    return ((place, (word_map, reverse[0][place] if reverse else None)) for place, word_map in forward.items())
