"""``norm-align calibrate``: how to align with a model, chosen on sentence pairs and kept beside its checkpoint."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from alignment_eval.errors import InputError, printable, say
from alignment_eval.extraction.defaults import DEFAULTS
from alignment_eval.files import check_new, write_lines
from alignment_eval.options.common import CommandParser, add_output, check_outputs, exit_status
from alignment_eval.profiles.chosen import description
from alignment_eval.profiles.profile import Profile
from alignment_eval.profiles.search import FORMED
from fairseq_norm_plugin.align.arguments import (
    add_model_arguments,
    add_reverse_arguments,
    add_speed_arguments,
    add_text_arguments,
    check_input,
    load_models,
    other_inputs,
    read_text,
    text_paths,
)
from fairseq_norm_plugin.installed import signature

if TYPE_CHECKING:
    from fairseq_norm_plugin.aligner.direction import Direction
    from fairseq_norm_plugin.text.lines import SentencePairs

PROG = "norm-align calibrate"
_DESCRIPTION = f"""\
Choose the maps that a model aligns with: the two that agree most on sentence pairs, or those that it was trained to
align with (--guided-maps).  No gold is needed.

The first {DEFAULTS.profile_pairs} different pairs of the text are read; {DEFAULTS.fewest_pairs} are enough.  The choice
becomes a profile beside the checkpoint, which every command then uses.  With --reverse-path each of the two models gets
one.
The profile also says how the model's text is made (tokenizer, case, subwords), so that nobody needs to state it again.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command line ``argv`` and return its exit status."""
    return exit_status("norm-align calibrate", lambda: _parser().parse_args(argv), run)


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog=PROG, description=_DESCRIPTION)
    add_model_arguments(parser)
    add_text_arguments(parser)
    add_reverse_arguments(parser)
    group = parser.add_argument_group("output")
    add_output(group, "the profile (default: CHECKPOINT.align.json)")
    add_speed_arguments(parser)
    return parser


def run(args: argparse.Namespace) -> None:
    """Write a profile for each model."""
    from fairseq_norm_plugin.aligner.calibration import fit_on_pairs, usable_pairs
    from fairseq_norm_plugin.model.text_recipe import recipe_of

    check_input(args)
    text = read_text(args)
    models = load_models(args)
    directions = [model.direction for model in models]
    beside = directions[0].profile if args.output is None else args.output
    files = [beside, *(direction.profile for direction in directions[1:])]
    of_text = (file for model in models for file in model.text.files)
    check_outputs(args, [*other_inputs(args), *of_text], map(str, files[args.output is not None :]))
    for file in files:
        check_new(file, args.overwrite)
    text = text.through(directions[0].pipelines)
    recipes = [recipe_of(model.text, Path(file).parent, model.languages) for model, file in zip(models, files)]
    pairs = usable_pairs(text, directions)
    _check_text(text, len(pairs), directions, args)
    own = [pairs, [pair.exchanged for pair in pairs]]
    profiles = [fit_on_pairs(model.direction, its, model.identity, args.max_tokens) for model, its in zip(models, own)]
    text.check_unchanged()
    if len(profiles) > 1:
        profiles = [profiles[0].with_reverse(profiles[1]), profiles[1].with_reverse(profiles[0])]
    for file, profile, recipe in zip(files, profiles, recipes):
        named = signature(pairs=profile.pairs, **profile.fields())
        signed = replace(profile, signature=named, text_recipe=recipe)
        write_lines(file, [signed.to_json()])
        print(f"{printable(str(file))}: {description(signed)}")
        _remark(signed)


def _check_text(text: SentencePairs, pairs: int, directions: Sequence[Direction], args: argparse.Namespace) -> None:
    """Refuse a text of too few different pairs before it is scored; warn if it does not look parallel."""
    from fairseq_norm_plugin.aligner.mismatch import check_parallel, sampled

    if pairs < DEFAULTS.fewest_pairs:
        raise InputError(
            f"{', '.join(text_paths(args))}: {pairs} different sentence pairs that can be aligned, of {text.size}: "
            f"expected {DEFAULTS.fewest_pairs} or more to choose maps by; pass more text of these languages"
        )
    check_parallel(sampled(text, text.size), directions)


def _remark(profile: Profile) -> None:
    """Print what keeps the model from better links."""
    if not profile.formed:
        say(
            f"norm-align calibrate: no AWI and AWO map agree to {100 * FORMED:.0f} % or more: the alignment of this "
            f"model has not formed, or the text is not its languages'; the profile reads the upper layers instead"
        )
