"""Run ``norm-align`` in this process: load models and text, choose the method, align window by window, write."""

from __future__ import annotations

import argparse
import itertools
import re
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
from alignment_eval.command_line import check_outputs
from alignment_eval.errors import InputError, progress_meter, say, warn_on_stderr
from alignment_eval.extraction.pair_scores import FIGURES
from alignment_eval.files import check_new, is_stream, json_line, new_file, write_lines
from alignment_eval.links.files import check_signed, write_signed, write_table
from alignment_eval.links.symmetrize import METHODS
from alignment_eval.profiles.chosen import given_options
from alignment_eval.reading import json_hash
from alignment_eval.signature import Value
from alignment_eval.transfer.pairs import Markup
from alignment_eval.transfer.strings import protected_strings
from fairseq_norm_plugin.align.arguments import check_directions, load_models, read_text
from fairseq_norm_plugin.align.unfinished import (
    UnfinishedOutput,
    begun_with,
    check_not_begun,
    partial_path,
    translations_of,
)
from fairseq_norm_plugin.model.aligner import aligner_of, signed
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.model.text_check import check_parallel, sampled
from fairseq_norm_plugin.text.lines import SentencePairs, TranslatedText
from fairseq_norm_plugin.text.tokenise import SentencePair, splitter_name, strings_of

#: Endings of outputs that hold the text too.
WITH_TEXT = (".jsonl", ".parquet")


class Row(NamedTuple):
    """What the outputs say of a pair: a line or the columns of a row, and its scores if they have their own file."""

    status: str
    content: str | dict[str, Any]
    scores: Sequence[float | None] = ()


def run(args: argparse.Namespace) -> None:
    """Align the text that ``args`` name."""
    own = args.resume and partial_path(args.output).exists()  # what is there may be of the stopped run
    check_output = check_new if args.output.endswith(".parquet") else check_signed
    check_output(args.output, args.overwrite or own, parents=True)
    for file in (*(args.tokens_out or ()), *([args.scores_out] if args.scores_out else ())):
        check_new(file, args.overwrite or own, parents=True)
    if not is_stream(args.output):
        for file in (args.output, translations_of(args.output)):
            check_not_begun(file, args.resume, args.overwrite)
    args.confidences |= args.output.endswith(WITH_TEXT) and args.join not in METHODS
    text = read_text(args)
    strings = protected_strings(args.protect, default=bool(args.translate))
    markup = plain = None
    if args.markup is not None:
        markup = Markup.of(args.markup, args.opaque, strings if args.translate else None)
        plain = partial(markup.plain, keep_going=args.force)
    models = load_models(args)
    of_models = [file for model in models for file in (*model.text.files, str(model.direction.profile))]
    check_outputs(args, of_models, begun_with(args.output))
    check_directions(args, len(models))
    text = text.through(models[0].pipelines(args.split_sentences), strings, plain)
    try:
        with ExitStack() as stack:
            if isinstance(text, TranslatedText):
                stack.enter_context(_translated(args, text, models[0], None if markup else strings))
            _Job(args, text, models, markup).run()
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"--max-tokens {args.max_tokens}: a batch does not fit into GPU memory; give fewer tokens, or --cpu"
        ) from error


@contextmanager
def _translated(
    args: argparse.Namespace, text: TranslatedText, model: NormModel, strings: re.Pattern[str] | None
) -> Iterator[None]:
    """Translate the source lines of a text (``--translate``), which has its translations inside the block.

    A run that was stopped goes on after the last translation.
    """
    with tempfile.TemporaryDirectory() as directory:
        output = str(Path(directory) / "text") if is_stream(args.output) else args.output
        described = signed([model], text.hashes, text.size, _of_text(args))
        ends = sorted({*range(args.window, text.size, args.window), text.size})
        with UnfinishedOutput(translations_of(output), described, ends, args.resume, args.overwrite) as unfinished:
            kept = unfinished.kept
            sources = itertools.islice(text.sources(), kept, None)
            with progress_meter(text.size - kept, "translations") as progress:
                while window := list(itertools.islice(sources, args.window)):
                    found = model.translations(
                        *(window, args.translate, args.max_tokens, strings, progress, args.split_sentences)
                    )
                    unfinished.append((line.score, line.sentences or line.text) for line in found)
            text.translations = unfinished.rows
            yield


def _of_text(args: argparse.Namespace) -> dict[str, Value]:
    """What a signature says of translations, of sentences, and of text that is not translated."""
    stated = {
        "beam": args.translate,
        "opaque": ",".join(args.opaque),
        "protect": args.protect and json_hash(args.protect),
        "split": args.split_sentences and splitter_name(),
    }
    return {name: value for name, value in stated.items() if value}


class _Job:
    """Aligns a text, and writes the outputs."""

    def __init__(
        self, args: argparse.Namespace, text: SentencePairs, models: Sequence[NormModel], markup: Markup | None
    ) -> None:
        self._args, self._text, self._markup = args, text, markup
        sample = list(sampled(text, text.size))
        check_parallel(sample, [model.direction for model in models], args.force or bool(args.translate))
        if args.scores_out is not None and markup is None and any("</" in pair.source.text for _, pair in sample):
            warn_on_stderr("the text has tags, and scores take them for words: give --markup")
        self._aligner, chosen = aligner_of(given_options(args), models, text, text.size)
        if chosen.reason:
            say(f"norm-align: {chosen.reason}")
        self._described = signed(models, text.hashes, text.size, {**chosen.fields, **_of_text(args)})
        self._untagged: dict[int, str] = {}  # pairs that are written without tags, and why
        self._uncopied: list[int] = []  # pairs with protected strings that have no copy
        self._extras: dict[int, tuple[str, float | None]] = {}  # source lines with markup, and scores of translations
        # windows are sorted by length; one ends with the last pair that a lexical table is counted on
        self._counted = min(self._aligner.counted_pairs, text.size)
        self._ends = sorted({*range(args.window, text.size, args.window), self._counted, text.size} - {0})

    def run(self) -> None:
        """Align the windows that no stopped run has aligned, write the outputs, and say how it went."""
        args, text, kept = self._args, self._text, 0
        start = time.monotonic()
        if args.resume:
            self._write_tokens(only_existing=True)
        if is_stream(args.output):
            self._write(itertools.chain.from_iterable(self._windows(0)))
        else:
            form = {
                "confidences": args.confidences,
                "scores": args.scores_out is not None,
                "source_contribution": args.source_contribution,
                "markup": args.markup or "none",
            }
            head = "|".join([self._described, *(f"{name}:{value}" for name, value in form.items())])
            with UnfinishedOutput(args.output, head, self._ends, args.resume, args.overwrite) as unfinished:
                kept = unfinished.kept
                for rows in self._windows(kept):
                    unfinished.append(rows)
                self._write(itertools.starmap(Row, unfinished.rows()))
        if untagged := self._untagged:
            warn_on_stderr(f"lines written without tags: {len(untagged)}; the first is {untagged[min(untagged)]}")
        if self._uncopied:
            warn_on_stderr(
                f"lines whose target has not each protected string of the source once: {len(self._uncopied)}; the "
                f"first is {text.name}:{self._uncopied[0] + 1}"
            )
        for warning in self._aligner.warnings():
            warn_on_stderr(warning)
        seconds, done = time.monotonic() - start, text.size - kept
        said = f", {kept} kept from before" if kept else ""
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
                if not warned and (warning := self._aligner.unknown.warning()):
                    warn_on_stderr(warning)
                    warned = True

    def _numbered_pairs(self) -> Iterator[tuple[int, SentencePair]]:
        """The pairs, numbered; keeps what rows need and alignments lack."""
        strings = self._text.strings
        for id_, (pair, score) in enumerate(zip(self._text, self._text.scores())):
            counts = {len(strings_of(line.text, strings)) for line in pair} if strings and pair.target else set()
            if counts - {len(pair.source.copies)}:
                self._uncopied.append(id_)
            if self._markup is not None or score is not None:
                self._extras[id_] = pair.source.marked, score
            yield id_, pair

    def _row(self, alignment: Alignment) -> Row:
        """What the outputs say of a pair."""
        marked, score = self._extras.pop(alignment.id, ("", None))
        scored = alignment.scores is not None and self._args.scores_out
        scores = [getattr(alignment.scores, name) for name in FIGURES] if scored else ()
        if self._markup is not None:
            alignment = self._with_markup(self._markup, marked, alignment)
        content: str | dict[str, Any]
        if self._args.output.endswith(WITH_TEXT):
            content = {**alignment.to_row(), "score": score}
        elif alignment.marked is not None:
            content = alignment.marked
        else:
            content = alignment.to_pharaoh(self._args.confidences)
        return Row(alignment.status, content, scores)

    def _with_markup(self, markup: Markup, marked: str, alignment: Alignment) -> Alignment:
        try:
            return markup.put(marked, alignment, f"{self._text.name}:{alignment.id + 1}")
        except InputError as error:
            if not self._args.force:
                raise
            self._untagged[alignment.id] = str(error)
            return replace(alignment, marked=escape(alignment.target, quote=False))

    def _write(self, rows: Iterator[Row]) -> None:
        """Write the words that links count and the output, and report the pairs that are not aligned."""
        args = self._args
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
            if args.scores_out:
                temporary = stack.enter_context(new_file(args.scores_out, args.resume))
                scores = stack.enter_context(temporary.open("w", encoding="utf-8", newline="\n"))
                scores.write("\t".join((*FIGURES, "status")) + "\n")
            if args.output.endswith(".parquet"):
                types = column_types(args.scores_out is not None, self._markup is not None)
                with new_file(args.output, args.resume) as temporary:
                    write_table(temporary, contents(), self._text.ids(), types, self._described)
            else:
                as_line = json_line if args.output.endswith(".jsonl") else str
                write_signed(args.output, map(as_line, contents()), self._described, args.resume)
        for status, (count, first) in left_out.items():
            warn_on_stderr(f"sentence pairs that are {status}: {count}, without links (the first is line {first})")

    def _write_tokens(self, only_existing: bool = False) -> None:
        """Write the words that links count (``--tokens-out``)."""
        for which, file in enumerate(self._args.tokens_out or ()):
            if Path(file).exists() or not only_existing:
                write_lines(
                    file,
                    (" ".join("_".join(word.split()) for word in pair[which].words) for pair in self._text),
                    self._args.resume,
                )
