"""Align raw parallel text with a trained translation model, without binarising and without fairseq's command line.

    norm-align --path CHECKPOINT --data DICTIONARIES -s de -t en --bpe-codes CODES \
        --source-text F.de --target-text F.en -o F.pharaoh

See docs/align.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from alignment_eval.command_line import CommandParser, Output, add_list, add_output, exit_status, positive_integer
from alignment_eval.profiles.chosen import add_map_arguments, add_options
from fairseq_norm_plugin.align.job import (
    Job,
    add_model_arguments,
    add_raw_text_arguments,
    add_reverse_arguments,
    add_speed_arguments,
    shard_of,
)
from fairseq_norm_plugin.environment import importing, set_up_torch, silence_libraries, version_line

PROG = "norm-align"
_USAGE = """\
%(prog)s --path CHECKPOINT --source-text FILE.de --target-text FILE.en
                  -o FILE [options]
       %(prog)s calibrate --path CHECKPOINT --source-text FILE.de
                  --target-text FILE.en [options]"""
_EPILOG = f"""\
Example, from the root of the repository:
  {PROG} --path demo --tokenizer none --source-text data/demo/demo.de --target-text data/demo/demo.en -o -

The signature goes to stderr.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's) and return its exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    set_up_torch()
    silence_libraries()
    if arguments[:1] == ["calibrate"]:
        from fairseq_norm_plugin.align import calibrate

        return calibrate.main(arguments[1:])
    parser = _parser()
    return exit_status("norm-align", lambda: parser.parse_args(arguments), _run)


def _run(args: argparse.Namespace) -> None:
    job = Job.of(args)
    with importing():
        from fairseq_norm_plugin.align.run import run
    run(job)


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog=PROG,
        commands=["calibrate"],
        usage=_USAGE,
        description="Align the words of raw parallel text with one trained translation model, or one of each direction",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=version_line(PROG))
    add_model_arguments(parser)
    add_options(add_raw_text_arguments(parser), "split_sentences")
    _add_output(parser)
    add_map_arguments(
        parser, "default: the profile next to each checkpoint; without one, maps chosen on the text itself"
    )
    add_options(add_reverse_arguments(parser), "reverse_heads", "join")
    group = add_speed_arguments(parser)
    help_ = "align so many sentences at once, sorted by length; a stop loses at most those (default: 10000)"
    group.add_argument("--window", type=positive_integer, default=10000, metavar="N", help=help_)
    help_ = "align every Nth window, from the Kth on (0/4: of four runs the first); -o DIR/, or merge FILE.parts"
    group.add_argument("--shard", type=shard_of, metavar="K/N", help=help_)
    help_ = (
        "align the windows on a Ray cluster, that of RAY_ADDRESS or one that is started on this machine, in so many "
        "processes (default: one for each GPU, without GPUs one for each processor); -o is a directory"
    )
    group.add_argument("--ray", nargs="?", type=positive_integer, const=0, metavar="ACTORS", help=help_)
    return parser


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    help_ = (
        "Pharaoh file (-: standard output); with text, character spans, links and confidences if it ends in .jsonl or "
        ".parquet; or a directory (DIR/) of Parquet files, one for each --window"
    )
    add_output(group, help_, required=True)
    help_ = "translate --source-text as fairseq-generate does, and align the translations (default beam: 5)"
    group.add_argument("--translate", nargs="?", type=positive_integer, const=5, metavar="BEAM", help=help_)
    help_ = (
        "the source text has inline markup: write the target text with the same tags instead of links; in .jsonl and "
        ".parquet beside them, as marked"
    )
    group.add_argument("--markup", choices=("xml", "html"), help=help_)
    add_list(group, "--opaque", "with --markup: further elements whose content is no text", metavar="TAG", default=())
    group.add_argument(
        "--protect",
        action="append",
        metavar="REGEX",
        help="do not translate URLs, mail addresses, emoji, placeholders such as {0} and %%s, and what matches REGEX; "
        "with --target-text, link them to their copies; may be given again; none: off (default: on with --translate "
        "and --markup)",
    )
    group.add_argument("--confidences", action="store_true", help="write i-j:p; p says how likely the link is right")
    group.add_argument(
        "--scores",
        dest="scores_out",
        nargs="?",
        const="",
        type=Output,
        metavar="FILE.tsv",
        help="score each pair by what one side says and the other does not; without FILE.tsv only in -o FILE.jsonl or "
        ".parquet, where words have scores, too",
    )
    help_ = "with --scores: also the share of the source in the prediction (ALTI+), which takes longer"
    group.add_argument("--source-contribution", action="store_true", help=help_)
    help_ = "write the words that links count to two files, with blanks between"
    group.add_argument("--tokens-out", nargs=2, type=Output, metavar=("SOURCE", "TARGET"), help=help_)
    group.add_argument(
        "--force",
        action="store_true",
        help="align lines although they do not look like translations of each other; write a line without tags where "
        "--markup is damaged, and count it",
    )
    help_ = "continue a stopped run of the same options; --overwrite starts anew"
    group.add_argument("--resume", action="store_true", help=help_)


if __name__ == "__main__":
    sys.exit(main())
