"""``norm-align calibrate``: how to align with a model, chosen without gold and kept beside its checkpoint."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from alignment_eval.errors import InputError, warn_on_stderr
from alignment_eval.exit_status import exit_status
from alignment_eval.files import check_new, write_lines
from alignment_eval.selection.agreement import FEWEST_PAIRS, FORMED, PAIRS
from alignment_eval.selection.profile import Profile, profile_path, together
from alignment_eval.signature import signature
from fairseq_norm_plugin.align.arguments import (
    add_model_arguments,
    add_reverse_arguments,
    add_speed_arguments,
    add_text_arguments,
    check_input,
    load_models,
    text_paths,
)
from fairseq_norm_plugin.align.calibration import calibrate, usable_pairs
from fairseq_norm_plugin.aligning.checking import mismatch_warning
from fairseq_norm_plugin.aligning.text import ParallelText
from fairseq_norm_plugin.output.identity import model_hash

PROG = "norm-align calibrate"
_DESCRIPTION = f"""\
Choose the maps that a model aligns with, without gold: the two that agree most on sentence pairs.

The first {PAIRS} different pairs of the text are read; {FEWEST_PAIRS} are enough.  The choice becomes a profile beside
the checkpoint, which every command then uses.  With --reverse-path each of the two models gets one.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command line ``argv`` and return its exit status."""
    return exit_status("norm-align calibrate", lambda: _parser().parse_args(argv), run)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROG, description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_arguments(parser)
    add_text_arguments(parser)
    add_reverse_arguments(parser)
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="FILE", help="the profile (default: CHECKPOINT.align.json)")
    group.add_argument("--overwrite", action="store_true", help="replace profiles that exist")
    add_speed_arguments(parser)
    return parser


def run(args: argparse.Namespace) -> None:
    """Write a profile for each model.

    Raises:
        UsageError: options that contradict each other.
        InputError: a file cannot be used as given, a profile exists, or the pairs are too few.
    """
    check_input(args)
    checkpoints = [args.path] if args.reverse_path is None else [args.path, args.reverse_path]
    files = [Path(args.output or profile_path(args.path)), *map(profile_path, checkpoints[1:])]
    for file in files:
        check_new(file, args.overwrite)
    text = ParallelText(text_paths(args))
    models = load_models(args)
    directions = [model.direction for model in models]
    if warning := mismatch_warning(text, text.size, directions[0], args.max_tokens):
        warn_on_stderr(warning)
    pairs = usable_pairs(text, directions)
    if len(pairs) < FEWEST_PAIRS:
        raise InputError(
            f"{', '.join(text_paths(args))}: {len(pairs)} different sentence pairs that can be aligned: expected "
            f"{FEWEST_PAIRS} or more to choose maps by; give more text of these languages"
        )
    ways = [pairs, [(target, source) for source, target in pairs]]
    profiles = [
        calibrate(direction, way, model_hash(model.models), args.max_tokens)
        for direction, way, model in zip(directions, ways, models)
    ]
    if len(profiles) == 2:
        profiles = [together(*profiles), together(*profiles[::-1])]
    for file, profile in zip(files, profiles):
        signed = replace(profile, signature=signature(pairs=profile.pairs, **profile.fields()))
        write_lines(file, [signed.to_json()])
        _report(file, signed)


def _report(file: Path, profile: Profile) -> None:
    maps = profile.streamed.forward.map_names
    dice = "no two maps could be compared" if profile.figure is None else f"{100 * profile.figure:.1f} % agreement"
    print(f"{file}: maps {maps}, chosen by {profile.chosen_by} on {profile.pairs} pairs, {dice}")
    if profile.chosen_by == "upper-layers":
        print(
            f"norm-align calibrate: no AWI and AWO map agree to {100 * FORMED:.0f} % or more: the alignment of this "
            f"model has not formed, or the text is not its languages'; the upper layers are read instead",
            file=sys.stderr,
        )
