"""Runs norm-align: loads models and text, chooses the method, aligns the windows that are missing, writes."""

from __future__ import annotations

import itertools
import re
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import torch

from alignment_eval.alignment import Alignment, alignments_in, write_alignments
from alignment_eval.errors import InputError, progress_meter, say, warn_skipped, warn_user
from alignment_eval.extraction.method import DEFAULTS
from alignment_eval.extraction.pair_scores import PAIR_SCORES
from alignment_eval.files import Value, check_directory, check_distinct, check_new, check_signed, is_stream, new_file
from alignment_eval.parts import (
    Names,
    PartsWriter,
    check_not_begun,
    own_parts,
    parts_directory,
    parts_in,
    read_alignments,
    run_info,
)
from alignment_eval.reading import json_hash
from fairseq_norm_plugin.align import on_ray
from fairseq_norm_plugin.align.job import Job, check_directions, load_model, read_text
from fairseq_norm_plugin.align.windows import Done, Window, WindowAligner, windows_of
from fairseq_norm_plugin.model.aligner import choose, signed
from fairseq_norm_plugin.model.model import Model
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.model.text_check import check_parallel, sample_lines
from fairseq_norm_plugin.text.lines import Text
from fairseq_norm_plugin.text.pair import SentencePair
from fairseq_norm_plugin.text.tokenise import splitter_name

#: How many numbers of lines a warning names.
_SHOWN = 20
_NAMES = Names("--resume", "--overwrite", "-o")
#: The file of a directory that says that all parts are there, as of other programs.
_MARK = "_SUCCESS"
_OWN_FILES = re.compile(rf"{_MARK}|\.?part-[\w-]+\.parquet.*")


def run(job: Job) -> None:
    """Align the text of a job."""
    _check_outputs(job)
    text = read_text(job.paths, job.words, translated=job.beam is not None)
    model = load_model(job.load_options, job.on_cpu or job.actors is not None)
    of_models = [file for each in model.both for file in (*each.text.paths, str(each.profile))]
    check_distinct(job.outputs, [*job.inputs, *of_models])
    check_directions(job.options, len(model.both))
    try:
        _Run(job, text, model).run()
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"--max-tokens {job.options.max_tokens}: too many for the GPU; give fewer, or --cpu"
        ) from error


def _check_outputs(job: Job) -> None:
    """Check, before the work, what can be checked of the outputs."""
    begun = False
    if job.in_directory:
        check_directory(job.output, job.overwrite or job.resume or job.shards > 1, _OWN_FILES)
    elif not is_stream(job.output):
        directory = parts_directory(job.output)
        own = list(own_parts(directory, "alignments", job.shard, job.shards))
        check_not_begun(own, directory, job.shards, _NAMES, job.resume or job.overwrite)
        begun = job.resume and bool(own)  # what is there may be of the stopped run
    if not job.in_directory:
        check_output = check_new if job.output.endswith(".parquet") else check_signed
        check_output(job.output, job.overwrite or begun, parents=True)
    for file in filter(None, (*job.tokens_out, job.scores_out)):
        check_new(file, job.overwrite or begun, parents=True)


def _of_text(job: Job) -> dict[str, Value]:
    """What a signature says of translations, of sentences, and of text that is not translated."""
    stated = {
        "beam": job.beam,
        "opaque": ",".join(job.markup.opaque) if job.markup else "",
        "protect": job.protected and json_hash(job.protected),
        "split": job.options.split_sentences and splitter_name(),
    }
    return {name: value for name, value in stated.items() if value}


class _Run:
    """Aligns a text, and writes the outputs."""

    def __init__(self, job: Job, text: Text, model: NormModel) -> None:
        self._job, self._text = job, text
        # a lexical table is counted on whole windows; pairs of a window are sorted by length
        counted, size = min(DEFAULTS.table_pairs, text.size), text.size
        self._ends: list[int] = sorted({*range(job.window, size, job.window), counted, size} - {0})
        self._here = WindowAligner(job, model, text)
        self._check_text(model.both)
        self._chosen = choose(job.options, model.both, self._first_pairs(), text.size)
        if self._chosen.reason:
            say(f"norm-align: {self._chosen.reason}")
        self._signature = signed(model.both, text.hashes, size, {**self._chosen.fields, **_of_text(job)})
        self._form = job.form(text)
        self._done, self._sentences = Done(), 0

    def _check_text(self, models: Sequence[Model]) -> None:
        """Warn of a text that does not suit the models, or is not parallel; refuse unrelated lines."""
        job, numbers = self._job, sample_lines(self._text.size)
        if len(self._ends) == 1 and job.beam is None:  # the only window, which is kept until it is aligned
            pairs = list(self._first_pairs())
            sample = [(number, pairs[number]) for number in numbers]
        else:
            sample = [(number, self._here.reader.read(number, raw)) for number, raw in self._text.some(numbers)]
        if job.markup is None and any("</" in pair.source.text for _, pair in sample):
            warn_user("the text has tags, which count as words: give --markup")
        check_parallel(sample, models, job.options.force)  # no targets: none is scored

    def _first_pairs(self) -> Iterator[SentencePair]:
        """The pairs of the text, as far as they are needed."""
        if self._job.beam is None and len(self._ends) > 1:
            yield from self._here.reader.read_all(self._text)
            return
        for window in self._windows(range(len(self._ends))):
            yield from self._here.pairs(window)

    def _windows(self, numbers: Iterable[int]) -> Iterator[Window]:
        return windows_of(self._text, self._ends, numbers)

    def run(self) -> None:
        """Align the windows that no stopped run has aligned, write the outputs, and say how it went."""
        job, size = self._job, self._text.size
        start = time.monotonic()
        own = range(job.shard, len(self._ends), job.shards)
        kept = 0
        if not job.in_directory and is_stream(job.output):
            self._write(table for _, table in self._align(own))
        else:
            kept = self._run_in_parts(own)
        self._warn()
        seconds = time.monotonic() - start
        said = f", {kept} kept from before" if job.resume else ""
        if size > 1:
            say(
                f"norm-align: {self._sentences} sentences in {seconds:.1f} s, "
                f"{self._sentences / seconds:.1f} sentences/s{said}"
            )
        say(self._signature)

    def _run_in_parts(self, own: Sequence[int]) -> int:
        """Align the windows of this shard that are not there, each in a part; returns how many sentences were there."""
        job = self._job
        directory = Path(job.output) if job.in_directory else parts_directory(job.output)
        contribution, syntax = job.options.source_contribution, job.markup.syntax if job.markup else "none"
        more: dict[str, Value] = {"window": job.window, "source_contribution": contribution, "markup": syntax}
        places = self._text.size, len(self._ends), job.shard, job.shards
        info = run_info(self._signature, self._form, more, *places)
        schema = info.schema(self._form.table([], []).schema, signature=self._signature)
        writer = PartsWriter(directory, info, schema, _NAMES, job.resume, job.overwrite)
        there = {part.number for part in writer.kept}
        kept = sum(self._size(number) for number in own if number in there)
        if len(there) < len(own):
            (directory / _MARK).unlink(missing_ok=True)
        try:
            for number, table in self._align([number for number in own if number not in there]):
                writer.add(table)
                writer.commit(number)
            writer.finish()
        except BaseException:
            writer.abandon()
            if left := sum(
                self._size(part.number) for part in own_parts(directory, "alignments", job.shard, job.shards)
            ):
                say(f"norm-align: {left} sentences are kept: --resume continues this run")
            raise
        self._finish(writer)
        return kept

    def _size(self, number: int) -> int:
        first: int = self._ends[number - 1] if number else 0
        return self._ends[number] - first

    def _finish(self, writer: PartsWriter) -> None:
        """Join the parts to the file, if all are here."""
        job, directory = self._job, writer.directory
        if not job.in_directory and job.shards > 1:
            say(f"norm-align: when all shards are done: align-eval merge {directory} -o {job.output}")
            return
        if job.in_directory and len(parts_in(directory, "alignments")) < len(self._ends):
            return
        _, tables = read_alignments(directory)
        self._write(tables)
        if job.in_directory:
            (directory / _MARK).touch()
        else:
            writer.remove()

    def _align(self, numbers: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        """Align windows, here or on Ray; those that a lexical table is counted on are always read here, and first."""
        aligner, counted = self._here.begin(self._chosen), bisect_right(self._ends, self._chosen.method.table_pairs)
        here = [number for number in numbers if self._job.actors is None or number < counted]
        with progress_meter(sum(map(self._size, {*range(counted), *numbers})), "sentences") as progress:
            if counted:
                windows = self._windows(range(counted))
                aligner.count(((window.first, self._here.pairs(window, progress)) for window in windows), progress)
            else:
                aligner.check_table(self._first_pairs())
            for window in self._windows(here):
                yield self._noted(window.number, *self._here.align(window, progress))
            if rest := [number for number in numbers if number not in here]:
                chosen = replace(self._chosen, table=aligner.table)
                for number, table, done in on_ray.align(self._job, self._text, chosen, self._windows(rest)):
                    progress(len(table))
                    yield self._noted(number, table, done)

    def _noted(self, number: int, table: pa.Table, done: Done) -> tuple[int, pa.Table]:
        """The number of a window and its rows, when what became of it is noted."""
        self._text.check_unchanged()
        tally = self._done.tally.subwords
        warned = tally.warning() is not None
        self._done.add(done)
        self._sentences += len(table)
        if not warned and (warning := tally.warning()):
            warn_user(warning)
        return number, table

    def _write(self, tables: Iterable[pa.Table]) -> None:
        """Write the outputs that are files, and report the pairs that are not aligned."""
        job, skipped = self._job, dict[int, str]()
        with ExitStack() as stack:
            files: list[TextIO] = []
            for name in (*job.tokens_out, *([job.scores_out] if job.scores_out else [])):
                temporary = stack.enter_context(new_file(name, job.resume))
                files.append(stack.enter_context(temporary.open("w", encoding="utf-8", newline="\n")))
            words, scores = files[: len(job.tokens_out)], files[len(job.tokens_out) :]
            for file in scores:
                file.write("\t".join((*PAIR_SCORES, "status")) + "\n")

            def passing() -> Iterator[pa.Table]:
                numbers = itertools.count()
                for table in tables:
                    for status, number in zip(table["status"].to_pylist(), numbers):
                        if status != "ok":
                            skipped[number] = status
                    for alignment in alignments_in(table, table.column_names) if files else ():
                        _write_row(alignment, words, scores)
                    yield table

            if job.in_directory:
                for _ in passing():
                    pass
            else:
                write_alignments(job.output, passing(), self._form, self._signature, job.resume)
        warn_skipped(skipped, self._text.size, "so they have no links", "line")

    def _warn(self) -> None:
        """Say what became of the pairs that this run has aligned."""
        if untagged := self._done.untagged:
            numbers = _shown_lines(sorted(untagged))
            warn_user(f"lines written without tags: {numbers}; the first is {untagged[min(untagged)]}")
        if uncopied := self._done.uncopied:
            warn_user(
                f"lines of {self._text.names[0]} whose target has not each protected string of the source once: "
                f"{_shown_lines(sorted(uncopied))}"
            )
        for warning in self._done.tally.warnings():
            warn_user(warning)


def _write_row(alignment: Alignment, words: Sequence[TextIO], scores: Sequence[TextIO]) -> None:
    """Write the words that links count (``--tokens-out``), and the scores of a pair."""
    for file, of_side in zip(words, (alignment.source_words, alignment.target_words)):
        file.write(" ".join("_".join(word.split()) for word in of_side) + "\n")
    for file in scores:
        values = (getattr(alignment.scores, name) for name in PAIR_SCORES)
        file.write("\t".join((*("" if value is None else repr(value) for value in values), alignment.status)) + "\n")


def _shown_lines(ids: Sequence[int]) -> str:
    """How many lines, and the numbers of the first ones."""
    more = ", …" if len(ids) > _SHOWN else ""
    return f"{len(ids)} ({', '.join(str(id_ + 1) for id_ in ids[:_SHOWN])}{more})"
