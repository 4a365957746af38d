"""A run of generation or forced scoring: plans the expected sentences and checks that each arrives once."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import pyarrow as pa
from fairseq.data.iterators import EpochBatchIterator
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from fairseq_norm_plugin.recording.shard_parts import ShardParts

logger = logging.getLogger(__name__)

#: The parts of an output, and what makes their rows of sentences.
Writer = tuple[ShardParts, Callable[[Sequence[SentenceMaps]], pa.Table]]


@dataclass(frozen=True)
class Plan:
    """The sentences that a run over a data set will yield, known before its first batch.

    ``batches`` are the expected ids of this shard, without those that were written before; ``kept`` is the number of
    the latter.  ``skipped`` are the ids (of all shards) that fairseq skipped, with the reason.  ``size`` is the size of
    the data set, ``subset`` its name.  ``batching`` decides the distribution over shards and what ``--sampling`` draws.
    """

    subset: str
    size: int
    batches: Sequence[Sequence[int]]
    kept: int
    skipped: Mapping[int, str]
    shard: int
    shards: int
    batching: Mapping[str, Optional[int]]

    @classmethod
    def of(
        cls,
        subset: str,
        iterator: Any,
        skipped: Mapping[int, str],
        batching: Mapping[str, Any],
        written: Sequence[int] | NDArray[np.int64] = (),
    ) -> Plan:
        """The plan for fairseq's ``iterator`` with the arguments ``batching``, when ``written`` ids are done.

        Sentences stay in their batches: in other batches the last digits of values would change.

        Raises:
            InputError: no sentence is left to process.
        """
        size = len(iterator.dataset)
        batches = iterator.frozen_batches
        if not batches:
            raise InputError(
                f"subset {subset} has no sentence to process ({size} sentences, {len(skipped)} skipped as too "
                f"long); raise --max-source-positions or --max-target-positions"
            )
        shard, shards = batching.get("shard_id", 0), batching.get("num_shards", 1)
        batches = batches[shard::shards]
        done = np.zeros(size, dtype=np.bool_)
        done[np.asarray(written, dtype=np.int64)] = True
        if len(written):
            batches = [[id_ for id_ in batch if not done[id_]] for batch in batches]
            batches = [batch for batch in batches if batch]
        return cls(
            subset=subset,
            size=size,
            batches=batches,
            kept=int(done.sum()),
            skipped=skipped,
            shard=shard,
            shards=shards,
            batching={name: batching.get(name) for name in ("max_tokens", "max_sentences", "seed")},
        )

    def iterator(self, whole: Any) -> Any:
        """fairseq's iterator ``whole``, or one over the remaining sentences."""
        if not self.kept:
            return whole
        return EpochBatchIterator(
            whole.dataset,
            whole.collate_fn,
            self.batches,
            num_workers=whole.num_workers,
            buffer_size=whole.buffer_size,
        )

    def stubs(self, layers: tuple[int, ...]) -> list[SentenceMaps]:
        """Stubs for the skipped sentences; the first shard records those of all shards."""
        if self.shard != 0:
            return []
        empty = SentenceSide((), np.empty(0, dtype=np.int32))
        return [
            SentenceMaps(id=id_, source=empty, target=empty, layers=layers, status=reason)
            for id_, reason in sorted(self.skipped.items())
        ]


class Output:
    """Passes the sentences of a run to its writers, in parts of ``part_sentences`` sentences.

    It checks that each expected id arrives once, and finishes the writers after the last one.
    """

    def __init__(self, plan: Plan, layers: tuple[int, ...], writers: Sequence[Writer], part_sentences: int) -> None:
        self._plan = plan
        self._expected = np.zeros(plan.size, dtype=np.bool_)
        for batch in plan.batches:
            self._expected[batch] = True
        self._left = self._total = int(self._expected.sum())
        self._writers = writers
        self._part_sentences = part_sentences
        self._in_part = 0
        self._start = time.monotonic()
        stubs = plan.stubs(layers)
        if stubs:
            logger.warning("%d of %d sentences were skipped and get no maps", len(stubs), plan.size)
        self._write(stubs)
        self._finish_if_complete()

    @property
    def finished(self) -> bool:
        """Whether all expected sentences were written."""
        return not self._left

    def write(self, ids: Sequence[int], sentences: Sequence[SentenceMaps]) -> None:
        """Add a batch: ``sentences`` are all recorded hypotheses of the sentences ``ids``.

        Raises:
            InputError: an id arrived before, or does not belong to this shard.
        """
        strange = [id_ for id_ in ids if not (id_ < len(self._expected) and self._expected[id_])]
        if strange or len(set(ids)) != len(ids):
            raise InputError(f"sentence {(strange or ids)[0]} is a duplicate or does not belong to this shard")
        self._write(sentences)
        self._expected[list(ids)] = False
        self._left -= len(ids)
        self._in_part += len(ids)
        if self._in_part >= self._part_sentences:
            for parts, _ in self._writers:
                parts.commit()
            self._in_part = 0
        self._finish_if_complete()

    def _write(self, sentences: Sequence[SentenceMaps]) -> None:
        for parts, table in self._writers:
            parts.write(table(sentences))

    def _finish_if_complete(self) -> None:
        if self.finished:
            for parts, _ in self._writers:
                parts.finish()
                logger.info("wrote %s", parts.directory)
            self._report()

    def _report(self) -> None:
        """Print the number of sentences and the time to stderr; fairseq's own log goes to stdout."""
        plan, seconds = self._plan, time.monotonic() - self._start
        kept = f", {plan.kept} kept from before" if plan.kept else ""
        rate = f" in {seconds:.1f} s, {self._total / seconds:.1f} sentences/s" if self._total else ""
        print(
            f"{plan.subset}: shard {plan.shard} of {plan.shards}: {self._total} sentences{rate}{kept}", file=sys.stderr
        )
