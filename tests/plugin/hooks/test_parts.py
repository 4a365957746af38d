"""Parts of a shard: begun, resumed, replaced, failed, killed; the alignments file that they become."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from alignment_eval import parts
from alignment_eval.errors import InputError
from alignment_eval.parts import parts_directory
from alignment_eval.records import Records
from fairseq_norm_plugin.hooks.parts import ids_in
from tests.facts import facts
from tests.plugin.hooks.output import PART, alignment_parts, names, record_parts, write


@pytest.mark.parametrize("make", [record_parts, alignment_parts], ids=["records", "alignments"])
def test_a_begun_shard_is_refused_continued_or_replaced(tmp_path, make):
    place, content = tmp_path / "x", "records" if make is record_parts else "alignments"
    directory = place if make is record_parts else parts_directory(place)

    def written(shard=0):
        return sorted(ids_in(directory, content, shard, 2))

    writer = make(place, shards=2, a=1)
    write(writer, 2).commit()
    write(writer, 1).abandon()
    assert (written(), written(1)) == ([2], [])
    with pytest.raises(InputError, match=facts("1 parts … --norm-records-resume … --norm-records-overwrite")):
        make(place, shards=2, a=1)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(InputError, match=facts("of another run (different: a, b)")):
            make(place, shards=2, a=2, b=3, **options)
    writer = make(place, shards=2, a=1, resume=True)
    write(writer, 1, 2)
    write(writer, 0, status="skipped").finish()
    assert written() == [0, 1, 2]
    before = {path: path.stat().st_mtime_ns for path in directory.iterdir()}
    parts = write(make(place, shards=2, a=1, resume=True), 1)
    assert parts.written.all()
    parts.finish()
    assert {path: path.stat().st_mtime_ns for path in directory.iterdir()} == before
    writer = make(place, shards=2, a=1, overwrite=True)
    assert {path: path.stat().st_mtime_ns for path in directory.iterdir()} == before
    write(writer, 0).finish()
    assert written() == [0]
    assert names(directory) == ["part-00000-of-00002-00000.parquet"]
    write(make(place, shards=2, shard=1, a=1), 1).finish()  # the other shard is not this one's to refuse or replace
    write(make(place, shards=2, a=1, overwrite=True), 2).finish()
    assert (written(), written(1)) == ([2], [1])


def test_many_small_writes_make_few_row_groups_in_their_order(tmp_path):
    writer = record_parts(tmp_path, size=50)
    order = np.random.default_rng(0).permutation(50).tolist()
    for id_ in order:
        write(writer, id_)
    writer.finish()
    assert [sentence.id for sentence in Records(tmp_path)] == order
    assert pq.ParquetFile(tmp_path / PART.format(0)).num_row_groups == 1


def test_a_full_disk_fails_the_run_and_leaves_whole_parts(tmp_path, monkeypatch):
    """Rows are written one by one, and the third is one too many."""
    written = []

    class Writer(pq.ParquetWriter):
        def write_table(self, table, *args, **kwargs):
            written.extend(table["id"].to_pylist())
            if len(written) > 2:
                raise OSError("No space left on device")
            super().write_table(table, *args, **kwargs)

    monkeypatch.setattr(pq, "ParquetWriter", Writer)
    monkeypatch.setattr(parts, "_BUFFER_BYTES", 0)
    writer = record_parts(tmp_path, size=9)
    write(writer, 0).commit()
    write(writer, 1)
    for again in (lambda: write(writer, 2), writer.commit, writer.finish):
        with pytest.raises(InputError, match=r"cannot write the file \(No space left"):
            again()
    writer.abandon()
    assert names(tmp_path) == [PART.format(0)]
    assert ids_in(tmp_path, "records", 0, 1).tolist() == [0]


@pytest.mark.parametrize("options", [{"resume": True}, {"overwrite": True}], ids=str)
def test_what_a_killed_process_leaves_is_removed(tmp_path, options):
    """A whole part and an unfinished one; tests/integration/test_records_runs.py kills a process."""
    write(record_parts(tmp_path, size=4), 0, 1).commit()
    (tmp_path / f".{PART.format(1)}.x1.tmp").write_text("unfinished")
    with pytest.raises(InputError, match=facts("sentences 2, 3 are missing")):
        Records(tmp_path)
    (tmp_path / f".{PART.format(0)[:-8]}.tmp").write_text("of somebody else")
    write(record_parts(tmp_path, size=4, **options), 0, 1, 2, 3).finish()
    assert [sentence.id for sentence in Records(tmp_path)] == [0, 1, 2, 3]
    parts = [PART.format(0), PART.format(1)] if "resume" in options else [PART.format(0)]
    assert names(tmp_path) == [f".{PART.format(0)[:-8]}.tmp", *parts]


def test_two_processes_of_one_shard_lose_nothing(tmp_path):
    first, second = record_parts(tmp_path, size=2), record_parts(tmp_path, size=2)
    write(first, 0, 1).finish()
    write(second, 1)
    with pytest.raises(InputError, match=facts(f"{PART.format(0)}: another process")):
        second.finish()
    second.abandon()
    assert [sentence.id for sentence in Records(tmp_path)] == [0, 1]
    assert names(tmp_path) == [PART.format(0)]


# -- the alignments file of a run of one shard


def finish(file, size=2, **options):
    write(alignment_parts(file, size=size, **options), *range(size)).finish()


def test_a_file_is_only_replaced_with_overwrite(tmp_path):
    (tmp_path / "a").write_text("mine")
    for resume in (False, True):
        with pytest.raises(InputError, match=facts("a: already exists … --norm-records-overwrite")):
            alignment_parts(tmp_path / "a", resume=resume)
    assert names(tmp_path) == ["a"]
    writer = alignment_parts(tmp_path / "a", overwrite=True, size=1)
    write(writer, 0)
    assert (tmp_path / "a").read_text() == "mine"
    writer.finish()
    assert (tmp_path / "a").read_text() == "0-0 1-1\n"
    finish(tmp_path / "a", size=1, overwrite=True)
    assert names(tmp_path) == ["a", "a.signature.json"]


@pytest.mark.parametrize("there", [False, True])
def test_a_run_that_fails_while_joining_is_resumed(tmp_path, there):
    if there:
        finish(tmp_path / "a")
    (tmp_path / "a.signature.json").unlink(missing_ok=True)
    (tmp_path / "a.signature.json").mkdir()  # cannot be written
    with pytest.raises(InputError, match=r"a\.signature\.json"):
        finish(tmp_path / "a", overwrite=there)
    (tmp_path / "a.signature.json").rmdir()
    finish(tmp_path / "a", resume=True)
    assert (tmp_path / "a").read_text() == "0-0 1-1\n" * 2
    assert names(tmp_path) == ["a", "a.signature.json"]


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/null"])
def test_a_stream_is_no_file(path):
    with pytest.raises(InputError, match=facts(f"{path} … is not a regular file")):
        alignment_parts(Path(path))
