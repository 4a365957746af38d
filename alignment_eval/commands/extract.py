"""``align-eval extract``: word alignments in Pharaoh format from recorded maps."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace

from alignment_eval.errors import InputError
from alignment_eval.extract import NULLS, RULES, ExtractionOptions, extract, max_norm_layer
from alignment_eval.formats import format_pharaoh_line
from alignment_eval.links import Links
from alignment_eval.maps import KINDS
from alignment_eval.records import Records
from alignment_eval.signature import signature
from alignment_eval.textfiles import write_lines
from alignment_eval.word_maps import SETTINGS

MAX_NORM = "max-norm"
_EPILOG = """\
Example, after make demo:
  align-eval extract out/demo/forced --kind attn_n --layer 1 --setting awo --rule kobayashi2020
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``extract``."""
    parser.epilog = _EPILOG
    parser.add_argument("records", metavar="RECORDS", help="records directory of a run (--norm-records)")
    parser.add_argument("--kind", required=True, metavar="KIND", help=f"map kind: {', '.join(KINDS)}")
    parser.add_argument(
        "--layer",
        required=True,
        type=layer_number,
        metavar="N",
        help=f"decoder layer, from 0; {MAX_NORM}: that of the highest mean norm, a choice without gold (AWI only)",
    )
    parser.add_argument("--head", type=int, metavar="N", help="head, from 0 (default: the map of the whole layer)")
    parser.add_argument(
        "--setting",
        required=True,
        metavar="SETTING",
        help=f"{', '.join(SETTINGS)}: alignment of a target word by the row that outputs it, or has it as input",
    )
    parser.add_argument("--rule", required=True, metavar="RULE", help=f"extraction rule: {', '.join(RULES)}")
    parser.add_argument(
        "--null",
        metavar="NULL",
        help=f"{', '.join(NULLS)}: may </s> and tags win, the word then stays unaligned (default: the rule's own)",
    )
    parser.add_argument("--final-punctuation", action="store_true", help="link final marks to each other and only so")
    parser.add_argument("--output", default="-", metavar="FILE", help="Pharaoh file (default: -, the standard output)")


def layer_number(text: str) -> int | str:
    """The value of ``--layer``."""
    if text == MAX_NORM or text.isdecimal():
        return text if text == MAX_NORM else int(text)
    raise argparse.ArgumentTypeError(f"{text!r}: expected a layer number, from 0, or {MAX_NORM}")


def run(args: argparse.Namespace) -> None:
    """Write one line a sentence in corpus order; the signature goes to stderr."""
    options = ExtractionOptions(
        kind=args.kind,
        layer=0 if args.layer == MAX_NORM else args.layer,
        head=args.head,
        setting=args.setting,
        rule=args.rule,
        null=args.null,
        final_punctuation=args.final_punctuation,
    )
    records = Records(args.records)
    if args.layer == MAX_NORM:
        options = replace(options, layer=max_norm_layer(records.best(), options.setting))
    links, skipped = extract_all(records, options)
    ids = range(records.info.size)
    write_lines(args.output, (format_pharaoh_line(links.get(id_, frozenset())) for id_ in ids))
    warn_skipped(skipped, records.info.size, "their lines are blank")
    if not records.info.forced:
        print(
            f"warning: {records.directory} holds maps of the model's own translations: these links are of their words, "
            f"and cannot be scored against gold of the references (record with --score-reference for that)",
            file=sys.stderr,
        )
    chosen = {"layer_by": MAX_NORM} if args.layer == MAX_NORM else {}
    print(signature(records=records.info.signature_hash, **asdict(options), **chosen), file=sys.stderr)


def extract_all(records: Records, options: ExtractionOptions) -> tuple[dict[int, Links], dict[int, str]]:
    """The links of each sentence that has maps, and the status of each that has none, by id.

    Raises:
        InputError: a sentence has no best hypothesis, or an error of :func:`extract` or of the records.
    """
    links: dict[int, Links] = {}
    skipped: dict[int, str] = {}
    for sentence in records.best():
        sentence.layer_index(options.layer)  # an unknown layer is an error even if all sentences were skipped
        if sentence.ok:
            links[sentence.id] = extract(sentence, options)
        else:
            skipped[sentence.id] = sentence.status
    for id_ in range(records.info.size):
        if id_ not in links and id_ not in skipped:
            raise InputError(
                f"{records.directory}: sentence {id_} has no hypothesis of rank 0: expected one a sentence; "
                f"run again with --norm-records-overwrite"
            )
    return links, skipped


def warn_skipped(skipped: Mapping[int, str], size: int, consequence: str) -> None:
    """Say on stderr how many sentences have no maps, and why."""
    if skipped:
        reasons = ", ".join(f"{count} {status}" for status, count in Counter(skipped.values()).most_common())
        print(f"warning: {len(skipped)} of {size} sentences have no maps, {consequence} ({reasons})", file=sys.stderr)
