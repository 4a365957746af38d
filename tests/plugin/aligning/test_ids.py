"""Ids that occur twice."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from fairseq_norm_plugin.aligning.ids import duplicate_id


def slow(ids):
    seen = {}
    for row, id_ in enumerate(ids):
        if id_ in seen:
            return id_, seen[id_], row
        seen[id_] = row
    return None


@pytest.mark.parametrize("make", [int, "{:03d}".format], ids=["numbers", "text"])
@pytest.mark.parametrize("seed", range(12))
def test_the_first_duplicate(make, seed):
    rng = random.Random(seed)
    ids = list(range(40)) if seed % 3 == 0 else rng.sample(range(900), 40)
    if seed % 2:
        ids[rng.randrange(40)] = ids[rng.randrange(40)]
        ids[39] = ids[38]
    ids = [make(id_) for id_ in ids]
    reads = []

    def batches():
        reads.append(1)
        return (pa.array(ids[start : start + 7]) for start in range(0, 40, 7))

    assert duplicate_id(batches) == slow(ids)
    assert len(reads) == (1 if ids == sorted(set(ids)) else len(reads))


def test_no_rows():
    assert duplicate_id(lambda: [pa.array([], pa.int64())]) is None
