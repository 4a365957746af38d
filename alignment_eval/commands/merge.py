"""``align-eval merge``: one alignment file in corpus order from the parts of a run's shards."""

from __future__ import annotations

import argparse

from alignment_eval.command_line import Input, add_output
from alignment_eval.errors import InputError, progress_bar, say
from alignment_eval.files import check_new, write_lines
from alignment_eval.options import warn_skipped
from alignment_eval.records.manifest import merged
from alignment_eval.signature import Value, signature

EPILOG = """\
Example, where the shards of a run have left parts (docs/scale.md):
  align-eval merge out/sharded.pharaoh.parts --output out/merged.pharaoh

The signature goes to stderr.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "parts", type=Input, metavar="PARTS", help="directory of parts: FILE.parts of --norm-alignments FILE"
    )
    add_output(parser, "Pharaoh file", standard=True)


def run(args: argparse.Namespace) -> None:
    check_new(args.output, args.overwrite)
    info, alignments = merged(args.parts)
    if not isinstance(extraction := info.signature.get("extraction"), dict):
        raise InputError(f"{args.parts}: the signature does not say how links were made; run the shards again")
    run: dict[str, Value] = {"run": info.signature_hash, "sentences": info.size}
    write_lines(args.output, progress_bar(map(str, alignments["links"]), info.size, "sentences"))
    skipped = {n: status for n, status in enumerate(alignments["status"].to_pylist()) if status != "ok"}
    warn_skipped(skipped, info.size, "their lines are blank")
    say(signature(**{**run, **extraction, **run}))
