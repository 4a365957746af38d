"""The session of a run that writes maps: opened with the generator, finished by the last sentence; its batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from alignment_eval.errors import InputError, UsageError, say, warn_user
from alignment_eval.files import write_bytes
from alignment_eval.maps.sentence import KINDS, SentenceMaps, SentenceSide, status_of
from alignment_eval.parts import RunInfo, parts_directory
from alignment_eval.profiles.profile import Profile
from alignment_eval.records import arrow_schema, to_table
from fairseq_norm_plugin.capture.recorder import MAPS_KEY, RecordedMaps, recorded_quantities
from fairseq_norm_plugin.hooks.generator import NormOptions
from fairseq_norm_plugin.hooks.parts import AlignmentParts, SentenceParts, ids_in
from fairseq_norm_plugin.text.tokens import SideReader, UnknownTokens

logger = logging.getLogger(__name__)


def all_batches(
    batch_by_size: Callable[..., Any], indices: Any, required_batch_size_multiple: int = 1, **sizes: Any
) -> tuple[list[Any], list[Any]]:
    """fairseq's batches of a data set, and batches of the sentences that it loses.

    fairseq drops the last batch unless its size is a multiple of ``--required-batch-size-multiple``.
    """
    multiple = required_batch_size_multiple
    batches = list(batch_by_size(indices, required_batch_size_multiple=multiple, **sizes) if len(indices) else ())
    lost = indices[~np.isin(indices, [id_ for batch in batches for id_ in batch])]
    if not len(lost):
        return batches, []
    logger.info(
        "%d of %d sentences come last: fairseq alone would lose them (--required-batch-size-multiple %d)",
        *(len(lost), len(indices), multiple),
    )
    return batches, list(batch_by_size(lost, **sizes))


class Plan:
    """The sentences that a run over a data set will yield, known before its first batch.

    ``iterator`` is fairseq's over ``subset``, ``batching`` its arguments, ``skipped`` the ids (of all shards) that
    fairseq skipped, with the reason.  Sentences stay in their batches: in other batches the last digits of values would
    change.
    """

    def __init__(
        self, cfg: Any, subset: str, iterator: Any, skipped: Mapping[int, str], batching: Mapping[str, Any]
    ) -> None:
        self.subset, self.skipped, self.size = subset, skipped, len(iterator.dataset)
        self.shard, self.shards = batching.get("shard_id", 0), batching.get("num_shards", 1)
        if not iterator.frozen_batches:
            raise InputError(
                f"subset {subset}: {len(skipped)} of {self.size} sentences are too long, and no other is left; raise "
                f"--max-source-positions or --max-target-positions"
            )
        done = np.zeros(self.size, dtype=np.bool_)
        links = cfg.norm_alignments and parts_directory(cfg.norm_alignments)
        outputs = [
            ids_in(Path(place), content, self.shard, self.shards)
            for place, content in ((cfg.norm_records, "records"), (links, "alignments"))
            if place and cfg.norm_records_resume
        ]
        if outputs:  # the sentences that each has; a later check, with the model, compares the runs
            written = reduce(np.intersect1d, outputs)
            done[written[written < self.size]] = True
        self.kept = int(done.sum())  #: the number of sentences of this shard that were written before
        left = ([id_ for id_ in batch if not done[id_]] for batch in iterator.frozen_batches[self.shard :: self.shards])
        self.batches = [batch for batch in left if batch]  #: the ids of the others
        names = ("max_tokens", "max_sentences", "required_batch_size_multiple", "seed")
        #: What decides the distribution over shards and what ``--sampling`` draws.
        self.batching = {name: batching.get(name) for name in names}


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
        self._outputs = self._open_outputs(cfg, options, signature, profile)
        self._part_sentences, self._in_part = int(cfg.norm_part_sentences), 0
        self._start = time.monotonic()
        every = {*options.recorded_kinds, *([options.extraction.method.forward.kind] if options.extraction else [])}
        if (costly := [name for name, kind in KINDS.items() if name in every and kind.costly]) and self._total:
            warn_user(
                f"recording {', '.join(costly)} takes long: for each kind about 17 more forward passes of a sentence "
                f"of 50 source tokens, 34 of one of 100; --norm-record-layers records fewer layers"
            )
        skipped = sorted(plan.skipped.items()) if plan.shard == 0 else []  # the first shard records those of all shards
        if skipped:
            logger.warning("%d of %d sentences were skipped and get no maps", len(skipped), plan.size)
        empty = SentenceSide.of_words(())
        self._write([SentenceMaps(id_, empty, empty, self.recorded.layers, status=why) for id_, why in skipped])

    def _open_outputs(
        self, cfg: Any, options: NormOptions, signature: Mapping[str, Any], profile: Profile | None
    ) -> list[SentenceParts]:
        plan = self._plan
        if plan.kept and plan.batches and signature["generation"].get("sampling"):
            raise UsageError(
                "--norm-records-resume with --sampling, whose draws depend on all before: --norm-records-overwrite"
            )
        resume, overwrite = bool(cfg.norm_records_resume), bool(cfg.norm_records_overwrite)
        shard = (plan.size, plan.shard, plan.shards)
        outputs: list[SentenceParts] = []
        if cfg.norm_records:
            signed = {**signature, "kinds": list(options.recorded_kinds), "layers": list(options.recorded_layers)}
            if "dtype" in signed:  # it comes last
                signed["dtype"] = signed.pop("dtype")
            maps = options.recorded_kinds, options.recorded_layers, options.layer_heads
            directory, table, stored = Path(cfg.norm_records), None if profile is None else profile.table, profile
            if profile is not None and table is not None:  # it lies beside the records, wherever they are moved to
                stored = replace(profile, table=replace(table, name=Path(table.name).name))
            known = None if stored is None else stored.to_json()
            info = RunInfo("records", signed, *shard, *maps, self.recorded.nbest, known)
            schema = arrow_schema(info, self.recorded.quantities)
            outputs.append(SentenceParts(directory, info, schema, partial(to_table, schema=schema), resume, overwrite))
            if table is not None:
                directory.mkdir(parents=True, exist_ok=True)
                write_bytes(directory / Path(table.name).name, [Path(table.name).read_bytes()])
        if options.extraction is not None:
            run = RunInfo("alignments", {**signature, "extraction": options.extraction.fields}, *shard)
            outputs.append(AlignmentParts(Path(cfg.norm_alignments), run, options.extraction, resume, overwrite))
        return outputs

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
                f"sentence {id_}: {', '.join(wrong)} has NaN or infinite values; is NaN in the checkpoint? omit --fp16"
            )
        return sentence
