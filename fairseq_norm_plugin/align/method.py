"""Choose how to align a text: by the options, else by the models' profiles, else by calibration on the text itself."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import BidirectionalOptions
from alignment_eval.extraction.rules import rule_of
from alignment_eval.options.lexicon import given_passes, with_lexicon_options
from alignment_eval.options.maps import MAX_NORM, stated_method, states_maps
from alignment_eval.profiles.chosen import ChosenMethod, Overrides, by_options, chosen_method

if TYPE_CHECKING:
    from fairseq_norm_plugin.aligner.direction import Direction
    from fairseq_norm_plugin.text.pairs import SentencePairs


def choose_method(
    args: argparse.Namespace, directions: Sequence[Direction], models: Sequence[str], text: SentencePairs
) -> ChosenMethod:
    """Choose the method for a command line, its models and its text.

    Args:
        args: the command line.
        directions: the source-target model, and the target-source model if there is one.
        models: their hashes.
        text: the text to be aligned.

    Raises:
        UsageError: options that do not go together, or a profile of one direction for two.
        InputError: a profile cannot be used.
    """
    from fairseq_norm_plugin.aligner.find_profiles import profiles_of

    stated = None
    if args.join is not None or args.symmetrize is not None:
        stated = BidirectionalOptions(args.join, args.symmetrize, args.variant)
    if states_maps(args):
        both = (stated or BidirectionalOptions(join="product")) if len(directions) > 1 else None
        return by_options(with_lexicon_options(stated_method(args, both, given_passes(args) or 0), args))
    profiles, names = profiles_of(directions, models, text, args.profile, args.max_tokens)
    overrides = Overrides(args.rule, args.lexicon, stated, args.final_punctuation, args.lexicon_file)
    chosen = chosen_method(profiles, names, text.size, overrides)
    return replace(chosen, method=with_lexicon_options(chosen.method, args))


def check_stated(args: argparse.Namespace) -> None:
    """Check what a command line states of maps and rule, as far as no model is needed for it.

    Raises:
        UsageError: something is unknown, or does not go together.
    """
    if states_maps(args):
        if args.heads == MAX_NORM:
            raise UsageError(f"--heads {MAX_NORM} needs all maps before the first link: name the maps")
        stated_method(args, None, 0)
    elif args.rule is not None:
        rule_of(args.rule)
