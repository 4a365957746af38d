"""Run ``norm-align`` in this process: load models and text, choose the method, align window by window, write."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import torch

from alignment_eval.alignment import Alignment, column_types
from alignment_eval.errors import InputError, progress_meter, say, warn_user
from alignment_eval.extraction.pair_scores import PAIR_SCORES
from alignment_eval.files import check_distinct, check_new, is_stream, json_line, new_file, write_lines
from alignment_eval.links.files import check_signed, write_signed, write_table
from alignment_eval.reading import json_hash
from alignment_eval.signature import Value
from alignment_eval.transfer.pairs import Markup
from fairseq_norm_plugin.align.job import WITH_TEXT, Job, check_directions, load_models, read_text
from fairseq_norm_plugin.align.unfinished import (
    UnfinishedOutput,
    check_not_begun,
    partial_path,
    translations_of,
)
from fairseq_norm_plugin.model.aligner import aligner_of, signed
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.model.text_check import check_parallel, sample_lines
from fairseq_norm_plugin.text.lines import SentencePairs, TranslatedText
from fairseq_norm_plugin.text.pair import SentencePair, strings_of
from fairseq_norm_plugin.text.tokenise import splitter_name

#: How many numbers of lines a warning names.
_SHOWN = 20


class Row(NamedTuple):
    """What the outputs say of a pair: a line or the columns of a row, and its scores if they have their own file."""

    status: str
    content: str | dict[str, Any]
    scores: Sequence[float | None] = ()


def run(job: Job) -> None:
    """Align the text of a job."""
    own = job.resume and partial_path(job.output).exists()  # what is there may be of the stopped run
    check_output = check_new if job.output.endswith(".parquet") else check_signed
    check_output(job.output, job.overwrite or own, parents=True)
    for file in filter(None, (*job.tokens_out, job.scores_out)):
        check_new(file, job.overwrite or own, parents=True)
    if not is_stream(job.output):
        for file in (job.output, translations_of(job.output)):
            check_not_begun(file, job.resume, job.overwrite)
    text = read_text(job.paths, job.words, translated=job.beam is not None)
    models = load_models(job.models, job.on_cpu)
    of_models = [file for model in models for file in (*model.text.files, str(model.direction.profile))]
    check_distinct(job.outputs, [*job.inputs, *of_models])
    check_directions(job.options, len(models))
    plain = None if job.markup is None else partial(job.markup.plain, keep_going=job.options.force)
    text = text.through(models[0].pipelines(job.options.split_sentences), job.strings, plain)
    try:
        with ExitStack() as stack:
            if isinstance(text, TranslatedText):
                stack.enter_context(_translated(job, text, models[0]))
            _Run(job, text, models).run()
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"--max-tokens {job.options.max_tokens}: too many for the GPU; give fewer, or --cpu"
        ) from error


@contextmanager
def _translated(job: Job, text: TranslatedText, model: NormModel) -> Iterator[None]:
    """Translate the source lines of a text (``--translate``), which has its translations inside the block.

    A run that was stopped goes on after the last translation.
    """
    strings = None if job.markup else job.strings
    with tempfile.TemporaryDirectory() as directory:
        output = str(Path(directory) / "text") if is_stream(job.output) else job.output
        described = signed([model], text.hashes, text.size, _of_text(job))
        ends = sorted({*range(job.window, text.size, job.window), text.size})
        with UnfinishedOutput(translations_of(output), described, ends, job.resume, job.overwrite) as unfinished:
            kept = unfinished.kept
            sources = itertools.islice(text.sources(), kept, None)
            with progress_meter(text.size - kept, "translations") as progress:
                while window := list(itertools.islice(sources, job.window)):
                    found = model.translations(window, job.beam or 1, job.options, strings, progress)
                    unfinished.append((line.score, line.sentences or line.text) for line in found)
            text.translations = unfinished.rows
            yield


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

    def __init__(self, job: Job, text: SentencePairs, models: Sequence[NormModel]) -> None:
        self._job, self._text = job, text
        sample = list(text.numbered(sample_lines(text.size)))
        check_parallel(sample, [model.direction for model in models], job.options.force or job.beam is not None)
        if job.markup is None and any("</" in pair.source.text for _, pair in sample):
            warn_user("the text has tags, which count as words: give --markup")
        self._aligner = aligner_of(job.options, models, text, text.size)
        chosen = self._aligner.chosen
        if chosen.reason:
            say(f"norm-align: {chosen.reason}")
        self._described = signed(models, text.hashes, text.size, {**chosen.fields, **_of_text(job)})
        self._untagged: dict[int, str] = {}  # pairs that are written without tags, and why
        self._uncopied: list[int] = []  # pairs with protected strings that have no copy
        self._extras: dict[int, tuple[str, float | None]] = {}  # source lines with markup, and scores of translations
        # windows are sorted by length; one ends with the last pair that a lexical table is counted on
        self._counted = min(self._aligner.counted_pairs, text.size)
        self._ends = sorted({*range(job.window, text.size, job.window), self._counted, text.size} - {0})

    def run(self) -> None:
        """Align the windows that no stopped run has aligned, write the outputs, and say how it went."""
        job, text, kept = self._job, self._text, 0
        start = time.monotonic()
        if job.resume:
            self._write_tokens(only_existing=True)
        if is_stream(job.output):
            self._write(itertools.chain.from_iterable(self._windows(0)))
        else:
            form = {
                "confidences": job.confidences,
                "scores": job.options.scores,
                "source_contribution": job.options.source_contribution,
                "markup": job.markup.syntax if job.markup else "none",
            }
            head = "|".join([self._described, *(f"{name}:{value}" for name, value in form.items())])
            with UnfinishedOutput(job.output, head, self._ends, job.resume, job.overwrite) as unfinished:
                kept = unfinished.kept
                for rows in self._windows(kept):
                    unfinished.append(rows)
                self._write(itertools.starmap(Row, unfinished.rows()))
        if untagged := self._untagged:
            numbers = _shown_lines(sorted(untagged))
            warn_user(f"lines written without tags: {numbers}; the first is {untagged[min(untagged)]}")
        if self._uncopied:
            warn_user(
                f"lines of {text.name} whose target has not each protected string of the source once: "
                f"{_shown_lines(self._uncopied)}"
            )
        for warning in self._aligner.warnings():
            warn_user(warning)
        seconds, done = time.monotonic() - start, text.size - kept
        said = f", {kept} kept from before" if job.resume else ""
        if text.size > 1:
            say(f"norm-align: {done} sentences in {seconds:.1f} s, {done / seconds:.1f} sentences/s{said}")
        say(self._described)

    def _windows(self, done: int) -> Iterator[list[Row]]:
        """Align the windows after the first ``done`` pairs; yields the rows of each, in the order of the text.

        The pairs that a lexical table is counted on are always aligned, so that it is the same after a stop.
        """
        windows = [(a, b) for a, b in zip([0, *self._ends], self._ends) if b > done or b <= self._counted]
        numbered = self._numbered_pairs()
        places = zip([0, *(end for _, end in windows)], windows)  # each window is read before the next
        read = (itertools.islice(numbered, start - place, end - place) for place, (start, end) in places)
        with progress_meter(sum(b - a for a, b in windows), "sentences") as progress:
            aligned = self._aligner.align(read, progress)
            warned = False
            for start, end in windows:
                rows = {alignment.id: self._row(alignment) for alignment in itertools.islice(aligned, end - start)}
                self._text.check_unchanged()
                if end > done:
                    yield [rows[id_] for id_ in sorted(rows)]
                if not warned and (warning := self._aligner.reader.unknown.warning()):
                    warn_user(warning)
                    warned = True

    def _numbered_pairs(self) -> Iterator[tuple[int, SentencePair]]:
        """The pairs, numbered; keeps what rows need and alignments lack."""
        strings = self._text.strings
        for id_, (pair, score) in enumerate(zip(self._text, self._text.scores())):
            counts = {len(strings_of(line.text, strings)) for line in pair} if strings and pair.target else set()
            if counts - {len(pair.source.copies)}:
                self._uncopied.append(id_)
            if self._job.markup is not None or score is not None:
                self._extras[id_] = pair.source.marked, score
            yield id_, pair

    def _row(self, alignment: Alignment) -> Row:
        """What the outputs say of a pair."""
        marked, score = self._extras.pop(alignment.id, ("", None))
        scored = alignment.scores is not None and self._job.scores_out
        scores = [getattr(alignment.scores, name) for name in PAIR_SCORES] if scored else ()
        if self._job.markup is not None:
            alignment = self._with_markup(self._job.markup, marked, alignment)
        content: str | dict[str, Any]
        if self._job.output.endswith(WITH_TEXT):
            content = {**alignment.to_row(), "score": score}
        elif alignment.marked is not None:
            content = alignment.marked
        else:
            content = alignment.to_pharaoh(self._job.confidences)
        return Row(alignment.status, content, scores)

    def _with_markup(self, markup: Markup, marked: str, alignment: Alignment) -> Alignment:
        try:
            return markup.put(marked, alignment, f"{self._text.name}:{alignment.id + 1}")
        except InputError as error:
            if not self._job.options.force:
                raise
            self._untagged[alignment.id] = str(error)
            return replace(alignment, marked=escape(alignment.target, quote=False))

    def _write(self, rows: Iterator[Row]) -> None:
        """Write the words that links count and the output, and report the pairs that are not aligned."""
        job = self._job
        self._write_tokens()
        left_out: dict[str, list[int]] = {}

        def contents() -> Iterator[Any]:
            for number, row in enumerate(rows, 1):
                if row.status != "ok":
                    left_out.setdefault(row.status, [0, number])[0] += 1
                if scores is not None:
                    fields = ("" if value is None else repr(value) for value in row.scores)
                    scores.write("\t".join((*fields, row.status)) + "\n")
                yield row.content

        with ExitStack() as stack:
            scores: TextIO | None = None
            if job.scores_out:
                temporary = stack.enter_context(new_file(job.scores_out, job.resume))
                scores = stack.enter_context(temporary.open("w", encoding="utf-8", newline="\n"))
                scores.write("\t".join((*PAIR_SCORES, "status")) + "\n")
            if job.output.endswith(".parquet"):
                types = column_types(job.options.scores, job.markup is not None)
                with new_file(job.output, job.resume) as temporary:
                    write_table(temporary, contents(), self._text.ids(), types, self._described)
            else:
                as_line = json_line if job.output.endswith(".jsonl") else str
                write_signed(job.output, map(as_line, contents()), self._described, job.resume)
        for status, (count, first) in left_out.items():
            warn_user(f"sentence pairs that are {status}: {count}, without links (the first is line {first})")

    def _write_tokens(self, only_existing: bool = False) -> None:
        """Write the words that links count (``--tokens-out``)."""
        for which, file in enumerate(self._job.tokens_out):
            if Path(file).exists() or not only_existing:
                words = (" ".join("_".join(word.split()) for word in pair[which].words) for pair in self._text)
                write_lines(file, words, self._job.resume)


def _shown_lines(ids: Sequence[int]) -> str:
    """How many lines, and the numbers of the first ones."""
    more = ", …" if len(ids) > _SHOWN else ""
    return f"{len(ids)} ({', '.join(str(id_ + 1) for id_ in ids[:_SHOWN])}{more})"
