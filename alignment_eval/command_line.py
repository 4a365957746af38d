"""What all command lines share: the parser, values of options, how a command ends.

Results go to stdout, messages to stderr.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, fields
from difflib import get_close_matches
from functools import partial
from itertools import groupby
from numbers import Integral
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, NoReturn, TextIO, Union, get_args, get_origin, get_type_hints

from alignment_eval.errors import InputError, UsageError, on_stderr, one_line, say
from alignment_eval.files import STANDARD, check_distinct

#: What values of options are called.
_TYPES = {
    "bool": "True or False",
    "int": "a whole number",
    "str": "a text",
    "Path": "a path",
    "MapNames": "names of maps",
}
#: What people type who know other tools, or the other command -> the first that a parser has, or the last.
_KNOWN_ELSEWHERE = {
    "--source": ["--source-text"],
    "--target": ["--target-text"],
    "--source-text": ["--source"],
    "--target-text": ["--target"],
    "--layer": ["--heads"],
    "--layers": ["--heads"],
    "--norm-layer": ["--heads"],
    "--model": ["--path"],
    "--gold": ["align-eval score --gold"],
    "--format": ["--to", "-o FILE.jsonl or FILE.parquet"],
    "--possible": ["align-eval convert --possible"],
}
#: Options that nobody is to take by mistake.
_NEVER_MEANT = {"--force", "--overwrite"}
#: What a usage shows in the place of options that may be left out.
_OTHERS = argparse.Action([], "options", nargs="?", metavar="options")
#: A space that no option and no pipe follows: a command is not folded there.
_WITHIN_OPTION = re.compile(r"(?<=\S) (?!--?[a-z]|\| )")


def option(help: str, default: Any = None, **declared: Any) -> Any:
    """A field with its help, not given by default; ``declared``: how a command line takes it (argparse)."""
    return field(default=default, metadata={"help": help, **declared})


def add_fields(group: argparse._ActionsContainer, kind: Any, *names: str) -> None:
    """Declare options of a command line by the names of the fields of a dataclass, each an :func:`option`."""
    declared = {each.name: each for each in fields(kind)}
    for name in names:
        group.add_argument(f"--{name.replace('_', '-')}", default=declared[name].default, **declared[name].metadata)


def check_types(options: Any) -> None:
    """Check the type of each value of a dataclass of options.

    Raises:
        UsageError: one has another type than its field says.
    """
    for name, expected in get_type_hints(type(options)).items():
        one_of = get_args(expected) if get_origin(expected) in (Union, UnionType) else (expected,)
        kinds = tuple(get_origin(kind) or kind for kind in one_of)
        if not isinstance(value := getattr(options, name), (*kinds, Integral) if int in kinds else kinds):
            named = " or ".join(_TYPES.get(kind.__name__, kind.__name__) for kind in kinds if kind is not type(None))
            raise UsageError(f"{name} {value!r}: expected {named}")


class _HelpFormatter(argparse.HelpFormatter):
    """Fills paragraphs; an indented line is a command, which is folded at its options, with a backslash.

    The usage names what must be given.
    """

    def add_usage(self, usage: Any, actions: Iterable[argparse.Action], groups: Any, prefix: Any = None) -> None:
        one_of = [action for group in groups if group.required for action in group._group_actions]
        needed = [action for action in actions if action.required or action in one_of or not action.option_strings]
        super().add_usage(usage, [*needed, _OTHERS], groups, prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        for is_text, block in groupby(text.splitlines(), lambda line: line != "" and line[0] != " "):
            if is_text:
                lines += textwrap.wrap(" ".join(block), width, initial_indent=indent, subsequent_indent=indent)
            else:
                commands = re.sub(r"\\\n *", "", "\n".join(block)).split("\n")
                fold = partial(textwrap.wrap, width=width - 2, break_long_words=False, break_on_hyphens=False)
                folded = (fold(_WITHIN_OPTION.sub("\0", line), subsequent_indent=" " * 6) for line in commands)
                lines += [" \\\n".join(command).replace("\0", " ") for command in folded]
        return "\n".join(lines)


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, with what a mistyped word may mean.

    ``commands`` are words that may stand before the options.  If it is ``lenient``, :meth:`parse_known_args` gives what
    it does not know, for another parser.
    """

    def __init__(self, commands: Sequence[str] = (), lenient: bool = False, **options: Any) -> None:
        super().__init__(formatter_class=_HelpFormatter, allow_abbrev=False, **options)
        self._commands, self._lenient = commands, lenient
        self._words: list[str] = []

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As argparse, but an empty value, such as an unset variable of a shell, is an error; a title may be empty."""
        self._words = sys.argv[1:] if args is None else list(args)
        found, others = super().parse_known_args(args, namespace)
        if others and not self._lenient:
            self.error(f"unrecognized arguments: {' '.join(others)}")
        for action in self._actions:
            value = getattr(found, action.dest, None)
            if action.dest != "title" and value not in (action.default, action.const) and "" in _texts(value):
                self.error(f"{'/'.join(action.option_strings) or action.metavar or action.dest} '': the value is empty")
        return found, others

    def format_help(self) -> str:
        """As argparse, with what the exit status of all commands means."""
        return f"{super().format_help()}\nExit status: 0 success, 1 bad data, 2 bad usage, 130 Ctrl-C.\n"

    def error(self, message: str) -> NoReturn:
        """Exit with status 2, without the usage, which would fill a screen."""
        self.exit(2, f"{self.prog}: {one_line(message + self._meant(message))}; see {self.prog} --help\n")

    def _meant(self, message: str) -> str:
        """What a mistyped option, choice or command may mean."""
        options = [name for name in self._option_string_actions if name not in _NEVER_MEANT]
        choices = [str(choice) for action in self._actions for choice in action.choices or ()]
        chosen = re.findall("invalid choice: '([^']*)'", message)
        given = [word.partition("=")[0] for word in self._words if word.startswith("--")]
        mistyped = [(word, choices) for word in chosen if word not in choices]
        mistyped += [(word, options) for word in given if word not in self._option_string_actions]
        mistyped += [(word, list(self._commands)) for word in self._words[:1] if not word.startswith("-")]
        for word, known in mistyped:
            if others := _KNOWN_ELSEWHERE.get(word):
                nearest = [name for name in others if name in options] or [name for name in others if " " in name]
            else:
                nearest = get_close_matches(word, known, 1)
            if nearest:
                return f" ({word}: do you mean {nearest[0]}?)"
        return ""


def add_list(
    group: argparse._ActionsContainer,
    option: str,
    help: str,
    *,
    metavar: str = "NAME",
    default: Sequence[str] | None = None,
    type: Callable[[str], Any] | None = None,
) -> None:
    """Declare an option that takes a list, ``a,b``, as the help then says; ``metavar`` is what it calls an entry.

    ``type`` makes the value of the text; default: a tuple of the different entries.
    """
    metavar, help = f"{metavar},…", f"{help}; separated by commas"
    group.add_argument(option, default=default, type=type or names, metavar=metavar, help=help)


def names(text: str) -> tuple[str, ...]:
    """The different entries of ``a,b``, in their order."""
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entries):
        raise argparse.ArgumentTypeError(f"{text!r}: expected names, separated by commas")
    return tuple(dict.fromkeys(entries))


class Input(str):
    """The value of an option that names a file or directory to read, ``-`` the standard input."""

    __slots__ = ()


class System(NamedTuple):
    """The alignments of a system: the file, and the name that the user gave it, if any."""

    path: Input
    name: str | None = None

    @classmethod
    def of(cls, text: str) -> System:
        """The value of an option that names alignments to compare: FILE, or NAME=FILE."""
        name, separator, path = text.partition("=")
        if not separator or Path(text).exists():
            return cls(Input(text))
        return cls(Input(path), name or None)


class Output(str):
    """The value of an option that names a file or directory to write, ``-`` the standard output."""

    __slots__ = ()


def file_name(text: str) -> Input:
    """The value of an option that names a file which is read twice."""
    if text == STANDARD:
        raise argparse.ArgumentTypeError("'-': expected the name of a file, not the standard input")
    return Input(text)


def positive_integer(text: str) -> int:
    """The value of an option that is a whole number, 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number, 1 or more")
    return int(text)


def add_output(
    group: argparse._ActionsContainer,
    help: str,
    *,
    metavar: str = "FILE",
    required: bool = False,
    standard: bool = False,
    nargs: str | None = None,
) -> None:
    """Declare ``-o``, ``--output`` and ``--overwrite``; ``help`` says what is written.

    ``standard``: it is the standard output where it is not given.
    """
    default, help = (STANDARD, f"{help} (default: -, the standard output)") if standard else (None, help)
    shape: dict[str, Any] = {"nargs": nargs, "metavar": metavar, "required": required}
    group.add_argument("-o", "--output", default=default, type=Output, help=help, **shape)
    group.add_argument("--overwrite", action="store_true", help="replace output that exists")


def add_format(group: argparse._ActionsContainer, formats: Iterable[str]) -> None:
    """Declare ``--format``, of what is printed; a person reads ``text``."""
    group.add_argument("--format", choices=tuple(formats), default="text", help="format of the table (default: text)")


def check_outputs(args: argparse.Namespace, inputs: Iterable[str] = (), outputs: Iterable[str] = ()) -> None:
    """Check that no output of a command is one of its inputs, or another output; ``inputs`` and ``outputs``: more."""
    read, written = named_files(args)
    check_distinct([*written, *outputs], [*read, *inputs])


def named_files(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The files that options name as inputs and as outputs: values of type :class:`Input` and :class:`Output`."""
    values = [text for value in vars(args).values() for text in _texts(value)]
    read = [text for text in values if isinstance(text, Input)]
    if read.count(Input(STANDARD)) > 1:
        raise UsageError("several inputs are -: expected at most one input from the standard input")
    return [*read], [text for text in values if isinstance(text, Output) and text]


def _texts(value: object) -> list[str]:
    if isinstance(value, (list, tuple)):
        return [text for entry in value for text in _texts(entry)]
    return [value] if isinstance(value, str) else []


def exit_status(name: str, parse: Callable[[], Any], run: Callable[[Any], object]) -> int:
    """Parse the command line, check its outputs, and run it.

    Returns 0: success, 1: bad data, 2: bad usage, 130: Ctrl-C, or 141: nobody reads the output.
    ``name`` is the program, for messages; the subcommand is added.  ``parse`` gives the namespace that ``run`` takes.
    """
    try:
        try:
            args = parse()
            name = " ".join([name, *([args.command] if hasattr(args, "command") else [])])
            with on_stderr(name):
                check_outputs(args)
                run(args)
        finally:  # also after --help, which ends by SystemExit
            sys.stdout.flush()
    except (InputError, UsageError) as error:
        say(f"{name}: {error}")
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        say(f"{name}: stopped by Ctrl-C")
        return 130  # as of a shell: 128 + SIGINT
    except BrokenPipeError:  # head or less has gone: no error of ours
        _discard_output(sys.stdout, sys.stderr)
        return 141  # 128 + SIGPIPE
    except OSError as error:  # the disk is full, a file has gone
        place = error.filename
        try:
            sys.stdout.flush()
        except OSError:
            place = place or "standard output"
            _discard_output(sys.stdout)
        say(": ".join(map(str, filter(None, (name, place, error.strerror or error)))))
        return 1
    return 0


def _discard_output(*streams: TextIO) -> None:
    """Let what is still in the buffers go nowhere, so that the interpreter does not fail to write it in the end.

    As https://docs.python.org/3/library/signal.html#note-on-sigpipe advises.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())
