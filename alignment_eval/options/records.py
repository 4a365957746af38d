"""Options and checks of the commands that read records: configurations, gold, skipped sentences."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from alignment_eval.links.read import AlignmentFile, Texts
from alignment_eval.maps.kinds import KINDS
from alignment_eval.options.alignments import gold_of, gold_of_size, texts_of
from alignment_eval.options.common import Input, add_list
from alignment_eval.records.store import Records


def add_kinds(parser: argparse._ActionsContainer) -> None:
    """Declare ``--kinds``; None stands for all that were recorded."""
    add_list(parser, "--kinds", f"of {', '.join(KINDS)} (default: all recorded)", metavar="KIND")


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


def forced_records(directory: str) -> Records:
    """The records of forced scoring in a directory."""
    records = Records(directory)
    check_forced(records)
    return records


def check_forced(records: Records) -> None:
    """Check that the records hold maps of the reference texts, which gold is made for."""
    if not records.info.forced:
        raise InputError(
            f"{records.directory}: maps of the model's own translations, which have other words than the gold: "
            f"expected records of forced scoring; record with --score-reference"
        )


def check_size(found: str, size: int, records: Records) -> None:
    """Check that what is ``found`` is of as many sentences as the records."""
    if size != records.info.size:
        raise InputError(
            f"{found}, but {records.directory} has records of {records.info.size} sentences: expected the same number; "
            f"are they of the same text?"
        )


def gold_and_texts(args: argparse.Namespace, records: Records) -> tuple[AlignmentFile, Texts | None]:
    """The gold of ``--gold``, checked against the records, and the texts of ``--source`` and ``--target``."""
    texts = texts_of(args)
    return gold_of_records(gold_of(args, texts), records), texts


def gold_of_records(gold: AlignmentFile, records: Records) -> AlignmentFile:
    """The gold, checked to have as many sentences as the records."""
    return gold_of_size(gold, records.info.size, f"{records.directory} has records of {records.info.size}")


def warn_skipped(skipped: Mapping[int, str], size: int, consequence: str) -> None:
    """Warn how many sentences cannot be aligned, and why."""
    if skipped:
        reasons = ", ".join(f"{count} {status}" for status, count in Counter(skipped.values()).most_common())
        warn_on_stderr(f"{len(skipped)} of {size} sentences cannot be aligned, {consequence} ({reasons})")
