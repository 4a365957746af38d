"""Runs of alignments in shards, as the plugin writes them."""

import pyarrow.parquet as pq

from alignment_eval.alignment import Alignment, Form
from alignment_eval.parts import RunInfo

FORM = Form()
SIGNATURE = {"extraction": {"kind": "attn_n", "layer": 1, "rule": "kobayashi2020"}}


def linked(text):
    """The links of a Pharaoh line."""
    return [tuple(map(int, link.split("-"))) for link in text.split()]


def write(directory, shards, size, skipped=(), signature=SIGNATURE):
    """Shards of parts of links."""
    directory.mkdir(exist_ok=True)
    for shard, contents in enumerate(shards):
        run = RunInfo("alignments", signature, size, shard, len(shards))
        for number, links in enumerate(contents):
            rows = [
                Alignment("", "", (), (), linked(text), status="skipped" if id_ in skipped else "ok")
                for id_, text in links.items()
            ]
            table = FORM.table(list(links), rows)
            table = table.cast(run.schema(table.schema))
            pq.write_table(table, directory / run.part_name(number), write_page_checksum=True)
    return directory
