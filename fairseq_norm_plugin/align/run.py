"""Run ``norm-align`` in this process: load models and text, choose the method, align window by window, write."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from alignment_eval import __version__
from alignment_eval.errors import InputError, warn_on_stderr
from alignment_eval.extraction.extract import links_line
from alignment_eval.extraction.lexicon import Lexicon
from alignment_eval.extraction.method import BidirectionalOptions
from alignment_eval.files import check_new, file_hash, is_stream, json_hash, new_file, write_lines
from alignment_eval.options.method import (
    given_lexicon,
    given_passes,
    lexicon_fields,
    on_count,
    stated_method,
    states_maps,
    with_lexicon_options,
)
from alignment_eval.profiles.chosen import ChosenMethod, Overrides, by_options, chosen_method, seen_warning
from alignment_eval.progress import progress_meter
from alignment_eval.signature import Value, signature
from fairseq_norm_plugin.align.arguments import check_directions, load_models, read_text
from fairseq_norm_plugin.align.unfinished import Row, UnfinishedOutput, check_not_begun
from fairseq_norm_plugin.aligner.aligner import Aligner
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.aligner.find_profiles import profiles_of
from fairseq_norm_plugin.aligner.mismatch import mismatch_warning
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.process import keep_few_programs
from fairseq_norm_plugin.recording.identity import architecture_hash, dictionary_hash
from fairseq_norm_plugin.text.alignment_table import ENDING, write_table
from fairseq_norm_plugin.text.pairs import SentencePairs, TokenPair
from fairseq_norm_plugin.text.settings import TextSettings


def run(args: argparse.Namespace) -> None:
    """Align the text that ``args`` name.

    Raises:
        UsageError: options that contradict each other, or a layer or head that the model lacks.
        InputError: a file cannot be used, the output already exists, or a batch is too large for the GPU.
    """
    keep_few_programs()
    for file in (args.output, *(args.tokens_out or ())):
        check_new(file, args.overwrite, parents=True)
    if not is_stream(args.output):
        check_not_begun(args.output, args.resume, args.overwrite)
    args.confidences |= args.output.endswith(ENDING) and args.symmetrize is None
    lexicon = given_lexicon(args)
    text = read_text(args)
    models = load_models(args)
    check_directions(args, len(models))
    directions = [model.direction for model in models]
    text = text.through(directions[0].pipelines)
    if warning := mismatch_warning(text, text.size, directions[0], args.max_tokens):
        warn_on_stderr(warning)
    chosen = _choose_method(args, models, text)
    if chosen.profile is not None:
        print(f"norm-align: {chosen.reason}", file=sys.stderr)
        words = (_words_of(pair, directions[0]) for pair in text)
        if warning := seen_warning(chosen.profile, words, text.size):
            warn_on_stderr(warning)
    fields: dict[str, Value] = {
        **chosen.method.fields(),
        **lexicon_fields(args),
        **({"confidences": True} if args.confidences else {}),
        **chosen.fields,
    }
    dtype = {} if args.dtype == "float32" else {"dtype": args.dtype}
    described = signature(run=_run_hash(dtype, text, models, fields), sentences=text.size, **dtype, **fields)
    counted: list[Lexicon] = []
    aligner = Aligner(chosen.method, directions, args.max_tokens, lexicon, counted.append)
    windows = _Windows(args, text, aligner)
    start = time.monotonic()
    try:
        if is_stream(args.output):
            kept = 0
            _write(args, text, directions[0], itertools.chain.from_iterable(windows.aligned(0)))
        else:
            with UnfinishedOutput(args.output, described, args.resume, args.overwrite) as unfinished:
                kept = unfinished.keep(windows.ends)
                for rows in windows.aligned(kept):
                    unfinished.append(rows)
                _write(args, text, directions[0], unfinished.rows())
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"--max-tokens {args.max_tokens}: a batch does not fit into GPU memory; give fewer tokens, or --cpu"
        ) from error
    for made in counted:
        on_count(args, described)(made)
    seconds, done = time.monotonic() - start, text.size - kept
    said = f", {kept} kept from before" if kept else ""
    print(f"norm-align: {done} sentences in {seconds:.1f} s, {done / seconds:.1f} sentences/s{said}", file=sys.stderr)
    print(described, file=sys.stderr)


def _choose_method(args: argparse.Namespace, models: Sequence[NormModel], text: SentencePairs) -> ChosenMethod:
    """Choose the method: by the options, else by the models' profiles, else by calibration on the text itself.

    Raises:
        UsageError: options that do not go together, or a profile of one direction for two.
        InputError: a profile cannot be used.
    """
    stated = None
    if args.join is not None or args.symmetrize is not None:
        stated = BidirectionalOptions(args.join, args.symmetrize)
    if states_maps(args):
        both = (stated or BidirectionalOptions(join="product")) if len(models) > 1 else None
        return by_options(with_lexicon_options(stated_method(args, both, given_passes(args) or 0), args))
    directions, hashes = [model.direction for model in models], [model.identity for model in models]
    profiles, names = profiles_of(directions, hashes, text, args.profile, args.max_tokens)
    overrides = Overrides(args.rule, args.lexicon, stated, args.final_punctuation, args.lexicon_file)
    chosen = chosen_method(profiles, names, text.size, overrides)
    return replace(chosen, method=with_lexicon_options(chosen.method, args))


def _words_of(pair: TokenPair, direction: Direction) -> tuple[list[str], list[str]]:
    """The words of source and target that links count."""
    return direction.pipelines[0].words(pair[0]), direction.pipelines[1].words(pair[1])


class _Windows:
    """The windows of a text: sentences that are sorted by length together.

    Attributes:
        ends: the number of pairs before the end of each window; one window ends with the last pair that a lexicon is
            counted on.
    """

    def __init__(self, args: argparse.Namespace, text: SentencePairs, aligner: Aligner) -> None:
        self._confidences = args.confidences
        self._text = text
        self._aligner = aligner
        self._counted = min(aligner.counted_pairs, text.size)
        self.ends = sorted({*range(args.window, text.size, args.window), self._counted, text.size} - {0})

    def aligned(self, done: int) -> Iterator[list[Row]]:
        """Align the windows after the first ``done`` pairs; yields the rows of each, in the order of the text.

        The pairs that a lexicon is counted on are always aligned, so that it is the same after a stop.

        Raises:
            InputError: the text was changed.
        """
        windows = [(a, b) for a, b in zip([0, *self.ends], self.ends) if b > done or b <= self._counted]
        numbered = enumerate(self._text)
        places = zip([0, *(end for _, end in windows)], windows)  # each window is read before the next
        read = (itertools.islice(numbered, start - place, end - place) for place, (start, end) in places)
        with progress_meter(sum(b - a for a, b in windows), "sentences") as progress:
            pairs = self._aligner.align(read, progress)
            warned = False
            for start, end in windows:
                rows = [
                    (pair.id, pair.status, links_line(pair.links, self._confidences))
                    for pair in itertools.islice(pairs, end - start)
                ]
                self._text.check_unchanged()
                if end > done:
                    yield [(status, line) for _, status, line in sorted(rows)]
                if not warned and (warning := self._aligner.unknown_warning()):
                    warn_on_stderr(warning)
                    warned = True


def _write(args: argparse.Namespace, text: SentencePairs, direction: Direction, rows: Iterator[Row]) -> None:
    """Write the words that links count (``--tokens-out``) and the output, and report the pairs that are not aligned."""
    for which, file in enumerate(args.tokens_out or ()):
        write_lines(file, (" ".join(_words_of(pair, direction)[which]) for pair in text))
    left_out: dict[str, list[int]] = {}

    def noted() -> Iterator[Row]:
        for number, (status, links) in enumerate(rows, 1):
            if status != "ok":
                left_out.setdefault(status, [0, number])[0] += 1
            yield status, links

    if args.output.endswith(ENDING):
        with new_file(args.output) as temporary:
            write_table(temporary, noted(), text.ids(), args.confidences)
    else:
        write_lines(args.output, (links for _, links in noted()))
    for status, (count, first) in left_out.items():
        warn_on_stderr(f"sentence pairs that are {status}: {count}, with blank lines (the first is line {first})")


def _run_hash(dtype: dict[str, str], text: SentencePairs, models: Sequence[NormModel], fields: dict[str, Value]) -> str:
    """The hash of everything that decides the output."""
    return json_hash(
        {
            "version": __version__,
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
    named = {"tokenizer": text.tokenizer, "bpe": text.bpe, "words": ",".join(text.words), "mark": text.mark}
    return {**named, "options": json.dumps(options), "files": ",".join(hashes)}
