"""Choose how to align a text: by the options, else by the models' profiles, else by calibration on the text itself."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Optional

from alignment_eval.arguments.lexicon import given_passes, with_lexicon_options
from alignment_eval.arguments.maps import reverse_options, stated_options, states_maps
from alignment_eval.extraction.defaults import PRODUCT_RULE, SINGLE_RULE
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions
from alignment_eval.extraction.rules import rule_of
from alignment_eval.selection.chosen import ChosenMethod, Overrides, by_options, chosen_method

if TYPE_CHECKING:
    from fairseq_norm_plugin.aligning.direction import Direction
    from fairseq_norm_plugin.aligning.text import SentencePairs

#: How two directions are combined by default: by the product of their word maps.
_PRODUCT = BidirectionalOptions(join="product")


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
    from fairseq_norm_plugin.aligning.profiles import find_profiles

    stated = None
    if args.join is not None or args.symmetrize is not None:
        stated = BidirectionalOptions(args.join, args.symmetrize, args.variant)
    if states_maps(args):
        both = (stated or _PRODUCT) if len(directions) > 1 else None
        method = _stated(args, directions[0].layers, both)
        return by_options(with_lexicon_options(method, args))
    profiles, sources = find_profiles(directions, models, text, args.profile, args.max_tokens)
    overrides = Overrides(args.rule, given_passes(args), stated, args.final_punctuation, args.lexicon_file)
    chosen = chosen_method(profiles, sources, text.size, overrides)
    return replace(chosen, method=with_lexicon_options(chosen.method, args))


def check_stated(args: argparse.Namespace) -> None:
    """Check what a command line states of maps and rule, as far as no model is needed for it.

    Raises:
        UsageError: something is unknown, or does not go together.
    """
    if states_maps(args):
        checked = argparse.Namespace(**vars(args))  # the defaults of the models are filled in
        if args.layer is None and args.head is None and args.heads is None:
            checked.layer = 0
        _stated(checked, 1, None)
    elif args.rule is not None:
        rule_of(args.rule)


def _stated(args: argparse.Namespace, layers: int, both: Optional[BidirectionalOptions]) -> AlignmentMethod:
    args.kind, args.setting = args.kind or "attn_n", args.setting or "awo"
    args.rule = args.rule or (PRODUCT_RULE if both == _PRODUCT else SINGLE_RULE)
    if args.layer is None and args.head is None and args.heads is None:
        from fairseq_norm_plugin.options import default_layers

        args.heads = ",".join(map(str, default_layers(layers)))
    forward = stated_options(args)
    reverse = None if both is None else reverse_options(args, forward)
    return AlignmentMethod(forward, reverse, both, given_passes(args) or 0)
