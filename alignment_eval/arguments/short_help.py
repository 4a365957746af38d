"""``--help`` that fits a screen, and ``--help-all``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from alignment_eval.arguments.lists import ListParser

_MORE = "--help-all shows every option."


class ShortHelpParser(ListParser):
    """A parser whose ``--help`` shows its common options, and whose ``--help-all`` shows all.

    Args:
        common: destinations of the options that ``--help`` shows; their groups stand in the order of this list.
        short_usage: the usage that it shows.
        **names: as for ``argparse.ArgumentParser``.
    """

    def __init__(self, *, common: Sequence[str], short_usage: str, **names: Any) -> None:
        super().__init__(add_help=False, formatter_class=argparse.RawDescriptionHelpFormatter, **names)
        self._common = list(common)
        self._short_usage = short_usage
        group = self.add_argument_group("help")
        group.add_argument("-h", "--help", action=_ShortHelp, help="show the common options and exit")
        group.add_argument("--help-all", action="help", help="show every option and exit")

    def format_short_help(self) -> str:
        """The text of ``--help``."""
        formatter = self._get_formatter()
        formatter.add_usage(self._short_usage, [], [])
        formatter.add_text(self.description)
        groups = [(group, [a for a in group._group_actions if a.dest in self._common]) for group in self._action_groups]
        shown = [(group, actions) for group, actions in groups if actions]
        for group, actions in sorted(shown, key=lambda one: min(self._common.index(a.dest) for a in one[1])):
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        formatter.add_text(_MORE)
        return formatter.format_help()


class _ShortHelp(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **names: Any) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, default=argparse.SUPPRESS, nargs=0, **names)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, ShortHelpParser)
        print(parser.format_short_help(), end="")
        parser.exit()
