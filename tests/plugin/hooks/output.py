"""Small output of a run, for the tests of its modules."""

from functools import partial

import numpy as np

from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.parts import RunInfo
from alignment_eval.profiles.chosen import ChosenMethod
from alignment_eval.records import arrow_schema, to_table
from fairseq_norm_plugin.hooks.parts import AlignmentParts, SentenceParts

QUANTITIES = ("head_attn_w", "transformed_norm", "layer_attn_n")
OPTIONS = ExtractionOptions("attn_n", "0", setting="awo")
PART = "part-00000-of-00001-{:05d}.parquet"


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


def record_parts(directory, resume=False, overwrite=False, shard=0, shards=1, size=3, **signature):
    info = RunInfo("records", signature, size, shard, shards, ("attn_w", "attn_n"), (0,), 2, 1)
    schema = arrow_schema(info, QUANTITIES)
    return SentenceParts(directory, info, schema, partial(to_table, schema=schema), resume, overwrite)


def alignment_parts(file, resume=False, overwrite=False, shard=0, shards=1, size=3, **signature):
    run = RunInfo("alignments", {"extraction": {}, **signature}, size, shard, shards)
    return AlignmentParts(file, run, ChosenMethod(AlignmentMethod(OPTIONS)), resume, overwrite)


def write(parts, *ids, status="ok"):
    parts.write([sentence(id_, status=status) for id_ in ids])
    return parts


def names(directory):
    return sorted(path.name for path in directory.iterdir())
