"""The ``align-eval`` command; each subcommand is a module with ``EPILOG``, ``add_arguments(parser)``, ``run(args)``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from alignment_eval import __version__
from alignment_eval.command_line import CommandParser, exit_status

#: What commands are for -> each of them, and one line of help; the module ``alignment_eval.commands.<name>`` has more.
GROUPS = {
    "judge alignments": {
        "score": "score word alignments against gold, and test their differences: AER, precision, recall",
        "errors": "break errors down by sentence length, word frequency, punctuation and fertility",
        "report": "write one HTML page that compares aligners, with the maps of a run if there are any",
        "plot": "draw one sentence: the links of aligners, or recorded maps, with gold",
    },
    "files of alignments": {
        "convert": "write an alignment file in another format",
        "symmetrize": "combine forward and reverse alignments",
        "merge": "make one alignment file in corpus order of the parts of a run's shards",
        "signature": "print the signature of an output: what its links were made of, and how",
    },
    "use alignments": {
        "project": "move labels of words or spans onto the translation",
        "lexicon": "make a bilingual lexicon of the links of a text",
        "filter": "leave out the lines of parallel texts whose pairs have bad scores",
    },
    "study a model": {
        "extract": "turn recorded maps into word alignments",
        "sweep": "score every layer, head, kind, setting and rule of recorded maps",
        "curve": "draw AER and mixing ratios by update from the logs of fairseq-train",
    },
}
COMMANDS = {name: summary for commands in GROUPS.values() for name, summary in commands.items()}
_DESCRIPTION = """\
Judge, convert and use word alignments of any aligner, and study recorded attention maps.  norm-align makes alignments
with a translation model.
"""
_EPILOG = """\
Example, from the root of the repository:
  norm-align --path demo --tokenizer none --source-text data/demo/demo.de --target-text data/demo/demo.en -o - \\
      | align-eval score --gold data/demo/demo.talp --gold-base 1 -
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's) and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    return exit_status("align-eval", lambda: _parser(words).parse_args(words), lambda args: args.run(args))


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = CommandParser(prog="align-eval", usage="%(prog)s COMMAND …", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"align-eval {__version__}")
    subparsers = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="align-eval", help=argparse.SUPPRESS
    )
    # Only the module of the command that is asked for is imported: --help stays fast.
    asked = next((word for word in argv if not word.startswith("-")), None)
    for title, commands in GROUPS.items():
        group = parser.add_argument_group(title)
        for name, summary in commands.items():
            subparser = subparsers.add_parser(name, help=summary, description=summary)
            group._group_actions.append(subparsers._choices_actions.pop())
            if name == asked:
                module = importlib.import_module(f"alignment_eval.commands.{name}")
                subparser.epilog = module.EPILOG
                module.add_arguments(subparser)
                subparser.set_defaults(run=module.run)
    return parser
