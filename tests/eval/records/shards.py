"""Runs of alignments in shards, as the plugin writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from alignment_eval.records.manifest import Manifest, Part
from alignment_eval.records.merge import part_lines

SIGNATURE = {"extraction": {"kind": "attn_n", "layer": 1, "rule": "kobayashi2020"}}


def write(directory: Path, shards: Sequence[Sequence[dict[int, str]]], size: int, skipped: int = 0) -> Path:
    """Shards of parts of links."""
    directory.mkdir(exist_ok=True)
    for shard, contents in enumerate(shards):
        manifest = Manifest("alignments", SIGNATURE, size, shard, len(shards), skipped=skipped, finished=True)
        parts = []
        for number, links in enumerate(contents):
            path = directory / manifest.part_name(number)
            path.write_text("".join(f"{line}\n" for line in part_lines(links)))
            parts.append(Part.of(path, len(links)))
        replace(manifest, parts=tuple(parts)).write(directory)
    return directory
