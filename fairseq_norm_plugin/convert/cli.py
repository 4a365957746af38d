"""``python -m fairseq_norm_plugin.convert FAMILY MODEL OUT``: models in the format of Transformers into fairseq."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from alignment_eval.options.common import CommandParser, Input, Output, exit_status
from fairseq_norm_plugin.process import let_waiting_threads_sleep

PROG = "python -m fairseq_norm_plugin.convert"
_DESCRIPTION = """\
Turn a model in the format of Transformers into a fairseq checkpoint and dictionaries.

MODEL is a directory with config.json, the vocabulary, and model.safetensors or pytorch_model.bin.  The checkpoint in
OUT needs --user-dir fairseq_norm_plugin.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's) and return its exit status."""
    let_waiting_threads_sleep()
    arguments = sys.argv[1:] if argv is None else list(argv)
    return exit_status(PROG, lambda: _parser().parse_args(arguments), _run)


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog=PROG, description=_DESCRIPTION)
    families = parser.add_subparsers(dest="command", metavar="FAMILY", required=True)
    translation = "translation models: Marian, M2M-100, NLLB, mBART, FSMT (docs/models.md)"
    for name, text in (("bert", "BERT (docs/bert.md)"), ("translation", translation)):
        family = families.add_parser(name, help=text, description=text)
        family.add_argument("model", type=Input, metavar="MODEL", help="directory of the model")
        family.add_argument("out", type=Output, metavar="OUT", help="directory to write")
        family.add_argument("--overwrite", action="store_true", help="replace OUT, if this command wrote it")
        if name == "translation":
            default = "(default: the one that the files of MODEL name)"
            family.add_argument("-s", "--source-lang", metavar="LANG", help=f"source language {default}")
            family.add_argument("-t", "--target-lang", metavar="LANG", help=f"target language {default}")
    return parser


def _run(args: argparse.Namespace) -> None:
    from fairseq_norm_plugin.hooks import registration as registration  # fairseq is imported there first

    # isort: split
    from fairseq_norm_plugin.convert import bert, translation

    model, out = Path(args.model), Path(args.out)
    if args.command == "bert":
        bert.convert(model, out, args.overwrite)
    else:
        translation.convert(model, out, args.overwrite, args.source_lang, args.target_lang)
