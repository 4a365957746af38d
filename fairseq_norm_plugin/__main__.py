"""``python -m fairseq_norm_plugin`` prints the path to give to ``--user-dir``; ``--help`` the options of its tasks."""

import sys
from argparse import Namespace
from pathlib import Path

from alignment_eval.command_line import CommandParser, exit_status
from fairseq_norm_plugin import register

PROG = "python -m fairseq_norm_plugin"
_DESCRIPTION = """\
Without an option: print the path to give to --user-dir.

The options below belong to fairseq-generate, fairseq-interactive, fairseq-train and fairseq-validate with --task
translation_norm, translation_multi_simple_epoch_norm (no --aer-…) or translation_from_pretrained_bart_norm.
"""


def _parse() -> Namespace:
    if sys.argv[1:]:
        register()  # imports fairseq first
        from fairseq.dataclass.utils import gen_parser_from_dataclass

        from fairseq_norm_plugin.hooks.criterion import GuidedAlignmentConfig
        from fairseq_norm_plugin.hooks.options import MonitorConfig, NormConfig

        parser = CommandParser(prog=PROG, usage=f"{PROG} [--help]", description=_DESCRIPTION)
        for title, options in (
            ("maps", NormConfig),
            ("alignment in training and validation", MonitorConfig),
            ("--criterion guided_alignment", GuidedAlignmentConfig),
        ):
            gen_parser_from_dataclass(parser.add_argument_group(title), options())
        parser.parse_args()
        parser.error("give no option, or --help: these are options of fairseq's commands")
    return Namespace()


if __name__ == "__main__":
    sys.exit(exit_status(PROG, _parse, lambda _: print(Path(__file__).resolve().parent)))
