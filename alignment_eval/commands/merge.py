"""``align-eval merge``: one alignment file in corpus order from the parts of a run's shards."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pyarrow as pa

from alignment_eval.alignment import write_alignments
from alignment_eval.command_line import Input, add_output
from alignment_eval.errors import progress_meter, say, warn_skipped
from alignment_eval.files import check_signed
from alignment_eval.parts import form_of, read_alignments, signature_of

EPILOG = """\
Example, where the shards of a run have left parts:
  align-eval merge out/sharded.pharaoh.parts --output out/merged.pharaoh

The signature goes to stderr.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    help_ = "directory of parts: FILE.parts of norm-align --shard, or of fairseq-generate --norm-alignments FILE"
    parser.add_argument("parts", type=Input, metavar="PARTS", help=help_)
    add_output(parser, "the file, as a run of one shard writes it by its ending", standard=True)


def run(args: argparse.Namespace) -> None:
    check_signed(args.output, args.overwrite)
    info, tables = read_alignments(args.parts)
    skipped: dict[int, str] = {}

    def seen() -> Iterator[pa.Table]:
        done = 0
        with progress_meter(info.size, "sentences") as progress:
            for table in tables:
                yield table
                statuses = enumerate(table["status"].to_pylist(), done)
                skipped.update((number, status) for number, status in statuses if status != "ok")
                done += len(table)
                progress(len(table))

    signature = signature_of(info, args.parts)
    write_alignments(args.output, seen(), form_of(info), signature)
    warn_skipped(skipped, info.size, "so they have no links")
    say(signature)
