"""The ``align-eval`` command; each subcommand is a module with ``EPILOG``, ``add_arguments(parser)``, ``run(args)``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from alignment_eval import __version__
from alignment_eval.command_line import CommandParser, exit_status

#: Subcommand -> one line of help; the module ``alignment_eval.commands.<name>`` has the rest.
COMMANDS = {
    "convert": "write an alignment file in another format",
    "curve": "draw AER and mixing ratios by update from the logs of fairseq-train",
    "errors": "break errors down by sentence length, word frequency, punctuation and fertility",
    "extract": "turn recorded maps into word alignments",
    "filter": "leave out the lines of parallel texts whose pairs have bad scores",
    "lexicon": "make a bilingual lexicon of the links of a text",
    "merge": "make one alignment file in corpus order of the parts of a run's shards",
    "plot": "draw one sentence: the links of aligners, or recorded maps, with gold",
    "project": "move labels of words or spans onto the translation",
    "report": "write one HTML page that compares aligners, with the maps of a run if there are any",
    "score": "score word alignments against gold, and test their differences: AER, precision, recall",
    "signature": "print the signature of an output: what its links were made of, and how",
    "sweep": "score every layer, head, kind, setting and rule of recorded maps",
    "symmetrize": "combine forward and reverse alignments",
}
DESCRIPTION = "Word alignments from recorded attention maps, and word alignments of any aligner scored against gold."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's) and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    return exit_status("align-eval", lambda: _parser(words).parse_args(words), lambda args: args.run(args))


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = CommandParser(prog="align-eval", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"align-eval {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=CommandParser)
    # Only the module of the command that is asked for is imported: --help stays fast.
    asked = next((word for word in argv if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, description=summary)
        if name == asked:
            module = importlib.import_module(f"alignment_eval.commands.{name}")
            subparser.epilog = f"{module.EPILOG}\nExit status: 0 success, 1 bad data, 2 bad usage."
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser
