"""A run of norm-align as its command line asks for it, checked once.  Imports no torch: a wrong line ends at once."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from alignment_eval.command_line import named_files
from alignment_eval.errors import UsageError
from alignment_eval.files import STANDARD, check_distinct, is_stream
from alignment_eval.links.symmetrize import METHODS
from alignment_eval.profiles.chosen import MAX_NORM, AlignmentOptions, given_options
from alignment_eval.transfer.pairs import Markup
from alignment_eval.transfer.strings import NO_PROTECTION, protected_strings
from fairseq_norm_plugin.align.arguments import (
    MODEL_OPTIONS,
    check_directions,
    check_input,
    is_parquet,
    model_options,
    other_inputs,
    text_paths,
)
from fairseq_norm_plugin.align.unfinished import begun_with
from fairseq_norm_plugin.checkpoints.files import DEMO, NO_REVERSE
from fairseq_norm_plugin.text.offsets import WORDS

#: Endings of outputs that hold the text too.
WITH_TEXT = (".jsonl", ".parquet")
#: The options that --ray takes with those of models.
_OF_RAY = {"text", "output", "overwrite", "profile", "table", "max_tokens", "cpu", "force", "ray", "words"}


@dataclass(frozen=True)
class Job:
    """A run of norm-align.

    Attributes:
        models: the arguments of :func:`fairseq_norm_plugin.load`.
        on_cpu: whether a GPU is left alone.
        options: how pairs are aligned.
        paths: the text: of source and target, of both, or of the source if the model translates.
        words: what words are, or the files that give them.
        output, overwrite, resume, window, tokens_out: as the options say.
        scores_out: the file of scores; empty: they are in the output only; None: there are none.
        confidences: whether links have them.
        beam: beam size of a translation; None: the target is given.
        markup: how markup is read; None: the text has none.
        protected: what ``--protect`` states.
        strings: strings that are not translated, or linked to their copies; None: there are none.
        actors: processes of Ray, 0 for as many as it has; None: this process aligns.
        inputs, outputs: the files that the command line names.
    """

    models: Mapping[str, Any]
    on_cpu: bool
    options: AlignmentOptions
    paths: tuple[str, ...]
    words: tuple[str, ...]
    output: str
    overwrite: bool
    resume: bool
    window: int
    tokens_out: Sequence[str]
    scores_out: str | None
    confidences: bool
    beam: int | None
    markup: Markup | None
    protected: str | None
    strings: re.Pattern[str] | None
    actors: int | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, args: argparse.Namespace, default: Callable[[str], Any]) -> Job:
        """Check which options go together; ``default`` gives the default of each.

        Raises:
            UsageError: some do not.
        """
        check_input(args)
        if args.ray is not None:
            _check_ray(args, default)
        options, with_text = given_options(args), args.output.endswith(WITH_TEXT)
        symmetrised = options.join in METHODS
        if args.reverse_path not in (None, NO_REVERSE):
            check_directions(options, 2)
        if symmetrised and args.confidences:
            raise UsageError(f"--join {args.join} makes links without confidences: give another, or omit --confidences")
        if args.opaque and args.markup is None:
            raise UsageError("--opaque without --markup: give that too")
        if args.markup is not None and args.confidences and not with_text:
            raise UsageError("--confidences with --markup, which writes text: leave it out, or give -o FILE.jsonl")
        if args.translate and not (args.markup or with_text):
            raise UsageError(
                "--translate with links only would lose the translations: expected -o FILE.jsonl or .parquet"
            )
        if args.scores_out == "" and not with_text:
            raise UsageError("--scores without FILE.tsv: expected -o FILE.jsonl or .parquet, which have scores, too")
        if args.source_contribution and args.scores_out is None:
            raise UsageError("--source-contribution without --scores: give that too")
        if args.resume and args.overwrite:
            raise UsageError("--resume and --overwrite contradict each other: give one")
        if args.resume and is_stream(args.output):
            raise UsageError("--resume with -o -: standard output keeps nothing of a stopped run; give a file")
        if args.heads == MAX_NORM:
            raise UsageError(f"--heads {MAX_NORM} needs all maps before the first link: name the maps")
        if args.heads is not None:
            reverse = NO_REVERSE if args.reverse_path is None and args.path != DEMO else args.reverse_path
            options.named_maps(directions=1 if reverse == NO_REVERSE else 2)
        protected = _protected(args.protect or ())
        strings = protected_strings(protected, default=bool(args.translate))
        read, written = named_files(args)
        inputs, outputs = (*read, *other_inputs(args)), (*written, *begun_with(args.output))
        check_distinct(outputs, inputs)
        return cls(
            models={**model_options(args), "profile": args.profile},
            on_cpu=args.cpu or args.dtype == "int8",
            options=options,
            paths=text_paths(args),
            words=tuple(args.words),
            output=args.output,
            overwrite=args.overwrite,
            resume=args.resume,
            window=args.window,
            tokens_out=args.tokens_out or (),
            scores_out=args.scores_out,
            confidences=args.confidences or (with_text and not symmetrised),
            beam=args.translate,
            markup=args.markup and Markup.of(args.markup, args.opaque, strings if args.translate else None),
            protected=protected,
            strings=strings,
            actors=args.ray,
            inputs=inputs,
            outputs=outputs,
        )


def _check_ray(args: argparse.Namespace, default: Callable[[str], Any]) -> None:
    """Check that only options are given that work on Ray, where each pair is aligned alone, by the profiles."""
    for name, value in vars(args).items():
        if name not in _OF_RAY | {*MODEL_OPTIONS} and value != default(name):
            raise UsageError(
                f"--{name.replace('_', '-')} does not work with --ray, which reads Parquet files, aligns each pair "
                f"by the models' profiles, and writes a directory of Parquet files"
            )
    if files := [what for what in args.words if what not in WORDS]:
        raise UsageError(f"--words {files[0]} with --ray, which keeps no order of lines: expected {', '.join(WORDS)}")
    if not is_parquet(args.text) or args.output == STANDARD:
        raise UsageError("--ray: expected Parquet files as --text, and a directory as -o")


def _protected(stated: Sequence[str]) -> str | None:
    """One regular expression of all that are stated."""
    if len(stated) > 1 and NO_PROTECTION in stated:
        raise UsageError(f"--protect {NO_PROTECTION} with another --protect: give one of them")
    return "|".join(f"(?:{regex})" for regex in stated) if len(stated) > 1 else next(iter(stated), None)
