"""Options of the commands that read and score alignment files: base, direction, texts, resampling."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from alignment_eval.errors import InputError, UsageError, say, warn_on_stderr
from alignment_eval.figures.names import visible
from alignment_eval.files import STANDARD
from alignment_eval.links.checks import BASES, Texts
from alignment_eval.links.read import AlignmentFile, ReadOptions, read_gold, read_texts, warn_of_gaps
from alignment_eval.links.text import joined_tokens, token_lines
from alignment_eval.maps.sentence import PairWords
from alignment_eval.scoring.aer import Score, score
from alignment_eval.scoring.diagnosis import direction_warning
from alignment_eval.scoring.significance import LEVEL, Resampling, group_size
from alignment_eval.scoring.tables import Table
from alignment_eval.signature import Value, joined

#: With fewer sentences, bootstrap intervals are too narrow.
_FEW_SENTENCES = 20
#: What the help says of hypotheses.
HYPOTHESES = (
    "word alignments (-: standard input), as norm-align, awesome-align, simalign, eflomal, fast_align, GIZA++ (A3) and "
    "fairseq-generate write them"
)


def add_gold_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--gold`` and how to read it."""
    group = parser.add_argument_group("gold")
    group.add_argument("--gold", required=True, metavar="FILE", help="gold alignments (-: standard input)")
    add_gold_reading(group)


def add_gold_reading(group: argparse._ArgumentGroup) -> None:
    """Declare how to read gold."""
    add_base(group, "gold", "auto, which warns")
    add_swap(group, "gold")


def add_hypothesis_arguments(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Declare the hypotheses and how to read them.

    Args:
        parser: of the command.
        more: what else the help says of them.
    """
    group = parser.add_argument_group("hypotheses")
    group.add_argument(
        "hypotheses",
        nargs="+",
        metavar="HYP",
        help=f"{HYPOTHESES}, all read in the same way{more}",
    )
    add_base(group, "hyp", "0")


def add_text_arguments(parser: argparse.ArgumentParser, required: bool = False) -> None:
    """Declare ``--source`` and ``--target``."""
    group = parser.add_argument_group(
        "texts", "tokenised, one sentence a line; indices and word counts are checked against them"
    )
    group.add_argument("--source", required=required, metavar="FILE", help="source text")
    group.add_argument("--target", required=required, metavar="FILE", help="target text")
    if not required:
        group.add_argument("--text", metavar="FILE", help="both texts, as lines SOURCE ||| TARGET")


def add_base(group: argparse._ActionsContainer, role: str, default: str) -> None:
    """Declare ``--<role>-base``."""
    group.add_argument(
        f"--{role}-base",
        choices=BASES,
        help="index of the first word; auto: detected from the data; 0-unused: 0, although no link uses it "
        f"(default: {default}; 1 for the formats naacl and giza)",
    )


def add_swap(group: argparse._ActionsContainer, role: str) -> None:
    """Declare ``--<role>-swap``."""
    group.add_argument(f"--{role}-swap", action="store_true", help="the file has target-source links: swap them")


def check_standard_input(paths: Iterable[str | None]) -> None:
    """Check that at most one input is ``-``.

    Raises:
        UsageError: several are.
    """
    if list(paths).count(STANDARD) > 1:
        raise UsageError("several inputs are -: expected at most one input from the standard input")


def gold_of(args: argparse.Namespace, texts: Texts | None) -> AlignmentFile:
    """Read the gold of ``--gold``; warn if it has no links."""
    gold = read_gold(args.gold, ReadOptions(base=args.gold_base, swap=args.gold_swap), texts)
    if not gold.file.possible:
        warn_on_stderr(f"{gold.file.name}: the gold has no links: AER says nothing")
    return gold


def gold_of_size(gold: AlignmentFile, size: int, others: str) -> AlignmentFile:
    """The gold with ``size`` sentences, as many as ``others`` have; warns if a NAACL file ends before the last one.

    Raises:
        InputError: it has more or fewer.
    """
    if gold.file.format == "naacl" and len(gold) < size:  # such a file does not say how many follow its last link
        warn_of_gaps(gold.file, size)
        return replace(gold, sentences=size)
    if len(gold) != size:
        raise InputError(
            f"{gold.file.name}: {len(gold)} sentences, but {others}: expected the same number; are they of the same "
            f"text?"
        )
    return gold


def check_as_many(first: AlignmentFile, second: AlignmentFile) -> None:
    """Check that two files have the same number of sentences.

    Raises:
        InputError: they have not.
    """
    if len(first) != len(second):
        naacl = "naacl" in (first.file.format, second.file.format)
        raise InputError(
            f"{first.file.name} has {len(first)} sentences, {second.file.name} has {len(second)}: expected the same "
            f"number, a blank line for a sentence without links; are both of the same text?"
            f"{' A NAACL file ends with its last link: pass --source and --target' * naacl}"
        )


def score_files(hypothesis: AlignmentFile, gold: AlignmentFile) -> Score:
    """Score one file against another; warns on stderr if the direction looks swapped.

    Raises:
        InputError: the numbers of sentences differ.
    """
    check_as_many(hypothesis, gold)
    if warning := direction_warning(hypothesis, gold):
        warn_on_stderr(warning)
    return score(hypothesis.each_links(), gold)


def distinct_names(paths: Sequence[str]) -> list[str]:
    """What tables and pages call files: without directories, unless two are the same."""
    names = ["standard input" if path == STANDARD else Path(path).name for path in paths]
    return [visible(name) for name in (names if len(set(names)) == len(names) else paths)]


def print_table(table: Table, format: str, signatures: Sequence[str]) -> None:
    """Print a table in one of :data:`alignment_eval.scoring.tables.FORMATS`, and below it one signature of its rows.

    In LaTeX the signature is a comment; that of a TSV goes to stderr.
    """
    signed = joined(signatures)
    lines = list(table.lines(format))
    if format != "tsv":
        lines += {"text": [signed], "md": ["", signed], "latex": [f"% {signed}"]}[format]
    print("\n".join(lines))
    if format == "tsv":
        say(signed)


def texts_of(args: argparse.Namespace) -> Texts | None:
    """The texts of ``--source`` and ``--target``, or of ``--text``; None if none is given.

    Raises:
        UsageError: only one of two is given, or all three.
        InputError: they cannot be read, or have different numbers of lines.
    """
    if getattr(args, "text", None) is not None:
        if args.source is not None or args.target is not None:
            raise UsageError("--text with --source or --target: expected either both texts in one file, or two files")
        return read_texts(args.text)
    if args.source is None and args.target is None:
        return None
    if args.source is None or args.target is None:
        raise UsageError("only one of --source and --target is given: expected both or neither")
    return read_texts(args.source, args.target)


def reading_fields(role: str, alignments: AlignmentFile) -> dict[str, Value]:
    """Signature fields: what was read, and how."""
    return {
        role: alignments.file.hash,
        f"{role}_format": alignments.file.format,
        f"{role}_base": alignments.base,
        f"{role}_swap": alignments.swap,
    }


def add_resampling_arguments(group: argparse._ActionsContainer, help: str) -> None:
    """Declare ``--resamples``, with this help, and ``--seed``; both are None where they are not given."""
    group.add_argument("--resamples", type=int, metavar="N", help=help)
    group.add_argument("--seed", type=int, metavar="N", help=f"seed of the random draws (default: {Resampling().seed})")


def resampling_of(args: argparse.Namespace) -> Resampling:
    """The given options, or their defaults; raises UsageError for impossible values."""
    given = {name: getattr(args, name) for name in ("resamples", "seed") if getattr(args, name) is not None}
    return Resampling(**given)


def resampling_fields(options: Resampling, sentences: int, **methods: str) -> dict[str, str | int | float]:
    """Signature fields: how that many sentences were resampled."""
    size = group_size(sentences)
    grouped = {"drawn_together": size} if size > 1 else {}
    return {"level": LEVEL, **methods, **grouped, "resamples": options.resamples, "seed": options.seed}


def warn_of_few(sentences: int) -> None:
    """Warn if there are too few sentences for a reliable interval."""
    if sentences < _FEW_SENTENCES:
        warn_on_stderr(f"only {sentences} sentences: intervals are too narrow and p-values are coarse")


def words_of(args: argparse.Namespace) -> list[PairWords] | None:
    """The words of each sentence pair of the texts that :func:`texts_of` checks; None if none are given.

    Raises:
        UsageError: a text is the standard input, which cannot be read twice.
    """
    if STANDARD in (args.source, args.target, args.text):
        raise UsageError("a text is -: expected a file; only alignments can come from the standard input")
    if args.text is None and None in (args.source, args.target):
        return None
    texts = zip(token_lines(args.source), token_lines(args.target)) if args.text is None else joined_tokens(args.text)
    return [([w.decode() for w in source], [w.decode() for w in target]) for source, target in texts]
