"""Parts of records: row groups, the background thread, a full disk."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from alignment_eval.errors import InputError
from alignment_eval.records.store import Records
from fairseq_norm_plugin.output import record_parts as record_parts_module
from fairseq_norm_plugin.output.record_parts import RecordParts
from fairseq_norm_plugin.output.shard_parts import IfExists, written_ids
from tests.plugin.output.parts import MANIFEST, PART, QUANTITIES, info, names, record_parts, sentence


def test_many_small_writes_make_few_row_groups(tmp_path):
    writer = record_parts(tmp_path, size=50)
    for i in range(50):
        writer.write([sentence(i)])
    writer.finish()
    assert pq.ParquetFile(tmp_path / PART.format(0)).num_row_groups == 1


@pytest.fixture
def full_disk(monkeypatch):
    """Records are written a sentence at a time, in the background, and the third is one too many."""
    written = []

    class Writer(pq.ParquetWriter):
        def write_table(self, table, *args, **kwargs):
            written.extend(table["id"].to_pylist())
            if len(written) > 2:
                raise OSError("No space left on device")
            super().write_table(table, *args, **kwargs)

    monkeypatch.setattr(pq, "ParquetWriter", Writer)
    monkeypatch.setattr(record_parts_module, "_BUFFER_BYTES", 0)
    return written


def test_what_fails_in_the_background_fails_the_run(tmp_path, full_disk):
    writer = record_parts(tmp_path, size=9)
    for i in range(3):
        writer.write([sentence(i)])
    time.sleep(0.2)
    for _ in range(2):  # and goes on failing
        with pytest.raises(InputError, match=r"cannot write the file \(No space left"):
            writer.write([sentence(8)])
    with pytest.raises(InputError, match=r"cannot write the file \(No space left"):
        writer.commit()
    with pytest.raises(InputError, match=r"cannot write the file \(No space left"):
        writer.finish()
    assert full_disk == [0, 1, 2]
    writer.abandon()
    assert names(tmp_path) == []


def test_what_fails_in_the_background_last_fails_the_part(tmp_path, full_disk):
    writer = record_parts(tmp_path, size=9)
    writer.write([sentence(0)])
    writer.commit()
    writer.write([sentence(1)])
    writer.write([sentence(2)])
    with pytest.raises(InputError, match=r"cannot write the file \(No space left"):
        writer.finish()
    writer.abandon()
    assert names(tmp_path) == [MANIFEST, PART.format(0)]
    assert written_ids(tmp_path, "records", 0, 1).tolist() == [0]


def test_lots_are_written_in_the_order_in_which_they_came(tmp_path, monkeypatch):
    monkeypatch.setattr(record_parts_module, "_BUFFER_BYTES", 0)
    writer = record_parts(tmp_path, size=30)
    order = np.random.default_rng(0).permutation(30).tolist()
    for i in order:
        writer.write([sentence(i)])
    writer.finish()
    assert [s.id for s in Records(tmp_path)] == order
    assert pq.ParquetFile(tmp_path / PART.format(0)).num_row_groups == 30


def test_values_that_float16_cannot_hold_fail_the_run(tmp_path):
    half = replace(info(size=1), dtype="float16")
    writer = RecordParts(tmp_path, half, QUANTITIES, IfExists())
    one = sentence(0)
    writer.write([replace(one, arrays={**one.arrays, "transformed_norm": np.full((1, 2, 3), 1e5, np.float32)})])
    with pytest.raises(InputError, match=r"sentence 0: transformed_norm has a row whose largest value is 1e\+05"):
        writer.finish()
    writer.abandon()
    assert names(tmp_path) == []
