"""Small output of a run, for the tests of its modules."""

from __future__ import annotations

import numpy as np

from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.records.manifest import Manifest
from alignment_eval.records.store import RunInfo
from fairseq_norm_plugin.output.alignment_parts import AlignmentParts, ExtractedAlignments
from fairseq_norm_plugin.output.record_parts import RecordParts
from fairseq_norm_plugin.output.shard_parts import IfExists

QUANTITIES = ("head_attn_w", "transformed_norm", "layer_attn_n")


def sentence(id_, rank=0, status="ok"):
    side = SentenceSide(("a", "b", "</s>"), np.array([0, 1, -1], dtype=np.int32))
    maps = np.eye(3, dtype=np.float32)
    arrays = {
        "head_attn_w": np.stack([[maps, maps]]),
        "transformed_norm": np.ones((1, 2, 3), dtype=np.float32),
        "layer_attn_n": maps[None],
    }
    if status != "ok":
        side, arrays = SentenceSide((), np.empty(0, dtype=np.int32)), {}
    return SentenceMaps(id_, side, side, (0,), rank=rank, status=status, arrays=arrays)


def info(shard=0, shards=1, size=3, **signature):
    return RunInfo(signature, ("attn_w", "attn_n"), (0,), 2, "float32", size, 1, shard, shards)


OPTIONS = ExtractionOptions("attn_n", 0, setting="awo")
PART = "part-00000-of-00001-{:05d}.parquet"
MANIFEST = "_shard-00000-of-00001.json"


def record_parts(directory, resume=False, overwrite=False, **fields):
    return RecordParts(directory, info(**fields), QUANTITIES, IfExists(resume, overwrite))


def alignment_parts(file, resume=False, overwrite=False, shard=0, shards=1, size=3, **signature):
    manifest = Manifest("alignments", signature, size, shard, shards)
    parts = AlignmentParts(file, manifest, IfExists(resume, overwrite))
    writer = ExtractedAlignments(parts, OPTIONS)
    writer.abandon = parts.abandon
    return writer


def names(directory):
    return sorted(path.name for path in directory.iterdir())
