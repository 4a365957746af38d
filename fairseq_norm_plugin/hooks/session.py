"""A run that writes maps: its plan, its session, which the last sentence finishes, and the parts of its output."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from alignment_eval.align_pairs import align_pairs
from alignment_eval.alignment import Form, write_alignments
from alignment_eval.errors import InputError, UsageError, say, warn_user
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.lexical_table import EMPTY
from alignment_eval.files import check_new, is_stream, write_bytes
from alignment_eval.maps.sentence import KINDS, SentenceMaps, SentenceSide, status_of
from alignment_eval.parts import Names, PartsWriter, RunInfo, own_parts, parts_directory, read_alignments, signature_of
from alignment_eval.profiles.chosen import ChosenMethod
from alignment_eval.profiles.profile import Profile
from alignment_eval.records import arrow_schema, to_table
from fairseq_norm_plugin.capture.recorder import MAPS_KEY, RecordedMaps, recorded_quantities
from fairseq_norm_plugin.hooks.datasets import BinarisedText
from fairseq_norm_plugin.hooks.generator import NormOptions

logger = logging.getLogger(__name__)
_NAMES = Names("--norm-records-resume", "--norm-records-overwrite", "--norm-records")


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
        text: BinarisedText,
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
        self._text = text
        logger.info("subword markers: source %s, target %s", *(vocabulary.mark for vocabulary in text.vocabularies))
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
        for warning in self._text.warnings():
            logger.warning(warning)

    def _sentence(self, id_: int, rank: int, src_tokens: Tensor, hypothesis: dict[str, Any]) -> SentenceMaps:
        of_source, of_target = self._text.vocabularies
        source = self._text.spell(0, id_, src_tokens[src_tokens.ne(of_source.dictionary.pad())])
        if self._forced:
            target = self._text.spell(1, id_, hypothesis["tokens"])
        else:  # in the model's own translation, <unk> is the word itself and not a piece of another
            own = of_target.spell(hypothesis["tokens"])
            target = replace(own, other=own.side)
        if rank == 0:
            self._text.count(source, target)
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


# ---- output


def ids_in(directory: Path, content: str, shard: int, shards: int) -> NDArray[np.int64]:
    """The ids of the sentences that are in a shard's parts of ``content``, of any run."""
    ids = (part.ids() for part in own_parts(directory, content, shard, shards))
    return np.concatenate([np.empty(0, dtype=np.int64), *ids])


class SentenceParts(PartsWriter):
    """Sentences in parts: ``table`` makes rows of them, and those that a part has already are passed by."""

    def __init__(
        self,
        directory: Path,
        info: RunInfo,
        schema: pa.Schema,
        table: Callable[[Sequence[SentenceMaps]], pa.Table],
        resume: bool = False,
        overwrite: bool = False,
        names: Names = _NAMES,
    ) -> None:
        super().__init__(directory, info, schema, names, resume, overwrite)
        self._table = table
        self.written = np.zeros(info.size, dtype=np.bool_)  #: which sentences were written before, [size]
        for part in self.kept:
            self.written[part.ids()] = True

    def write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Add sentences, all hypotheses of each."""
        self.add(self._table([sentence for sentence in sentences if not self.written[sentence.id]]))


class AlignmentParts(SentenceParts):
    """The alignments of a shard, in parts in FILE.parts, which a run with one shard joins to its file at the end."""

    def __init__(
        self, file: Path, info: RunInfo, chosen: ChosenMethod, resume: bool = False, overwrite: bool = False
    ) -> None:
        self.file, self._chosen, self._form, self._resumed = file, chosen, Form(), resume
        names, directory = _NAMES._replace(place="--norm-alignments"), parts_directory(file)
        if info.shards == 1:
            if is_stream(file):
                raise InputError(f"{file}: this is not a regular file; give the name of a file")
            begun = resume and any(own_parts(directory, "alignments", 0, 1))
            check_new(file, overwrite or begun, names.overwrite, parents=True)
        schema = info.schema(self._form.table([], []).schema)
        super().__init__(directory, info, schema, self._links, resume, overwrite, names)

    def finish(self) -> None:
        """Make the last part; a run with one shard then writes its file, and removes the parts."""
        super().finish()
        if self.info.shards == 1:
            _, tables = read_alignments(self.directory)
            write_alignments(self.file, tables, self._form, signature_of(self.info, self.file), self._resumed)
            self.remove()

    def _links(self, sentences: Sequence[SentenceMaps]) -> pa.Table:
        """The rows of the best hypotheses."""
        method = self._chosen.method
        best = ((read_word_map(sentence, method.forward), None) for sentence in sentences if sentence.rank == 0)
        aligned = list(align_pairs(best, method, self._chosen.table or EMPTY))
        return self._form.table([pair.id for pair in aligned], aligned)
