"""Run ``norm-align``: load models and text, choose the method, align window by window, write parts, report."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from alignment_eval import __version__
from alignment_eval.arguments.lexicon import given_lexicon, lexicon_fields, on_count
from alignment_eval.errors import InputError, warn_on_stderr
from alignment_eval.files import check_new, file_hash, is_stream, write_lines
from alignment_eval.records.merge import AlignmentRun
from alignment_eval.selection.chosen import seen_warning
from alignment_eval.signature import Value, signature
from fairseq_norm_plugin.align.arguments import check_directions, load_models, read_text
from fairseq_norm_plugin.align.engine import Way
from fairseq_norm_plugin.align.method import choose_method
from fairseq_norm_plugin.align.precision import choose_dtype
from fairseq_norm_plugin.align.windows import Text
from fairseq_norm_plugin.aligning.aligner import Aligner
from fairseq_norm_plugin.aligning.checking import mismatch_warning, sampled_pairs
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.aligning.memory import keep_few_programs, keep_freed_memory
from fairseq_norm_plugin.api import NormModel
from fairseq_norm_plugin.output.alignment_parts import AlignmentParts, check_not_begun, write_pharaoh
from fairseq_norm_plugin.output.alignment_table import ENDING, write_table
from fairseq_norm_plugin.output.identity import architecture_hash, dictionary_hash
from fairseq_norm_plugin.output.shard_parts import IfExists
from fairseq_norm_plugin.pipeline.settings import TextSettings


def run(args: argparse.Namespace) -> None:
    """Align the text that ``args`` name.

    Raises:
        UsageError: options that contradict each other, or a layer or head that the model lacks.
        InputError: a file cannot be used, the output already exists, or a batch is too large for the GPU.
    """
    keep_freed_memory()
    keep_few_programs()
    check_new(args.output, args.overwrite or args.resume, parents=True)
    for file in args.tokens_out or ():
        check_new(file, args.overwrite or args.resume, parents=True)
    stream = is_stream(args.output)
    existing = IfExists(args.resume, args.overwrite, ("--resume", "--overwrite"))
    if not stream:
        check_not_begun(Path(args.output), existing)
    table = args.output.endswith(ENDING)
    args.confidences |= table and args.symmetrize is None
    lexicon = given_lexicon(args)
    text = read_text(args)
    models = load_models(args)
    check_directions(args, len(models))
    directions = [model.direction for model in models]
    text = text.through(directions[0].pipelines)
    _write_tokens(args, text, directions[0])
    hashes = [model.identity for model in models]
    sample = sampled_pairs(text, text.size, directions[0])
    if warning := mismatch_warning(sample, directions[0], args.max_tokens):
        warn_on_stderr(warning)
    chosen = choose_method(args, directions, hashes, text)
    if chosen.profile is not None:
        print(f"norm-align: {chosen.reason}", file=sys.stderr)
        words = ((directions[0].words(source, 0), directions[0].words(target, 1)) for source, target in text)
        if warning := seen_warning(chosen.profile, words, text.size):
            warn_on_stderr(warning)
    choose_dtype(args, models, chosen.method, lexicon, text.size, list(sample.values()))
    fields: dict[str, Value] = {
        **chosen.method.fields(),
        **lexicon_fields(args),
        **({"confidences": True} if args.confidences else {}),
        **({} if args.min_confidence is None else {"min_confidence": args.min_confidence}),
        **chosen.fields,
    }
    manifest = _manifest(args, text, models, hashes, fields)
    described = signature(run=manifest.signature_hash, sentences=text.size, **_type_field(args), **fields)
    way = Way(args, models, chosen.method, lexicon, on_count(args, described))
    with ExitStack() as stack:
        file = Path(args.output)
        if stream:
            file = Path(stack.enter_context(TemporaryDirectory(prefix="align-"))) / "pharaoh"
        write = partial(write_table, ids=text.ids(), confidences=args.confidences) if table else write_pharaoh
        writer = AlignmentParts(file, manifest, existing, write)
        stack.callback(writer.abandon)
        start = time.monotonic()
        try:
            done = _align(text, way, writer)
        except torch.OutOfMemoryError as error:
            raise InputError(
                f"--max-tokens {args.max_tokens}: a batch does not fit into GPU memory; give fewer tokens, or --cpu"
            ) from error
        except KeyboardInterrupt:
            if (written := writer.sentences) and not stream:
                print(f"norm-align: {written} sentences are kept: --resume continues this run", file=sys.stderr)
            raise
        seconds = time.monotonic() - start
        if stream:
            with file.open(encoding="utf-8") as made:
                write_lines(args.output, (line.rstrip("\n") for line in made))
    kept = f", {text.size - done} kept from before" if done < text.size else ""
    print(f"norm-align: {done} sentences in {seconds:.1f} s, {done / seconds:.1f} sentences/s{kept}", file=sys.stderr)
    print(described, file=sys.stderr)


def _write_tokens(args: argparse.Namespace, text: Text, direction: Direction) -> None:
    """Write the words that links count, of source and target (``--tokens-out``)."""
    for which, file in enumerate(args.tokens_out or ()):
        write_lines(file, (" ".join(direction.words(pair[which], which)) for pair in text))


def _manifest(
    args: argparse.Namespace,
    text: Text,
    models: Sequence[NormModel],
    hashes: Sequence[str],
    fields: dict[str, Value],
) -> AlignmentRun:
    signed = {
        "version": __version__,
        "models": list(hashes),
        **_type_field(args),
        "architectures": [architecture_hash(model.models) for model in models],
        "dictionaries": [dictionary_hash(*(v.dictionary for v in model.vocabularies)) for model in models],
        "pipelines": [_pipeline_fields(model.text) for model in models],
        "text": list(text.hashes),
        "extraction": fields,
    }
    return AlignmentRun(signed, size=text.size, shard=0, shards=1)


def _type_field(args: argparse.Namespace) -> dict[str, str]:
    """The type that the models are computed in, unless it is float32."""
    return {} if args.dtype == "float32" else {"dtype": args.dtype}


def _pipeline_fields(text: TextSettings) -> dict[str, Value]:
    """What decides how text becomes pieces."""
    options = {name: str(value) for name, value in sorted(text.options.items()) if name != "bpe_codes"}
    hashes = [file_hash(Path(name)) for name in text.files]
    named = {"tokenizer": text.tokenizer, "bpe": text.bpe, "words": ",".join(text.words), "mark": text.mark}
    return {**named, "options": json.dumps(options), "files": ",".join(hashes)}


def _align(text: Text, way: Way, writer: AlignmentParts) -> int:
    """Align the pairs that are not written yet, one part for each window; returns their number."""
    reasons: Counter[str] = Counter()
    first: dict[str, int] = {}
    warned = False
    for lines in way.windows(text, ~writer.written):
        for line in lines:
            if not (line.ok or writer.written[line.id]):
                reasons[line.status] += 1
                first[line.status] = min(first.get(line.status, line.id + 1), line.id + 1)
        writer.write_lines(lines)
        text.check_unchanged()  # nothing of a changed text becomes a part
        writer.commit()
        warned = warned or _warn_unknown(way.aligner)
    text.check_unchanged()
    writer.finish()
    if before := writer.skipped_before:
        warn_on_stderr(f"{before} lines were left blank by the run that was stopped")
    for reason, count in reasons.items():
        warn_on_stderr(
            f"sentence pairs that are {reason}: {count}, with blank lines (the first is line {first[reason]})"
        )
    return int((~writer.written).sum())


def _warn_unknown(aligner: Aligner) -> bool:
    """Warn of text that the models hardly know; returns whether a warning was given."""
    if warning := aligner.unknown_warning():
        warn_on_stderr(warning)
    return warning is not None
