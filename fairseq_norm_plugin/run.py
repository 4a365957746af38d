"""One run of generation or forced scoring: which sentences are expected, and that each of them came once."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from alignment_eval.errors import InputError
from alignment_eval.maps import SentenceMaps, Side
from fairseq_norm_plugin.sinks import AlignmentFile, PartWriter

logger = logging.getLogger(__name__)

UNKNOWN = "<unk>"


@dataclass(frozen=True)
class Plan:
    """What a run over a data set is to yield, known before its first batch.

    ``expected`` are the ids of this shard, ``skipped`` the ids (of all shards) that fairseq left out, with the
    reason.  ``size`` is the data set's, ``subset`` its name; ``batching`` decides the distribution over shards and
    what ``--sampling`` draws.
    """

    subset: str
    size: int
    expected: frozenset[int]
    skipped: Mapping[int, str]
    shard: int
    shards: int
    batching: Mapping[str, Optional[int]]

    @classmethod
    def of(cls, subset: str, iterator: Any, skipped: Mapping[int, str], batching: Mapping[str, Any]) -> Plan:
        """The plan of fairseq's ``iterator``, made with the arguments ``batching``.

        Raises:
            InputError: no sentence is left to process.
        """
        size = len(iterator.dataset)
        batches = iterator.frozen_batches
        if not batches:
            raise InputError(
                f"subset {subset} leaves no sentence to process ({size} sentences, {len(skipped)} skipped as too "
                f"long): expected at least one; raise --max-source-positions or --max-target-positions"
            )
        shard, shards = batching.get("shard_id", 0), batching.get("num_shards", 1)
        return cls(
            subset=subset,
            size=size,
            expected=frozenset(int(id_) for batch in batches[shard::shards] for id_ in batch),
            skipped=skipped,
            shard=shard,
            shards=shards,
            batching={name: batching.get(name) for name in ("max_tokens", "max_sentences", "seed")},
        )

    def stubs(self, layers: tuple[int, ...]) -> list[SentenceMaps]:
        """Sentences without maps for what was skipped; the first shard records those of all."""
        if self.shard != 0:
            return []
        empty = Side((), np.empty(0, dtype=np.int32))
        return [
            SentenceMaps(id=id_, source=empty, target=empty, layers=layers, status=reason)
            for id_, reason in sorted(self.skipped.items())
        ]


#: A share of unknown tokens above which text and model hardly belong together (words given for subwords, say).
SUSPICIOUS_UNKNOWN = 0.05


class Output:
    """Takes the sentences of a run to its sinks; checks that each expected id came once, finishes after the last."""

    def __init__(self, plan: Plan, layers: tuple[int, ...], sinks: Sequence[Union[PartWriter, AlignmentFile]]) -> None:
        self._remaining = set(plan.expected)
        self._sinks = sinks
        self._tokens = self._unknown = 0
        stubs = plan.stubs(layers)
        if stubs:
            logger.warning("%d of %d sentences were skipped: no maps for them", len(stubs), plan.size)
        self._write(stubs)
        self._finish_if_complete()

    @property
    def finished(self) -> bool:
        """Whether all expected sentences were written."""
        return not self._remaining

    def write(self, ids: Sequence[int], sentences: Sequence[SentenceMaps]) -> None:
        """Add a batch: ``sentences`` are all recorded hypotheses of the sentences ``ids``.

        Raises:
            InputError: an id came before, or is not this shard's.
        """
        strange = [id_ for id_ in ids if id_ not in self._remaining]
        if strange or len(set(ids)) != len(ids):
            raise InputError(f"sentence {(strange or ids)[0]} came twice or was not asked for: expected each id once")
        self._write(sentences)
        self._remaining.difference_update(ids)
        self._finish_if_complete()

    def _write(self, sentences: Sequence[SentenceMaps]) -> None:
        for sentence in sentences:
            tokens = (*sentence.source.tokens, *sentence.target.tokens)
            self._tokens += len(tokens)
            self._unknown += tokens.count(UNKNOWN)
        for sink in self._sinks:
            sink.write(sentences)

    def _finish_if_complete(self) -> None:
        if self.finished:
            if self._unknown > SUSPICIOUS_UNKNOWN * self._tokens:
                logger.warning(
                    "%d of %d tokens are %s: is the text split into the subwords that the model knows?",
                    self._unknown,
                    self._tokens,
                    UNKNOWN,
                )
            for sink in self._sinks:
                sink.finish()
                logger.info("wrote %s", sink.path)
