"""Runs of alignments in shards, as the plugin writes them."""

import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.records.manifest import COLUMNS, RunInfo

SIGNATURE = {"extraction": {"kind": "attn_n", "layer": 1, "rule": "kobayashi2020"}}


def write(directory, shards, size, skipped=(), signature=SIGNATURE):
    """Shards of parts of links."""
    directory.mkdir(exist_ok=True)
    for shard, contents in enumerate(shards):
        run = RunInfo("alignments", signature, size, shard, len(shards))
        for number, links in enumerate(contents):
            statuses = ["skipped" if id_ in skipped else "ok" for id_ in links]
            table = pa.table([list(links), statuses, list(links.values())], schema=run.schema(COLUMNS))
            pq.write_table(table, directory / run.part_name(number), write_page_checksum=True)
    return directory
