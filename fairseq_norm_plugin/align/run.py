"""Run ``norm-align`` in this process: load models and text, choose the method, align window by window, write."""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path

from fairseq_norm_plugin.hooks import registration as registration  # fairseq is imported there first

# isort: split
import torch

from alignment_eval.errors import InputError, say, warn_on_stderr
from alignment_eval.extraction.corpus import AlignedPair
from alignment_eval.extraction.extract import links_line
from alignment_eval.extraction.method import BidirectionalOptions
from alignment_eval.extraction.pair_scores import FIGURES
from alignment_eval.extraction.word_table import WordTable
from alignment_eval.files import check_new, file_hash, is_stream, json_hash, new_file, write_lines
from alignment_eval.links.symmetrize import METHODS
from alignment_eval.links.table import TYPES, json_line, write_table
from alignment_eval.options.common import check_outputs
from alignment_eval.options.method import (
    given_passes,
    given_word_table,
    on_count,
    stated_method,
    states_maps,
    with_word_table_options,
    word_table_fields,
    word_table_file,
)
from alignment_eval.profiles.chosen import ChosenMethod, Overrides, by_options, chosen_method, seen_warning
from alignment_eval.progress import progress_meter
from alignment_eval.report.alignment_view import TYPES_WITH_SCORES, Alignment
from alignment_eval.signature import Value
from fairseq_norm_plugin.align.arguments import check_directions, load_models, model_inputs, read_text
from fairseq_norm_plugin.align.translation import translated
from fairseq_norm_plugin.align.unfinished import (
    Row,
    UnfinishedOutput,
    begun_with,
    check_not_begun,
    partial_path,
    translations_of,
)
from fairseq_norm_plugin.aligner.aligner import Aligner
from fairseq_norm_plugin.aligner.calibration import profiles_of
from fairseq_norm_plugin.aligner.mismatch import check_parallel, sampled
from fairseq_norm_plugin.installed import signature, versions
from fairseq_norm_plugin.model.jobs import plain_text, with_markup
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.process import keep_few_programs
from fairseq_norm_plugin.recording.identity import architecture_hash, dictionary_hash
from fairseq_norm_plugin.text.pairs import SentencePairs, TranslatedText
from fairseq_norm_plugin.text.settings import TextSettings
from fairseq_norm_plugin.text.tokenise import LinePair, words_of_pair

#: Endings of outputs that hold the text too.
WITH_TEXT = (".jsonl", ".parquet")


def run(args: argparse.Namespace) -> None:
    """Align the text that ``args`` name."""
    keep_few_programs()
    own = args.resume and partial_path(args.output).exists()  # what is there may be of the stopped run: see _write
    for file in (args.output, *(args.tokens_out or ()), *([args.scores_out] if args.scores_out else ())):
        check_new(file, args.overwrite or own, parents=True)
    if not is_stream(args.output):
        for file in (args.output, translations_of(args.output)):
            check_not_begun(file, args.resume, args.overwrite)
    args.confidences |= args.output.endswith(WITH_TEXT) and args.join not in METHODS
    word_table = given_word_table(args)
    text = read_text(args)
    if args.markup is not None:
        text = text.marked_up(partial(plain_text, syntax=args.markup, keep_going=args.force))
    models = load_models(args)
    check_outputs(vars(args), model_inputs(models), begun_with(args.output))
    check_directions(args, len(models))
    text = text.through(models[0].direction.pipelines)
    try:
        with ExitStack() as stack:
            if isinstance(text, TranslatedText):
                stack.enter_context(translated(args, text, models[0], _run_hash({}, text, models[:1], {})))
            _align(args, text, models, word_table)
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"--max-tokens {args.max_tokens}: a batch does not fit into GPU memory; give fewer tokens, or --cpu"
        ) from error


def _align(
    args: argparse.Namespace, text: SentencePairs, models: Sequence[NormModel], word_table: WordTable | None
) -> None:
    """Align a text, and write the output."""
    directions = [model.direction for model in models]
    check_parallel(sampled(text, text.size), directions, args.force or bool(args.translate))
    chosen = _choose_method(args, models, text)
    if chosen.profile is not None:
        say(f"norm-align: {chosen.reason}")
        if warning := seen_warning(chosen.profile, map(words_of_pair, text), text.size):
            warn_on_stderr(warning)
    fields: dict[str, Value] = {
        **chosen.method.fields(),
        **word_table_fields(args),
        **({"confidences": True} if args.confidences else {}),
        **({"scores": True} if args.scores_out is not None else {}),
        **({"source_contribution": True} if args.source_contribution else {}),
        **({"beam": args.translate} if args.translate else {}),
        **({"markup": args.markup} if args.markup else {}),
        **chosen.fields,
    }
    dtype = {} if args.dtype == "float32" else {"dtype": args.dtype}
    described = signature(run=_run_hash(dtype, text, models, fields), sentences=text.size, **dtype, **fields)
    counted: list[WordTable] = []
    aligner = Aligner(
        chosen.method,
        directions,
        args.max_tokens,
        word_table,
        counted.append,
        scores=args.scores_out is not None,
        contribution=args.source_contribution,
    )
    windows = _Windows(args, text, aligner)

    def save() -> None:
        for made in counted:
            on_count(args, described)(made)

    start = time.monotonic()
    if args.resume:
        _write_tokens(args, text, only_existing=True)
    if is_stream(args.output):
        kept = 0
        _write(args, text, itertools.chain.from_iterable(windows.aligned(0)))
        save()
    else:
        with UnfinishedOutput(args.output, described, windows.ends, args.resume, args.overwrite) as unfinished:
            kept = unfinished.kept
            for rows in windows.aligned(kept):
                unfinished.append(rows)
            save()
            _write(args, text, unfinished.rows())
    if windows.without_tags:
        warn_on_stderr(f"lines written without tags: {windows.without_tags}; the first is {windows.first_without[1]}")
    if warning := aligner.links_warning():
        warn_on_stderr(warning)
    seconds, done = time.monotonic() - start, text.size - kept
    said = f", {kept} kept from before" if kept else ""
    say(f"norm-align: {done} sentences in {seconds:.1f} s, {done / seconds:.1f} sentences/s{said}")
    say(described)


def _choose_method(args: argparse.Namespace, models: Sequence[NormModel], text: SentencePairs) -> ChosenMethod:
    """Choose the method: by the options, else by the models' profiles, else by calibration on the text itself."""
    stated = None
    if args.join is not None:
        stated = BidirectionalOptions(method=args.join) if args.join in METHODS else BidirectionalOptions(args.join)
    if states_maps(args):
        both = (stated or BidirectionalOptions(join="product")) if len(models) > 1 else None
        return by_options(with_word_table_options(stated_method(args, both, given_passes(args) or 0), args))
    directions, hashes = [model.direction for model in models], [model.identity for model in models]
    profiles, names = profiles_of(directions, hashes, text, args.profile, args.max_tokens)
    overrides = Overrides(args.rule, given_passes(args), stated, args.final_punctuation, word_table_file(args))
    chosen = chosen_method(profiles, names, text.size, overrides)
    return replace(chosen, method=with_word_table_options(chosen.method, args))


class _Windows:
    """The windows of a text: sentences that are sorted by length together.

    Attributes:
        ends: the number of pairs before the end of each window; one window ends with the last pair that a word table is
            counted on.
    """

    def __init__(self, args: argparse.Namespace, text: SentencePairs, aligner: Aligner) -> None:
        self._args = args
        self.without_tags = 0
        self.first_without = (text.size, "")  # number of the pair, and why
        self._with_text = args.markup is not None or args.output.endswith(WITH_TEXT)
        self._lines: dict[int, tuple[LinePair, float | None]] = {}  # of a window, if they are written; and scores
        self._text = text
        self._aligner = aligner
        self._counted = min(aligner.counted_pairs, text.size)
        self.ends = sorted({*range(args.window, text.size, args.window), self._counted, text.size} - {0})

    def aligned(self, done: int) -> Iterator[list[Row]]:
        """Align the windows after the first ``done`` pairs; yields the rows of each, in the order of the text.

        The pairs that a word table is counted on are always aligned, so that it is the same after a stop.
        """
        windows = [(a, b) for a, b in zip([0, *self.ends], self.ends) if b > done or b <= self._counted]
        numbered = self._noted(enumerate(self._text))
        places = zip([0, *(end for _, end in windows)], windows)  # each window is read before the next
        read = (itertools.islice(numbered, start - place, end - place) for place, (start, end) in places)
        with progress_meter(sum(b - a for a, b in windows), "sentences") as progress:
            pairs = self._aligner.align(read, progress)
            warned = False
            for start, end in windows:
                rows = [(pair.id, pair.status, self._row(pair)) for pair in itertools.islice(pairs, end - start)]
                self._text.check_unchanged()
                if end > done:
                    yield [(status, line) for _, status, line in sorted(rows)]
                if not warned and (warning := self._aligner.unknown.warning()):
                    warn_on_stderr(warning)
                    warned = True

    def _noted(self, pairs: Iterator[tuple[int, LinePair]]) -> Iterator[tuple[int, LinePair]]:
        for (id_, pair), score in zip(pairs, self._text.scores()):
            if self._with_text:
                self._lines[id_] = pair, score
            yield id_, pair

    def _row(self, pair: AlignedPair) -> str:
        """What the outputs say of a pair: the fields of its scores, if they have a file of their own, and a line."""
        fields = pair.scores.to_fields() if pair.scores is not None and self._args.scores_out else []
        return "\t".join([*fields, self._line(pair)])

    def _line(self, pair: AlignedPair) -> str:
        """What the output says of a pair."""
        if not self._with_text:
            return links_line(pair.links, self._args.confidences)
        lines, score = self._lines.pop(pair.id)
        alignment = replace(Alignment.of(*lines, pair), score=score)
        if self._args.markup is None:
            return json_line(alignment.to_row())
        try:
            return with_markup(lines[0].given, alignment, self._args.markup, f"{self._text.name}:{pair.id + 1}")
        except InputError as error:
            if not self._args.force:
                raise
            self.without_tags += 1
            self.first_without = min(self.first_without, (pair.id, str(error)))
            return escape(lines[1].text, quote=False)


def _write(args: argparse.Namespace, text: SentencePairs, rows: Iterator[Row]) -> None:
    """Write the words that links count and the output, and report the pairs that are not aligned."""
    _write_tokens(args, text)
    left_out: dict[str, list[int]] = {}

    def noted() -> Iterator[Row]:
        for number, (status, line) in enumerate(rows, 1):
            if status != "ok":
                left_out.setdefault(status, [0, number])[0] += 1
            yield status, line

    with _scores_file(args.scores_out, args.resume) as lines_of:
        lines = lines_of(noted())
        if args.output.endswith(".parquet"):
            types = TYPES if args.scores_out is None else TYPES_WITH_SCORES
            with new_file(args.output, args.resume) as temporary:
                write_table(temporary, map(json.loads, lines), text.ids(), types)
        else:
            write_lines(args.output, lines, args.resume)
    for status, (count, first) in left_out.items():
        warn_on_stderr(f"sentence pairs that are {status}: {count}, without links (the first is line {first})")


def _write_tokens(args: argparse.Namespace, text: SentencePairs, only_existing: bool = False) -> None:
    """Write the words that links count (``--tokens-out``)."""
    for which, file in enumerate(args.tokens_out or ()):
        if Path(file).exists() or not only_existing:
            write_lines(file, (" ".join(pair[which].words) for pair in text), args.resume)


@contextmanager
def _scores_file(path: str | None, resumed: bool) -> Iterator[Callable[[Iterator[Row]], Iterator[str]]]:
    """Gives a function from rows to the lines of the output, which writes the scores that precede them to a file."""
    if not path:
        yield lambda rows: (line for _, line in rows)
        return
    with new_file(path, resumed) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join((*FIGURES, "status")) + "\n")

        def lines_of(rows: Iterator[Row]) -> Iterator[str]:
            for status, row in rows:
                *fields, line = row.split("\t", len(FIGURES))
                file.write("\t".join((*fields, status)) + "\n")
                yield line

        yield lines_of


def _run_hash(dtype: dict[str, str], text: SentencePairs, models: Sequence[NormModel], fields: dict[str, Value]) -> str:
    """The hash of everything that decides the output."""
    return json_hash(
        {
            **versions(),
            "models": [model.identity for model in models],
            **dtype,
            "architectures": [architecture_hash(model.models) for model in models],
            "dictionaries": [dictionary_hash(*(v.dictionary for v in model.vocabularies)) for model in models],
            "pipelines": [_pipeline_fields(model.text) for model in models],
            "text": list(text.hashes),
            "extraction": fields,
        }
    )


def _pipeline_fields(text: TextSettings) -> dict[str, Value]:
    """What decides how text becomes pieces."""
    options = {name: str(value) for name, value in sorted(text.options.items()) if name != "bpe_codes"}
    hashes = [file_hash(Path(name)) for name in text.files]
    return {
        "tokenizer": text.tokenizer,
        "lowercase": text.lowercase,
        "bpe": text.bpe,
        "words": ",".join(text.words),
        "mark": text.mark,
        "options": json.dumps(options),
        "files": ",".join(hashes),
    }
