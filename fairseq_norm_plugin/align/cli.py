"""Word alignments of raw parallel text from a trained translation model: no binarising, no fairseq command line.

    python -m fairseq_norm_plugin.align --path CHECKPOINT --data DICTIONARIES -s de -t en --bpe-codes CODES \
        --source-text F.de --target-text F.en -o F.pharaoh

docs/align.md has the rest.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Optional

from alignment_eval.arguments.maps import (
    MAX_NORM,
    add_lexicon_argument,
    add_line_arguments,
    add_map_arguments,
    check_lexicon_passes,
    given_map_options,
    line_style,
)
from alignment_eval.errors import UsageError
from alignment_eval.exit_status import exit_status
from alignment_eval.extraction.method import JOINS
from alignment_eval.files import STANDARD
from alignment_eval.links.symmetrize import DEFAULT_VARIANT, METHODS, VARIANTS
from alignment_eval.maps.subwords import MARKS
from alignment_eval.selection.choice_file import Choice, read_choice
from fairseq_norm_plugin.align.run import run

#: The defaults of options that are not given: chosen on cmu150, docs/reproduction.md; of layers: default_layers.
DEFAULT_RULE, PRODUCT_RULE = "two-way=0.3", "two-way=0.4"
DEFAULT_PASSES = 2
DEFAULT_JOIN = "product"

PROG = "python -m fairseq_norm_plugin.align"
_EPILOG = f"""\
Example, from the root of the repository:
  {PROG} --path data/demo/checkpoint.pt --data data/demo -s de -t en \\
      --bpe-codes data/demo/codes.bpe --source-text data/demo/demo.de --target-text data/demo/demo.en -o -

The signature goes to stderr.  Exit status: 0 success, 1 bad data, 2 bad usage.
"""


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run the command line ``argv`` (default: the process's) and return its exit status."""
    return exit_status("align", lambda: _parser().parse_args(argv), _run)


def _run(args: argparse.Namespace) -> None:
    check_usage(args)
    choice = None if args.choice is None else read_choice(args.choice)
    fill_defaults(args, choice)
    run(args, choice)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROG,
        description="Word alignments of raw parallel text from a trained translation model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    group = parser.add_argument_group("model")
    group.add_argument("--path", required=True, metavar="CHECKPOINT", help="several, for an ensemble, separated by :")
    group.add_argument("--data", required=True, metavar="DIR", help="directory with dict.LANG.txt of both languages")
    group.add_argument("-s", "--source-lang", metavar="LANG", help="default: told from binarised data in DIR")
    group.add_argument("-t", "--target-lang", metavar="LANG", help="likewise")
    group.add_argument("--bpe", choices=("subword-nmt", "none"), default="subword-nmt", help="none: text in subwords")
    group.add_argument("--bpe-codes", nargs="+", metavar="CODES", help="subword-nmt codes: joint, or source and target")
    group.add_argument(
        "--subword-mark", choices=("auto", *MARKS), default="auto", help="with --bpe none; auto: told from dictionaries"
    )
    group = parser.add_argument_group("text", "tokenised (and lowercased, …) as for training; - is standard input")
    group.add_argument("--source-text", metavar="FILE", help="one sentence a line")
    group.add_argument("--target-text", metavar="FILE", help="their translations")
    group.add_argument("--text", metavar="FILE", help="both, as lines SOURCE ||| TARGET")
    add_map_arguments(
        parser, f"default: attn_n, the mean of the last two layers, awo, {DEFAULT_RULE} ({PRODUCT_RULE} of a product)"
    )
    group = parser.add_argument_group("both directions")
    group.add_argument("--reverse-path", metavar="CHECKPOINT", help="a target-source model")
    group.add_argument("--reverse-data", metavar="DIR", help="its dictionaries (default: --data)")
    group.add_argument(
        "--reverse-bpe-codes", nargs="+", metavar="CODES", help="its codes: joint, or source (TARGET-LANG) and target"
    )
    group.add_argument("--reverse-heads", metavar="MAPS", help="the maps read of it (default: of the same numbers)")
    group.add_argument(
        "--join",
        choices=JOINS,
        help="mutual links, or the rule on mean or product of word maps (default with a two-way rule: product)",
    )
    group.add_argument("--symmetrize", choices=METHODS, help="symmetrise the links of both")
    group.add_argument("--variant", choices=VARIANTS, default=DEFAULT_VARIANT, help="of --symmetrize (default: moses)")
    group = parser.add_argument_group("the text as a whole")
    add_lexicon_argument(group, f"{DEFAULT_PASSES} with a two-way rule")
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", required=True, metavar="FILE", help="Pharaoh file (-: standard output)")
    add_line_arguments(group)
    group.add_argument("--resume", action="store_true", help="go on where a run of the same options was stopped")
    group.add_argument("--overwrite", action="store_true", help="replace FILE, and what a stopped run left")
    group = parser.add_argument_group("speed and memory")
    group.add_argument("--max-tokens", type=_positive, default=4000, metavar="N", help="in a batch (default: 4000)")
    group.add_argument(
        "--window",
        type=_positive,
        default=10000,
        metavar="N",
        help="sentences that are sorted by length together; what a stop can lose at most (default: 10000)",
    )
    group.add_argument("--cpu", action="store_true", help="do not use a GPU")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number, 1 or more")
    return int(text)


def check_usage(args: argparse.Namespace) -> None:
    """Check which options go together.

    Raises:
        UsageError: one is missing, or one too many.
    """
    pair = (args.source_text, args.target_text)
    if (args.text is None) == (None in pair) or (args.text is not None and pair != (None, None)):
        raise UsageError("the text is named by --source-text and --target-text or by --text: expected one of the two")
    if pair == (STANDARD, STANDARD):
        raise UsageError("both texts are - (standard input): expected one of them in a file; or --text -")
    if (args.bpe == "none") != (args.bpe_codes is None):
        raise UsageError("expected --bpe-codes CODES of the model, or --bpe none if the text is in subwords already")
    for name, codes in (("--bpe-codes", args.bpe_codes), ("--reverse-bpe-codes", args.reverse_bpe_codes)):
        if codes is not None and len(codes) > 2:
            raise UsageError(f"{name}: {len(codes)} files: expected joint codes, or those of source and target")
    if args.reverse_path is None:
        for name in ("reverse_data", "reverse_bpe_codes", "reverse_heads", "join", "symmetrize"):
            if getattr(args, name) is not None:
                raise UsageError(
                    f"--{name.replace('_', '-')} without --reverse-path: expected a model of both directions"
                )
    if args.symmetrize is not None and (args.confidences or args.min_confidence is not None):
        raise UsageError("--symmetrize has links without a share: expected no confidences with it; or take --join")
    if args.bpe == "none" and args.reverse_bpe_codes is not None:
        raise UsageError("--reverse-bpe-codes beside --bpe none: expected text in the subwords of both models")
    check_lexicon_passes(args)
    if args.layer == MAX_NORM:
        raise UsageError(f"--layer {MAX_NORM} reads all maps before the first link: expected a number; see align-eval")
    if args.resume and args.overwrite:
        raise UsageError("--resume and --overwrite contradict each other: give one")
    if args.resume and args.output == STANDARD:
        raise UsageError("--resume with -o -: nothing is left of a stopped run there: expected a file")
    line_style(args)
    given_map_options(args)


def fill_defaults(args: argparse.Namespace, choice: Optional[Choice]) -> None:
    """Give what is left out its default; a choice, which was made without a lexicon, goes without."""
    if choice is None:
        product = args.reverse_path is not None and args.symmetrize is None and args.join in (None, DEFAULT_JOIN)
        args.kind, args.setting = args.kind or "attn_n", args.setting or "awo"
        args.rule = args.rule or (PRODUCT_RULE if product else DEFAULT_RULE)
    rule = args.rule if choice is None else choice.extraction.rule
    two_way = rule.startswith("two-way=") and args.symmetrize is None
    if args.reverse_path is not None and args.join is None and two_way:
        args.join = DEFAULT_JOIN
    if args.lexicon is None:
        args.lexicon = DEFAULT_PASSES if two_way and choice is None and args.join != "mutual" else 0
