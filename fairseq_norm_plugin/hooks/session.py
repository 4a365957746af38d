"""The session of a run that writes maps: opened with the generator, finished by the last sentence."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.data.iterators import EpochBatchIterator
from numpy.typing import NDArray
from torch import Tensor

from alignment_eval.errors import InputError, UsageError, say, warn_on_stderr
from alignment_eval.files import write_bytes
from alignment_eval.maps.kinds import KINDS
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide, status_of
from alignment_eval.profiles.chosen import ChosenMethod
from alignment_eval.profiles.profile import Profile
from alignment_eval.records.manifest import RunInfo
from alignment_eval.records.store import arrow_schema, to_table
from fairseq_norm_plugin.capture.recorder import MAPS_KEY, RecordedMaps, recorded_quantities
from fairseq_norm_plugin.hooks.parts import AlignmentParts, ShardParts, aligned_ids, written_ids
from fairseq_norm_plugin.text.tokens import SideReader, UnknownTokens

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """The sentences that a run over a data set will yield, known before its first batch."""

    subset: str
    size: int  #: of the data set
    batches: Sequence[Sequence[int]]  #: the expected ids of this shard, without those that were written before
    kept: int  #: the number of the latter
    skipped: Mapping[int, str]  #: the ids (of all shards) that fairseq skipped, with the reason
    shard: int
    shards: int
    batching: Mapping[str, int | None]  #: it decides the distribution over shards and what ``--sampling`` draws

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
        """
        size, batches = len(iterator.dataset), iterator.frozen_batches
        if not batches:
            raise InputError(
                f"subset {subset} has no sentence to process ({size} sentences, {len(skipped)} skipped as too "
                f"long); raise --max-source-positions or --max-target-positions"
            )
        shard, shards = batching.get("shard_id", 0), batching.get("num_shards", 1)
        batches = batches[shard::shards]
        done = np.zeros(size, dtype=np.bool_)
        ids = np.asarray(written, dtype=np.int64)
        done[ids[ids < size]] = True  # that of a run with more sentences is refused later
        if done.any():
            batches = [[id_ for id_ in batch if not done[id_]] for batch in batches]
            batches = [batch for batch in batches if batch]
        names = ("max_tokens", "max_sentences", "required_batch_size_multiple", "seed")
        deciding = {name: batching.get(name) for name in names}
        return cls(subset, size, batches, int(done.sum()), skipped, shard, shards, deciding)

    def iterator(self, whole: Any) -> Any:
        """fairseq's iterator ``whole``, or one over the remaining sentences."""
        if not self.kept:
            return whole
        workers = {"num_workers": whole.num_workers, "buffer_size": whole.buffer_size}
        return EpochBatchIterator(whole.dataset, whole.collate_fn, self.batches, **workers)


@dataclass(frozen=True)
class NormOptions:
    """The options of a norm task, checked against a model (hooks.options.resolve)."""

    #: The map that is printed and extracted; ``heads`` None: all of the layer.
    kind: str
    layer: int
    heads: tuple[int, ...] | None
    setting: str
    recorded_kinds: tuple[str, ...]
    recorded_layers: tuple[int, ...]  #: decoder layers, from 0
    layer_heads: int  #: number of heads of a layer
    extraction: ChosenMethod | None  #: how word alignments are read from the maps; None: there are none


class RecordingSession:
    """Writes the maps that the hypotheses of a run carry, as records and word alignments, in parts.

    It checks that each expected sentence arrives once, and finishes the output after the last one.  ``cfg`` are the
    options of the task (options.NormConfig), ``models`` the number of models in the ensemble, ``profile`` the model's
    profile, which records store with its lexical table.
    """

    def __init__(
        self,
        cfg: Any,
        plan: Plan,
        readers: tuple[SideReader, SideReader],
        options: NormOptions,
        signature: Mapping[str, Any],
        models: int,
        profile: Profile | None = None,
    ) -> None:
        self._plan = plan
        self._expected = np.zeros(plan.size, dtype=np.bool_)
        for batch in plan.batches:
            self._expected[batch] = True
        self._total = int(self._expected.sum())
        self._source, self._target = readers
        self._unknown = UnknownTokens()
        logger.info("subword markers: source %s, target %s", *(reader.vocabulary.mark for reader in readers))
        generation = signature["generation"]
        self._forced = bool(generation.get("score_reference"))
        self.recorded = RecordedMaps(
            options.recorded_layers,
            recorded_quantities(options.recorded_kinds, models),
            nbest=int(generation["nbest"]) if cfg.norm_records and not self._forced else 1,
        )
        self._outputs = _open_outputs(cfg, plan, options, signature, self.recorded, profile)
        self._part_sentences, self._in_part = int(cfg.norm_part_sentences), 0
        self._start = time.monotonic()
        every = {*options.recorded_kinds, *([options.extraction.method.forward.kind] if options.extraction else [])}
        if (costly := [name for name, kind in KINDS.items() if name in every and kind.costly]) and self._total:
            warn_on_stderr(
                f"recording {', '.join(costly)} takes long: for each kind about 17 more forward passes of a sentence "
                f"of 50 source tokens, 34 of one of 100; --norm-record-layers records fewer layers"
            )
        skipped = sorted(plan.skipped.items()) if plan.shard == 0 else []  # the first shard records those of all shards
        if skipped:
            logger.warning("%d of %d sentences were skipped and get no maps", len(skipped), plan.size)
        empty = SentenceSide.of_words(())
        self._write([SentenceMaps(id_, empty, empty, self.recorded.layers, status=why) for id_, why in skipped])

    @property
    def finished(self) -> bool:
        """Whether all sentences of the run are written."""
        return not self._expected.any()

    def write(self, sample: Mapping[str, Any], hypotheses: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Write the n-best hypotheses of a batch that carry maps; the last batch finishes the run's output."""
        ids = sample["id"].tolist()
        strange = [id_ for id_ in ids if not (id_ < len(self._expected) and self._expected[id_])]
        if strange or len(set(ids)) != len(ids):
            raise InputError(f"sentence {(strange or ids)[0]} is a duplicate or does not belong to this shard")
        sentences = [
            self._sentence(id_, rank, tokens, hypothesis)
            for id_, tokens, nbest in zip(ids, sample["net_input"]["src_tokens"], hypotheses)
            for rank, hypothesis in enumerate(nbest)
            if MAPS_KEY in hypothesis
        ]
        self._expected[ids] = False
        self._in_part += len(ids)
        self._write(sentences)

    def _write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Write sentences; after the last one of the run, print what was done to stderr (fairseq logs to stdout)."""
        for parts in self._outputs:
            parts.write(sentences)
        if self._in_part >= self._part_sentences:
            for parts in self._outputs:
                parts.commit()
            self._in_part = 0
        if not self.finished:
            return
        for parts in self._outputs:
            parts.finish()
            logger.info("wrote %s", parts.directory)
        plan, seconds = self._plan, time.monotonic() - self._start
        kept = f", {plan.kept} kept from before" if plan.kept else ""
        rate = f" in {seconds:.1f} s, {self._total / seconds:.1f} sentences/s" if self._total else ""
        say(f"{plan.subset}: shard {plan.shard} of {plan.shards}: {self._total} sentences{rate}{kept}")
        for warning in filter(None, (self._unknown.warning(), self._unknown.uncertain_warning())):
            logger.warning(warning)

    def _sentence(self, id_: int, rank: int, src_tokens: Tensor, hypothesis: dict[str, Any]) -> SentenceMaps:
        source = self._source.spell(id_, src_tokens[src_tokens.ne(self._source.vocabulary.dictionary.pad())])
        if self._forced:
            target = self._target.spell(id_, hypothesis["tokens"])
        else:  # in the model's own translation, <unk> is the word itself and not a piece of another
            target = replace(self._target.vocabulary.spell(hypothesis["tokens"]), certain=True)
        if rank == 0:
            self._unknown.add_pair(source, target)
        sentence = SentenceMaps(
            id=id_,
            rank=rank,
            status=status_of(source.certain, target.certain),
            score=float(hypothesis["score"]),
            source=source.side,
            target=target.side,
            layers=self.recorded.layers,
            arrays=hypothesis.pop(MAPS_KEY),
        )
        values = {"score": np.array(sentence.score), **sentence.arrays}
        if wrong := [name for name, array in values.items() if not np.isfinite(array).all()]:
            raise InputError(
                f"sentence {id_}: {', '.join(wrong)} has NaN or infinite values; check whether the checkpoint holds "
                f"NaN, or omit --fp16, which may overflow"
            )
        return sentence


def _open_outputs(
    cfg: Any,
    plan: Plan,
    options: NormOptions,
    signature: Mapping[str, Any],
    recorded: RecordedMaps,
    profile: Profile | None,
) -> list[ShardParts]:
    if plan.kept and plan.batches and signature["generation"].get("sampling"):
        raise UsageError(
            "--norm-records-resume does not work with --sampling, because each draw depends on all earlier ones; "
            "start again with --norm-records-overwrite"
        )
    existing = {"resume": bool(cfg.norm_records_resume), "overwrite": bool(cfg.norm_records_overwrite)}
    shard = (plan.size, plan.shard, plan.shards)
    outputs: list[ShardParts] = []
    if cfg.norm_records:
        signed = {**signature, "kinds": list(options.recorded_kinds), "layers": list(options.recorded_layers)}
        if "dtype" in signed:  # it comes last
            signed["dtype"] = signed.pop("dtype")
        maps = options.recorded_kinds, options.recorded_layers, options.layer_heads
        directory, table, stored = Path(cfg.norm_records), None if profile is None else profile.table, profile
        if profile is not None and table is not None:  # it lies beside the records, wherever they are moved to
            stored = replace(profile, table=replace(table, name=Path(table.name).name))
        info = RunInfo("records", signed, *shard, *maps, recorded.nbest, None if stored is None else stored.to_json())
        schema = arrow_schema(info, recorded.quantities)
        outputs.append(ShardParts(directory, info, schema, partial(to_table, schema=schema), **existing))
        if table is not None:
            directory.mkdir(parents=True, exist_ok=True)
            write_bytes(directory / Path(table.name).name, [Path(table.name).read_bytes()])
    if options.extraction is not None:
        run = RunInfo("alignments", {**signature, "extraction": options.extraction.fields}, *shard)
        outputs.append(AlignmentParts(Path(cfg.norm_alignments), run, options.extraction, **existing))
    return outputs


def ids_in_all(
    records: str | None, alignments: str | None, batching: Mapping[str, Any]
) -> NDArray[np.int64] | tuple[()]:
    """The ids that every output of this shard has; a later check, with the model, compares the run.

    ``batching`` has fairseq's arguments of the batch iterator.
    """
    shard, shards = batching.get("shard_id", 0), batching.get("num_shards", 1)
    written = [written_ids(Path(records), "records", shard, shards)] if records else []
    if alignments:
        written.append(aligned_ids(Path(alignments), shard, shards))
    return functools.reduce(np.intersect1d, written) if written else ()
