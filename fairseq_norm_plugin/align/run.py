"""Runs norm-align: loads models and text, chooses the method, aligns the windows that are missing, writes.

Windows are aligned by this process, or by actors of a Ray cluster (``--ray``); this one reads and writes.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from html import escape
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import torch

from alignment_eval.alignment import Alignment, alignments_in, write_alignments
from alignment_eval.errors import InputError, printable, progress_meter, say, shown, warn_skipped, warn_user
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
from alignment_eval.profiles.chosen import ChosenMethod
from alignment_eval.reading import json_hash
from alignment_eval.transfer.pairs import Markup
from alignment_eval.transfer.pieces import Strings
from fairseq_norm_plugin.align.job import Job, check_directions, load_model, read_text
from fairseq_norm_plugin.model.aligner import Progress, Tally, choose, signed, unseen
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.model.text_check import REFUSED, check_parallel
from fairseq_norm_plugin.model.windows import Window, WindowAligner
from fairseq_norm_plugin.text.lines import Text
from fairseq_norm_plugin.text.pair import splitter_name

_NAMES = Names("--resume", "--overwrite", "-o")
#: The file of a directory that says that all parts are there, as of other programs.
_MARK = "_SUCCESS"
_OWN_FILES = re.compile(rf"{_MARK}|\.?part-[\w-]+\.parquet.*")
#: What Ray reads when it is imported: no network call for statistics of usage.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
#: Windows that wait at each actor, the one that it aligns included.
_WAITING = 2
#: The number of a window, its rows, and what was seen of it.
_Rows = tuple[int, pa.Table, Tally]


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
        "protect": json_hash(job.protected) if job.protected else None,
        "split": job.options.split_sentences and splitter_name(),
    }
    return {name: value for name, value in stated.items() if value}


class _JobAligner(WindowAligner):
    """Aligns windows of the text of a job: what one process does of it."""

    def __init__(self, job: Job, text: Text, model: NormModel) -> None:
        plain = None if job.markup is None else partial(job.markup.plain, keep_going=job.options.force)
        strings, translate = None if job.markup else job.strings, None
        if job.beam is not None:
            translate = partial(model.translations, beam=job.beam, options=job.options, strings=strings)
        super().__init__(text, model.both, job.options, job.strings, plain, translate, job.window)
        self._job, self._form = job, job.form(text)

    def rows(self, window: Window, progress: Progress = unseen) -> _Rows:
        """The number of a window, its rows, and what was seen of it."""
        aligned, tally = self.align(window, progress)
        if (strings := self.reader.strings) is not None:
            tally.uncopied |= {one.id: what for one in aligned if (what := _uncopied(one, strings))}
        if self._job.markup is not None:
            pairs = zip(window.pairs, aligned)
            aligned = [self._with_markup(self._job.markup, raw.source, one, tally) for raw, one in pairs]
        return window.number, self._form.table([raw.id for raw in window.pairs], aligned), tally

    def _with_markup(self, markup: Markup, marked: str, alignment: Alignment, tally: Tally) -> Alignment:
        try:
            return markup.put(marked, alignment, f"{self.reader.text.names[0]}:{alignment.id + 1}")
        except InputError as error:
            if not self._job.options.force:
                raise
            tally.untagged[alignment.id] = str(error)
            return replace(alignment, marked=escape(alignment.target, quote=False))


def _uncopied(alignment: Alignment, strings: Strings) -> str:
    """The first of ``strings`` that source and target do not have equally often; empty if none, or no target."""
    source, target = (
        Counter(text[slice(*span)] for span in strings.spans(text)) for text in (alignment.source, alignment.target)
    )
    unequal = (string for string in source | target if source[string] != target[string] and alignment.target_spans)
    return next((f"{shown(each)}: {source[each]} in the source, {target[each]} in the target" for each in unequal), "")


class _Run:
    """Aligns a text, and writes the outputs."""

    def __init__(self, job: Job, text: Text, model: NormModel) -> None:
        self._job, self._text = job, text
        self._here = _JobAligner(job, text, model)
        sample = self._here.sample()
        if job.markup is None:
            tagged = [any("</" in pair[which].text for _, pair in sample) for which in (0, 1)]
            if any(tagged):
                untag = "take them out of the target text, and " if tagged[1] else ""
                warn_user(f"the text has tags, which count as words: {untag}give --markup xml or html")
        warned = job.options.force or job.beam is not None
        check_parallel(sample, model.forward, () if warned else REFUSED)
        self._chosen = choose(job.options, model.both, self._here.first_pairs(), text.size)
        if self._chosen.reason:
            say(f"norm-align: {self._chosen.reason}")
        self._signature = signed(model.both, text.hashes, text.size, {**self._chosen.fields, **_of_text(job)})
        self._form = job.form(text)
        self._tally, self._sentences = Tally(), 0

    def run(self) -> None:
        """Align the windows that no stopped run has aligned, write the outputs, and say how it went."""
        job, start, kept = self._job, time.monotonic(), 0
        own = range(job.shard, len(self._here.ends), job.shards)
        if not job.in_directory and is_stream(job.output):
            self._write(table for _, table in self._align(own))
        else:
            kept = self._run_in_parts(own)
        for warning in self._tally.warnings():
            warn_user(warning)
        seconds = time.monotonic() - start
        said = f", {kept} kept from before" if job.resume else ""
        if self._text.size > 1:
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
        places = self._text.size, len(self._here.ends), job.shard, job.shards
        info = run_info(self._signature, self._form, more, *places)
        schema = info.schema(self._form.table([], []).schema, signature=self._signature)
        writer = PartsWriter(directory, info, schema, _NAMES, job.resume, job.overwrite)
        there = {part.number for part in writer.kept}
        if len(there) < len(own):
            (directory / _MARK).unlink(missing_ok=True)
        try:
            for number, table in self._align([number for number in own if number not in there]):
                writer.add(table)
                writer.commit(number)
            writer.finish()
        except BaseException:
            writer.abandon()
            if left := self._size(part.number for part in own_parts(directory, "alignments", job.shard, job.shards)):
                say(f"norm-align: {left} sentences are kept: --resume continues this run")
            raise
        if not job.in_directory and job.shards > 1:
            say(f"norm-align: when all shards are done: align-eval merge {directory} -o {job.output}")
        elif not job.in_directory or len(parts_in(directory, "alignments")) == len(self._here.ends):
            self._write(read_alignments(directory)[1])
            if job.in_directory:
                (directory / _MARK).touch()
            else:
                writer.remove()
        return self._size(there.intersection(own))

    def _size(self, numbers: Iterable[int]) -> int:
        """How many pairs windows have."""
        sizes = [end - start for start, end in pairwise([0, *self._here.ends])]
        return sum(sizes[number] for number in numbers)

    def _align(self, numbers: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        """Align windows, here or on Ray; those that a lexical table is counted on are always read here, and first."""
        aligner, counted = self._here.begin(self._chosen), self._here.counted
        here = [number for number in numbers if self._job.actors is None or number < counted]
        there = [number for number in numbers if number not in here]
        with progress_meter(self._size({*range(counted), *numbers}), "sentences") as progress:
            self._here.prepare(progress)
            rows = (self._here.rows(window, progress) for window in self._here.windows(here))
            chosen = replace(self._chosen, table=aligner.table)
            of_ray = _on_ray(self._job, self._text, chosen, self._here.windows(there), progress) if there else ()
            for number, table, tally in chain(rows, of_ray):
                self._text.check_unchanged()
                warned = self._tally.subwords.warning()
                self._tally.add(tally)
                self._sentences += len(table)
                if not warned and (warning := self._tally.subwords.warning()):
                    warn_user(warning)
                yield number, table

    def _write(self, tables: Iterable[pa.Table]) -> None:
        """Write the outputs that are files, and report the pairs that are not aligned."""
        job, skipped = self._job, dict[int, str]()
        with ExitStack() as stack:

            def opened(name: str) -> TextIO:
                temporary = stack.enter_context(new_file(name, job.resume))
                return stack.enter_context(temporary.open("w", encoding="utf-8", newline="\n"))

            words, scores = list(map(opened, job.tokens_out)), opened(job.scores_out) if job.scores_out else None
            if scores is not None:
                scores.write("\t".join((*PAIR_SCORES, "status")) + "\n")

            def passing() -> Iterator[pa.Table]:
                first = 0
                for table in tables:
                    for number, status in enumerate(table["status"].to_pylist(), first):
                        if status != "ok":
                            skipped[number] = status
                    first += len(table)
                    for alignment in alignments_in(table, table.column_names) if words or scores else ():
                        for file, of_side in zip(words, (alignment.source_words, alignment.target_words)):
                            file.write(" ".join("_".join(word.split()) for word in of_side) + "\n")
                        if scores is not None:
                            scores.write(_score_line(alignment))
                    yield table

            if job.in_directory:
                deque(passing(), maxlen=0)
            else:
                write_alignments(job.output, passing(), self._form, self._signature, job.resume)
        warn_skipped(skipped, self._text.size, "so they have no links", "line")


def _score_line(alignment: Alignment) -> str:
    """The scores of a pair, and its status."""
    values = (getattr(alignment.scores, name) for name in PAIR_SCORES)
    return "\t".join((*("" if value is None else repr(value) for value in values), alignment.status)) + "\n"


# ---- Ray


class _Actor(_JobAligner):
    """A process of the cluster, which loads the models when it begins."""

    def __init__(self, job: Job, text: Text, chosen: ChosenMethod) -> None:
        super().__init__(job, text, load_model(job.load_options, job.on_cpu))
        self.begin(chosen)


def _on_ray(
    job: Job, text: Text, chosen: ChosenMethod, windows: Iterable[Window], progress: Progress
) -> Iterator[_Rows]:
    """Align windows on a cluster; gives them in the order in which they end."""
    with _cluster() as ray:
        resources = ray.cluster_resources()
        gpus = 0 if job.on_cpu else int(resources.get("GPU", 0))
        count = job.actors or gpus or max(1, int(resources.get("CPU", 1)))
        # several actors may share a GPU: much of the work of each is on a processor
        share = {"num_gpus": 1 / math.ceil(count / gpus)} if gpus else {"num_cpus": 1}
        actors = ray.remote(_Actor).options(**share)
        known = replace(text, pairs=list, states={}, copies=())  # the lines come window by window
        free = [actors.remote(job, known, chosen) for _ in range(count)] * _WAITING
        busy: dict[Any, Any] = {}
        arriving = iter(windows)
        while True:
            for window in islice(arriving, len(free)):
                actor = free.pop(0)
                busy[actor.rows.remote(window)] = actor
            if not busy:
                break
            (done,), _ = ray.wait(list(busy), num_returns=1)
            free.append(busy.pop(done))
            rows: _Rows = ray.get(done)
            progress(len(rows[1]))
            yield rows


@contextmanager
def _cluster() -> Iterator[Any]:
    """Ray, connected to the cluster of RAY_ADDRESS, or to one that is started on this machine."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise InputError(f"--ray: the package ray cannot be imported ({error}): pip install ray") from error
    connected = ray.is_initialized()
    try:
        if not connected:
            try:
                ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
            except Exception as error:  # Ray raises plain exceptions
                raise InputError(f"--ray: Ray cannot be started ({_reason(error)}); try again") from error
        yield ray
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise InputError(f"--ray: {_reason(error)}") from error
    finally:
        if not connected:
            ray.shutdown()


def _reason(error: BaseException) -> str:
    """The reason of an error that Ray raised: the error of an actor, if one caused it."""
    inner: Any = error
    while inner is not None:
        if isinstance(inner, InputError):
            return str(inner)
        inner = getattr(inner, "cause", None) or inner.__cause__
    return f"{type(error).__name__}: {printable(str(error).strip().splitlines()[-1], 300)}"
