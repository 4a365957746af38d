"""Parts of records and word alignments: begun, resumed, replaced, killed."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from alignment_eval.errors import InputError
from alignment_eval.records.store import Records
from fairseq_norm_plugin.output import writers
from fairseq_norm_plugin.output.writers import IfExists, RecordParts, parts_directory, written_ids
from tests.plugin.output.parts import (
    MANIFEST,
    PART,
    QUANTITIES,
    alignment_parts,
    info,
    names,
    record_parts,
    sentence,
)


@pytest.mark.parametrize("make", [record_parts, alignment_parts], ids=["records", "alignments"])
def test_a_begun_shard_is_refused_continued_or_replaced(tmp_path, make):
    place = tmp_path / "x"
    content = "records" if make is record_parts else "alignments"
    directory = place if make is record_parts else parts_directory(place)
    writer = make(place, shards=2, a=1)
    writer.write([sentence(2)])
    writer.commit()
    writer.write([sentence(1)])
    writer.abandon()
    assert written_ids(directory, content, 0, 2).tolist() == [2]
    assert written_ids(directory, content, 1, 2).tolist() == []
    with pytest.raises(
        InputError, match=r"this shard of the same run is begun \(1 parts\) already: give --norm-records-r"
    ):
        make(place, shards=2, a=1)
    with pytest.raises(InputError, match=r"is of another run \(its a, b differ\)"):
        make(place, shards=2, a=2, b=3, overwrite=True)
    writer = make(place, shards=2, a=1, resume=True)
    writer.write([sentence(1), sentence(2), sentence(0, status="skipped")])
    writer.finish()
    assert written_ids(directory, content, 0, 2).tolist() == [0, 1, 2]
    before = {path: path.stat().st_mtime_ns for path in directory.iterdir()}
    with pytest.raises(InputError, match="this shard of the same run is finished already"):
        make(place, shards=2, a=1)
    writer = make(place, shards=2, a=1, resume=True)
    assert writer.manifest.finished
    assert writer.manifest.skipped == 1
    writer.write([sentence(1)])
    writer.finish()
    assert {path: path.stat().st_mtime_ns for path in directory.iterdir()} == before
    writer = make(place, shards=2, a=1, overwrite=True)
    assert {path: path.stat().st_mtime_ns for path in directory.iterdir()} == before
    writer.write([sentence(0)])
    writer.finish()
    assert written_ids(directory, content, 0, 2).tolist() == [0]
    assert len(names(directory)) == 2


def test_an_abandoned_part_leaves_nothing(tmp_path):
    writer = record_parts(tmp_path)
    writer.write([sentence(0)])
    writer.abandon()
    assert names(tmp_path) == []


def test_what_a_killed_run_left_is_replaced(tmp_path):
    (tmp_path / f".{PART.format(0)}.tmp").write_bytes(b"half")
    (tmp_path / PART.format(0)).write_bytes(b"whole, but not in a manifest")
    writer = record_parts(tmp_path, size=1)
    writer.write([sentence(0)])
    writer.finish()
    assert names(tmp_path) == [MANIFEST, PART.format(0)]
    assert len(list(Records(tmp_path))) == 1


def test_an_empty_shard_is_a_finished_one(tmp_path):
    for shard in range(2):
        writer = record_parts(tmp_path, size=1, shard=shard, shards=2)
        writer.write([sentence(0)] if shard else [])
        writer.finish()
    assert len(names(tmp_path)) == 3
    assert [s.id for s in Records(tmp_path)] == [0]


def test_an_alignments_file_is_not_lost(tmp_path):
    (tmp_path / "a").write_text("mine")
    for resume in (False, True):
        with pytest.raises(InputError, match="a: there is a file already, which does not say what run it is of"):
            alignment_parts(tmp_path / "a", resume=resume)
    writer = alignment_parts(tmp_path / "a", overwrite=True, size=1)
    writer.write([sentence(0)])
    assert (tmp_path / "a").read_text() == "mine"
    (tmp_path / "a.parts" / ".x.tmp").write_text("of a killed run")
    writer.finish()
    assert (tmp_path / "a").read_text() == "0-0 1-1\n"
    assert names(tmp_path) == ["a"]


def test_a_file_in_the_place_of_the_directory(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match="f: is a file: expected a directory for --norm-records"):
        record_parts(tmp_path / "f")


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
    monkeypatch.setattr(writers, "_BUFFER_BYTES", 0)
    return written


def test_what_fails_in_the_background_fails_the_run(tmp_path, full_disk):
    writer = record_parts(tmp_path, size=9)
    for i in range(3):
        writer.write([sentence(i)])
    time.sleep(0.2)
    for _ in range(2):  # and goes on failing
        with pytest.raises(OSError, match="No space left"):
            writer.write([sentence(8)])
    with pytest.raises(OSError, match="No space left"):
        writer.commit()
    with pytest.raises(OSError, match="No space left"):
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
    with pytest.raises(OSError, match="No space left"):
        writer.finish()
    writer.abandon()
    assert names(tmp_path) == [MANIFEST, PART.format(0)]
    assert written_ids(tmp_path, "records", 0, 1).tolist() == [0]


def test_lots_are_written_in_the_order_in_which_they_came(tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "_BUFFER_BYTES", 0)
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
