"""Run ``norm-align``: load models and text, choose the method, align window by window, write parts, report."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from alignment_eval import __version__
from alignment_eval.arguments.lexicon import given_lexicon, lexicon_fields, on_count
from alignment_eval.arguments.maps import line_style
from alignment_eval.errors import InputError, warn_on_stderr
from alignment_eval.files import check_new, file_hash, is_stream, write_lines
from alignment_eval.formats.line_style import LineStyle
from alignment_eval.records.manifest import Manifest
from alignment_eval.selection.chosen import seen_warning
from alignment_eval.signature import Value, signature
from fairseq_norm_plugin.align.arguments import check_directions, load_models, text_paths
from fairseq_norm_plugin.align.method import choose_method
from fairseq_norm_plugin.aligning.aligner import Aligner
from fairseq_norm_plugin.aligning.checking import mismatch_warning
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.aligning.text import ParallelText, TokenPair
from fairseq_norm_plugin.api import NormModel
from fairseq_norm_plugin.output.alignment_parts import AlignmentLine, AlignmentParts
from fairseq_norm_plugin.output.identity import architecture_hash, dictionary_hash
from fairseq_norm_plugin.output.shard_parts import IfExists
from fairseq_norm_plugin.pipeline.settings import TextSettings


def run(args: argparse.Namespace) -> None:
    """Align the text that ``args`` name.

    Raises:
        UsageError: options that contradict each other, or a layer or head that the model lacks.
        InputError: a file cannot be used, the output already exists, or a batch is too large for the GPU.
    """
    check_new(args.output, args.overwrite or args.resume, parents=True)
    for file in args.tokens_out or ():
        check_new(file, args.overwrite or args.resume, parents=True)
    stream = is_stream(args.output)
    lexicon = given_lexicon(args)
    text = ParallelText(text_paths(args))
    models = load_models(args)
    check_directions(args, len(models))
    directions = [model.direction for model in models]
    text = text.through(directions[0].pipelines)
    _write_tokens(args, text, directions[0])
    hashes = [model.identity for model in models]
    if warning := mismatch_warning(text, text.size, directions[0], args.max_tokens):
        warn_on_stderr(warning)
    chosen = choose_method(args, directions, hashes, text)
    if chosen.profile is not None:
        print(f"norm-align: {chosen.reason}", file=sys.stderr)
        words = ((directions[0].words(source, 0), directions[0].words(target, 1)) for source, target in text)
        if warning := seen_warning(chosen.profile, words, text.size):
            warn_on_stderr(warning)
    fields: dict[str, Value] = {
        **chosen.method.fields(),
        **lexicon_fields(args),
        **({"confidences": True} if args.confidences else {}),
        **({} if args.min_confidence is None else {"min_confidence": args.min_confidence}),
        **chosen.fields,
    }
    manifest = _manifest(args, text, models, hashes, fields)
    described = signature(run=manifest.signature_hash, sentences=text.size, **fields)
    aligner = Aligner(chosen.method, directions, args.max_tokens, lexicon, on_count(args, described))
    with ExitStack() as stack:
        file = Path(args.output)
        if stream:
            file = Path(stack.enter_context(TemporaryDirectory(prefix="align-"))) / "pharaoh"
        existing = IfExists(args.resume, args.overwrite, ("--resume", "--overwrite"), "-o")
        writer = AlignmentParts(file, manifest, existing)
        stack.callback(writer.abandon)
        start = time.monotonic()
        try:
            done = _align(text, aligner, line_style(args), writer, args.window)
        except torch.OutOfMemoryError as error:
            raise InputError(
                f"--max-tokens {args.max_tokens}: a batch does not fit into GPU memory; give fewer tokens, or --cpu"
            ) from error
        seconds = time.monotonic() - start
        if stream:
            with file.open(encoding="utf-8") as made:
                write_lines(args.output, (line.rstrip("\n") for line in made))
    kept = f", {text.size - done} kept from before" if done < text.size else ""
    print(f"norm-align: {done} sentences in {seconds:.1f} s, {done / seconds:.1f} sentences/s{kept}", file=sys.stderr)
    print(described, file=sys.stderr)


def _write_tokens(args: argparse.Namespace, text: ParallelText, direction: Direction) -> None:
    """Write the words that links count, of source and target (``--tokens-out``)."""
    for which, file in enumerate(args.tokens_out or ()):
        write_lines(file, (" ".join(direction.words(pair[which], which)) for pair in text))


def _manifest(
    args: argparse.Namespace,
    text: ParallelText,
    models: Sequence[NormModel],
    hashes: Sequence[str],
    fields: dict[str, Value],
) -> Manifest:
    signed = {
        "version": __version__,
        "models": list(hashes),
        "architectures": [architecture_hash(model.models) for model in models],
        "dictionaries": [dictionary_hash(*(v.dictionary for v in model.vocabularies)) for model in models],
        "pipelines": [_pipeline_fields(model.text) for model in models],
        "text": list(text.hashes),
        "extraction": fields,
    }
    return Manifest("alignments", signed, size=text.size, shard=0, shards=1)


def _pipeline_fields(text: TextSettings) -> dict[str, Value]:
    """What decides how text becomes pieces."""
    options = {name: str(value) for name, value in sorted(text.options.items()) if name != "bpe_codes"}
    hashes = [file_hash(Path(name)) for name in text.files]
    named = {"tokenizer": text.tokenizer, "bpe": text.bpe, "words": ",".join(text.words), "mark": text.mark}
    return {**named, "options": json.dumps(options), "files": ",".join(hashes)}


def _window_ends(size: int, window: int, counted: int) -> list[int]:
    """The ends of the windows: after every ``window`` pairs, and after the pairs that a lexicon is counted on."""
    return sorted({*range(window, size, window), *([counted] if 0 < counted < size else []), size})


def _windows(text: ParallelText, ends: Sequence[int], todo: NDArray[np.bool_]) -> Iterator[dict[int, TokenPair]]:
    """The pairs of each window that are still to be aligned, by id."""
    pairs = enumerate(text)
    start = 0
    for end in ends:
        yield {id_: pair for id_, pair in itertools.islice(pairs, end - start) if todo[id_]}
        start = end


def _align(text: ParallelText, aligner: Aligner, style: LineStyle, writer: AlignmentParts, window: int) -> int:
    """Align the pairs that are not written yet, one part for each window; returns their number."""
    reasons: Counter[str] = Counter()
    first: dict[str, int] = {}
    warned = False
    ends = _window_ends(text.size, window, aligner.counted_pairs)
    todo = ~writer.written
    # after a stop, a lexicon is counted again on all its pairs, so that it is the same
    todo[: aligner.counted_pairs if todo.any() else 0] = True
    done_at_ends = set(np.cumsum(todo)[np.array(ends) - 1].tolist())
    with tqdm(total=int(todo.sum()), unit=" sentences", disable=None, file=sys.stderr) as progress:
        # with nothing to do, a lexicon would be counted on no pairs
        aligned = aligner.align(_windows(text, ends, todo), progress.update) if todo.any() else iter(())
        for done, pair in enumerate(aligned, 1):
            if not writer.written[pair.id]:
                if pair.links is None:
                    reasons[pair.status] += 1
                    first.setdefault(pair.status, pair.id + 1)
                writer.write([AlignmentLine(pair.id, style.line(pair.links), pair.status)])
            if done in done_at_ends:
                text.check_unchanged()  # nothing of a changed text becomes a part
                writer.commit()
                warned = warned or _warn_unknown(aligner)
    text.check_unchanged()
    writer.finish()
    if before := writer.manifest.skipped - sum(reasons.values()):
        warn_on_stderr(f"{before} lines were left blank by the run that was stopped")
    for reason, count in reasons.items():
        warn_on_stderr(
            f"{count} sentence pairs are {reason}, their lines are blank (the first is line {first[reason]})"
        )
    return int((~writer.written).sum())


def _warn_unknown(aligner: Aligner) -> bool:
    """Warn of text that the models hardly know; returns whether a warning was given."""
    if warning := aligner.unknown_warning():
        warn_on_stderr(warning)
    return warning is not None
