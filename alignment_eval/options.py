"""Options and checks of the commands that read alignment files and records: base, direction, texts, gold."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alignment_eval.command_line import Input, System, add_list, file_name
from alignment_eval.errors import InputError, UsageError, say, warn_user
from alignment_eval.extraction.method import DEFAULTS, RULE_NAMES
from alignment_eval.figures.style import visible
from alignment_eval.files import STANDARD, Value, joined
from alignment_eval.links.files import (
    BASES,
    AlignmentFile,
    ReadOptions,
    Texts,
    Warn,
    read_gold,
    read_hypothesis,
    read_texts,
)
from alignment_eval.maps.sentence import PairWords, kinds_help, marks_of_tools
from alignment_eval.reading import TextFile, check_sizes, token_lines
from alignment_eval.scoring.aer import Score, score
from alignment_eval.scoring.diagnosis import diagnose, doubts
from alignment_eval.scoring.significance import LEVEL, Resampling
from alignment_eval.scoring.tables import Table, counted

if TYPE_CHECKING:
    from alignment_eval.records import Records

#: With fewer sentences, bootstrap intervals are too narrow.
_FEW_SENTENCES = 20
#: Lines of a text that are looked at.
_SAMPLED = 1000


def add_gold_arguments(parser: argparse.ArgumentParser, required: bool = True, more: str = "") -> None:
    """Declare ``--gold`` and how to read it; ``more`` is what the help adds."""
    group = parser.add_argument_group("gold")
    help_ = f"gold alignments (-: standard input){more}"
    group.add_argument("--gold", required=required, type=Input, metavar="FILE", help=help_)
    add_base(group, "gold", "auto, which warns")
    add_swap(group, "gold")


def add_hypothesis_arguments(group: argparse._ActionsContainer, name: str = "hypotheses", more: str = "") -> None:
    """Declare the hypotheses, or an option ``name`` for them, and how to read them; ``more`` is what the help adds."""
    help_ = (
        "word alignments (-: standard input), as norm-align, awesome-align, simalign, eflomal, fast_align, GIZA++ (A3) "
        f"or fairseq-generate writes them; NAME=FILE names the system{more}"
    )
    group.add_argument(name, action="extend", nargs="+", type=System.of, metavar="HYP", help=help_)
    add_base(group, "hyp", "0")


def add_links_arguments(group: argparse._ActionsContainer, name: str, role: str, **options: Any) -> None:
    """Declare ``name``, a file of word alignments, and how to read it, ``--<role>-base`` and ``--<role>-swap``."""
    group.add_argument(name, type=Input, help="word alignments (-: standard input)", **options)
    add_base(group, role, "0")
    add_swap(group, role)


def add_rule(group: argparse._ActionsContainer) -> None:
    """Declare ``--rule``; None stands for the default of a map."""
    help_ = f"extraction rule: {', '.join(RULE_NAMES)} (default: {DEFAULTS.map_rule})"
    group.add_argument("--rule", metavar="RULE", help=help_)


def add_text_arguments(parser: argparse.ArgumentParser, required: bool = False) -> None:
    """Declare ``--source`` and ``--target``."""
    group = parser.add_argument_group(
        "texts", "tokenised, one sentence a line; indices and word counts are checked against them"
    )
    for side in ("source", "target"):
        group.add_argument(f"--{side}", required=required, type=file_name, metavar="FILE", help=f"{side} text")


def add_base(group: argparse._ActionsContainer, role: str, default: str) -> None:
    """Declare ``--<role>-base``."""
    group.add_argument(
        f"--{role}-base",
        choices=BASES,
        help="the number of a sentence's first word; auto: found from the links; 0-unused: 0, although no link has a 0 "
        f"(default: {default}; 1 for the formats naacl and giza)",
    )


def add_swap(group: argparse._ActionsContainer, role: str) -> None:
    """Declare ``--<role>-swap``."""
    group.add_argument(f"--{role}-swap", action="store_true", help="its links are target-source: exchange them")


def read_options(
    args: argparse.Namespace, role: str, allow_possible: bool = False, warn: Warn = warn_user, one_of: str = ""
) -> ReadOptions:
    """How ``--<role>-base`` and ``--<role>-swap`` say to read a file; ``one_of``: its path, if they are of several."""
    base = getattr(args, f"{role}_base")

    def advise(verb: str, option: str) -> str:
        if (role, option) == ("hyp", "swap"):  # hypotheses have no such option
            return "exchange the hypothesis with align-eval convert --from-swap --to pharaoh"
        if one_of and base != "auto" and option in ("base 0", "base 1"):  # the other files may have another base
            to = f"--to pharaoh{' --to-base 1' * (option == 'base 0')} -o NEW"
            convert = f"run align-eval convert {one_of} --from-{option} {to} and give NEW"
            return f"{verb} --{role}-{option} if all files count from {option[-1]}, else {convert}"
        return f"{verb} --{role}-{option}"

    return ReadOptions(base, getattr(args, f"{role}_swap", False), allow_possible, advise, warn)


def read_hypotheses(
    args: argparse.Namespace, paths: Sequence[str], texts: Texts | None, warn: Warn = warn_user
) -> list[AlignmentFile]:
    """Read word alignments as ``--hyp-base`` says; they are checked against the texts."""
    several = len(paths) > 1
    return [read_hypothesis(path, read_options(args, "hyp", False, warn, path * several), texts) for path in paths]


def gold_of(args: argparse.Namespace, texts: Texts | None, warn: Warn = warn_user) -> AlignmentFile:
    """Read the gold of ``--gold``; warn if it has no links."""
    gold = read_gold(args.gold, read_options(args, "gold", warn=warn), texts)
    if not gold.possible:
        warn(f"{gold.name}: the gold has no links: AER says nothing")
    return gold


def read_systems(
    args: argparse.Namespace, systems: Sequence[System]
) -> tuple[Texts | None, AlignmentFile, list[AlignmentFile]]:
    """The texts, the gold of ``--gold``, and the alignments of ``systems``, which are checked against the texts."""
    paths = [system.path for system in systems]
    texts = texts_of(args)
    if texts is not None:
        _warn_of_prepared(args.source, args.target)
    try:
        return texts, *_gold_and_systems(args, paths, texts, warn_user)
    except InputError as error:
        if texts is None or STANDARD in (args.gold, *paths):
            raise
        raise InputError(_better_advice(args, paths, texts, str(error))) from error


def _gold_and_systems(
    args: argparse.Namespace, paths: Sequence[str], texts: Texts | None, warn: Warn
) -> tuple[AlignmentFile, list[AlignmentFile]]:
    return gold_of(args, texts, warn), read_hypotheses(args, paths, texts, warn)


def _better_advice(args: argparse.Namespace, paths: Sequence[str], texts: Texts, error: str) -> str:
    """What to say of files that do not fit the texts: what was tried and fits, else the ``error``."""
    read_again = partial(_gold_and_systems, args, paths, warn=lambda _: None)
    with suppress(InputError):
        read_again(texts=texts.exchanged)
        return (
            f"{texts.source_name}, {texts.target_name}: look exchanged: as they are, links lie outside of their "
            f"sentence pairs, and with source and target exchanged all links of {', '.join((args.gold, *paths))} are "
            f"inside; exchange --source and --target"
        )
    if getattr(args, "diagnose", False):
        with suppress(InputError):
            gold, systems = read_again(texts=None)
            for links in systems:
                if (found := diagnose(links, gold).explanation) is not None:
                    changes = " and ".join(found.changes)
                    return f"{error}; {links.name}: AER is {100 * found.aer:.2f} % if you {changes}"
    return error


def _warn_of_prepared(*paths: str) -> None:
    """Warn of texts in subwords or with the escapes of Moses: their words are not those of the gold."""
    for path in paths:
        cut, escaped = marks_of_tools([line.decode() for _, line in islice(TextFile(path).lines(), _SAMPLED)])
        if cut or escaped:
            looks = f"cut into subwords: {cut}" if cut else f"escaped: {escaped}"
            warn_user(f"{path}: looks {looks}; give the words that the gold links, uncut and without escapes")


def score_files(hypothesis: AlignmentFile, gold: AlignmentFile, diagnosed: bool = False) -> Score:
    """Score one file against another; warns on stderr of a doubtful AER, unless it is ``diagnosed`` anyway."""
    try:
        check_sizes(hypothesis.size, gold.size)
    except InputError as error:
        if (explanation := diagnose(hypothesis, gold).explanation) is None:
            raise
        raise InputError(f"{error} The links fit best if you {' and '.join(explanation.changes)}") from None
    if not diagnosed and (warning := doubts(hypothesis, gold)):
        warn_user(warning)
    return score(hypothesis.each_links(), gold)


def system_name(system: System) -> str:
    """What results call a system: the name that the user gave, or the file."""
    return system.name or ("<stdin>" if system.path == STANDARD else str(system.path))


def distinct_names(systems: Sequence[System]) -> list[str]:
    """What tables and pages call systems: the names that the user gave, or files without what they have in common.

    That is the directory; of files with one name, the directories and endings that all of these share.
    """
    parts = [Path(system.path).parts for system in systems]
    names = []
    for system, own in zip(systems, parts):
        alike = [other for other in parts if other[-1:] == own[-1:]]
        turned = [other[::-1] for other in alike]
        start, end = len(os.path.commonprefix(alike)), len(os.path.commonprefix(turned))  # noqa: RUF071  # of parts
        differing = str(Path(*(own[start : len(own) - end] or own[-1:])))
        names.append(system.name or ("standard input" if system.path == STANDARD else differing))
    return [visible(name) for name in (names if len(set(names)) == len(names) else map(system_name, systems))]


def print_table(table: Table, format: str, signatures: Sequence[str]) -> None:
    """Print a table in a format of :mod:`alignment_eval.scoring.tables`, and below it one signature of its rows.

    In LaTeX the signature is a comment; with TSV it goes to stderr.
    """
    signed = joined(signatures)
    below = {"text": [signed], "md": ["", signed], "latex": [f"% {signed}"], "tsv": []}[format]
    print("\n".join([*table.lines(format), *below]))
    if format == "tsv":
        say(signed)


def texts_of(args: argparse.Namespace) -> Texts | None:
    """The numbers of words of ``--source`` and ``--target``; None if they are not given."""
    if (args.source is None) != (args.target is None):
        raise UsageError("only one of --source and --target is given: expected both or neither")
    return None if args.source is None else read_texts(args.source, args.target)


def words_of_texts(args: argparse.Namespace) -> list[PairWords] | None:
    """The words of each sentence pair of the texts that :func:`texts_of` checks; None if they are not given."""
    if None in (args.source, args.target):
        return None
    return list(zip(token_lines(args.source), token_lines(args.target)))


def reading_fields(role: str, alignments: AlignmentFile) -> dict[str, Value]:
    """Signature fields: what was read, and how."""
    return {
        role: alignments.hash,
        f"{role}_format": alignments.format,
        f"{role}_base": alignments.base,
        f"{role}_swap": alignments.swap,
    }


def resampling_fields(options: Resampling, **methods: str) -> dict[str, str | int | float]:
    """Signature fields: how sentences were resampled."""
    return {"level": LEVEL, **methods, "resamples": options.resamples, "seed": options.seed}


def warn_of_few(sentences: int) -> None:
    """Warn if there are too few sentences for a reliable interval."""
    if sentences < _FEW_SENTENCES:
        warn_user(f"only {counted(sentences)}: intervals are too narrow and p-values are coarse")


def add_kinds(parser: argparse._ActionsContainer) -> None:
    """Declare ``--kinds``; None stands for all that were recorded."""
    add_list(parser, "--kinds", f"kinds of maps, of {kinds_help()} (default: all recorded)", metavar="KIND")


def add_records(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """Declare RECORDS; None stands for none if they are ``optional``."""
    count, only = ("?", ", if maps are to be shown") if optional else (None, "")
    help_ = f"records directory of a run (--norm-records){only}"
    parser.add_argument("records", nargs=count, type=Input, metavar="RECORDS", help=help_)


def refuse_without_records(args: argparse.Namespace, options: Iterable[str]) -> None:
    """Refuse options that are about records if there are none, and a file of links in their place."""
    if args.records is not None and Path(args.records).is_file():
        raise UsageError(f"{args.records}: a file, not a records directory: give alignments by --hyp {args.records}")
    for option in options if args.records is None else ():
        if getattr(args, option) is not None:
            raise UsageError(f"--{option} without RECORDS: expected a records directory, whose maps it is about")


def read_records(args: argparse.Namespace) -> Records | None:
    """The records of RECORDS, if it is given; with a gold, they must hold maps of the reference texts that it is of."""
    from alignment_eval.records import Records  # of pyarrow, which few commands need

    records = None if args.records is None else Records(args.records)
    if args.gold is not None and records is not None and not records.info.forced:
        raise InputError(
            f"{args.records}: maps of the model's own translations, not of the gold's: record with --score-reference"
        )
    return records
