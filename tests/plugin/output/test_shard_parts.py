"""Parts of a shard: begun, resumed, replaced, killed; one writer a shard."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from alignment_eval.errors import InputError
from alignment_eval.records.manifest import read_manifests
from alignment_eval.records.store import Records
from fairseq_norm_plugin.output.alignment_parts import parts_directory
from fairseq_norm_plugin.output.shard_parts import written_ids
from tests.facts import facts
from tests.forks import die, forked
from tests.plugin.output.parts import MANIFEST, PART, alignment_parts, names, record_parts, sentence


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
    with pytest.raises(InputError, match=facts("begun (1 parts) … --norm-records-resume … --norm-records-overwrite")):
        make(place, shards=2, a=1)
    with pytest.raises(InputError, match=facts("of another run (different: a, b)")):
        make(place, shards=2, a=2, b=3, overwrite=True)
    writer = make(place, shards=2, a=1, resume=True)
    writer.write([sentence(1), sentence(2), sentence(0, status="skipped")])
    writer.finish()
    assert written_ids(directory, content, 0, 2).tolist() == [0, 1, 2]
    before = {path: path.stat().st_mtime_ns for path in directory.iterdir()}
    with pytest.raises(InputError, match=facts("this shard is already finished")):
        make(place, shards=2, a=1)
    writer = make(place, shards=2, a=1, resume=True)
    assert writer.manifest.finished
    assert writer.manifest.skipped == 1
    writer.write([sentence(1)])
    writer.finish()
    assert {path: path.stat().st_mtime_ns for path in directory.iterdir()} == before
    writer = make(place, shards=2, a=1, overwrite=True)
    assert {path: path.stat().st_mtime_ns for path in directory.glob("[!.]*")} == before  # beside a lock
    writer.write([sentence(0)])
    writer.finish()
    assert written_ids(directory, content, 0, 2).tolist() == [0]
    assert len(names(directory)) == 2


def test_an_abandoned_part_leaves_nothing(tmp_path):
    writer = record_parts(tmp_path)
    writer.write([sentence(0)])
    writer.abandon()
    assert names(tmp_path) == []


def test_a_directory_that_was_there_stays(tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("there", "new"):
        writer = record_parts(tmp_path / name)
        writer.write([sentence(0)])
        writer.abandon()
    assert names(tmp_path) == ["there"]


def killed_run(directory, when):
    """Write two sentences, in a part each if ``when`` is "commit", and be killed."""
    writer = record_parts(directory, size=2)
    for id_ in range(2):
        writer.write([sentence(id_)])
        if when == "commit":
            writer.commit()
    die()


@pytest.mark.parametrize(("when", "left"), [("write", 2), ("commit", 4)])
@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
def test_what_a_killed_run_left_is_removed(tmp_path, when, left, options):
    assert forked(lambda: killed_run(tmp_path, when)) == -signal.SIGKILL
    assert len(names(tmp_path)) == left  # the lock, and the half part or two whole ones and their manifest
    (tmp_path / ".part-00000-of-00001-00000.parquet.tmp").write_text("foreign")
    (tmp_path / PART.format(7)).write_text("whole, but not in a manifest")
    if when == "commit" and not options:
        with pytest.raises(InputError, match="already begun"):
            record_parts(tmp_path, size=2)
        return
    writer = record_parts(tmp_path, size=2, **options)
    writer.write([sentence(0), sentence(1)])
    writer.finish()
    assert [s.id for s in Records(tmp_path)] == [0, 1]
    kept = [".part-00000-of-00001-00000.parquet.tmp", MANIFEST, PART.format(7)]
    parts = [PART.format(0), PART.format(1)] if when == "commit" and "resume" in options else [PART.format(0)]
    assert names(tmp_path) == sorted(kept + parts)


@pytest.mark.parametrize("make", [record_parts, alignment_parts], ids=["records", "alignments"])
@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
def test_one_writer_a_shard(tmp_path, make, options):
    """The second is refused before it touches anything; the first ends as if there had been no second."""
    first = make(tmp_path / "x", size=2)
    with pytest.raises(InputError, match="another process is writing it"):
        make(tmp_path / "x", size=2, **options)
    first.write([sentence(0)])
    first.commit()
    with pytest.raises(InputError, match=r"another process is writing it|already begun"):
        make(tmp_path / "x", size=2, **options)
    first.write([sentence(1)])
    first.finish()
    if make is record_parts:
        assert [s.id for s in Records(tmp_path / "x")] == [0, 1]
    else:
        assert (tmp_path / "x").read_text() == "0-0 1-1\n" * 2


def test_shards_are_written_side_by_side(tmp_path):
    writers = [record_parts(tmp_path, size=2, shard=shard, shards=2) for shard in range(2)]
    for shard in range(2):
        writers[shard].write([sentence(shard)])
    for shard in range(2):
        writers[shard].finish()
    assert sorted(s.id for s in Records(tmp_path)) == [0, 1]


@pytest.mark.parametrize("make", [record_parts, alignment_parts], ids=["records", "alignments"])
@pytest.mark.parametrize("name", ["../../victim.txt", "/tmp/victim-of-a-manifest"])
def test_a_manifest_cannot_name_other_files(tmp_path, make, name):
    """Neither is read nor deleted what a manifest of another's making calls its part."""
    place = tmp_path / "a" / "b"
    directory = place if make is record_parts else parts_directory(place)
    writer = make(place, shards=2)
    writer.write([sentence(0)])
    writer.commit()
    writer.abandon()
    victim = directory / name
    victim.write_text("precious")
    (manifest,) = read_manifests(directory, writer.manifest.content)
    replace(manifest, parts=(replace(manifest.parts[0], name=name),)).write(directory)
    try:
        for options in ({"overwrite": True}, {"resume": True}):
            with pytest.raises(InputError, match=r"parts\[0\].name is '"):
                make(place, shards=2, **options)
        assert victim.read_text() == "precious"
    finally:
        victim.unlink()


def test_another_size_is_another_run(tmp_path):
    writer = record_parts(tmp_path, size=3)
    writer.write([sentence(2)])
    writer.commit()
    writer.abandon()
    with pytest.raises(InputError, match=facts("of another run (different: size)")):
        record_parts(tmp_path, size=2, resume=True)


def test_parts_of_unknown_sentences(tmp_path):
    writer = record_parts(tmp_path, size=3)
    writer.write([sentence(2)])
    writer.commit()
    writer.abandon()
    replace(writer.manifest, size=2).write(tmp_path)
    for read in (lambda: written_ids(tmp_path, "records", 0, 1), lambda: record_parts(tmp_path, size=2, resume=True)):
        with pytest.raises(InputError, match=facts("sentences 2 … 0 to 1")):
            read()


def test_an_empty_shard_is_a_finished_one(tmp_path):
    for shard in range(2):
        writer = record_parts(tmp_path, size=1, shard=shard, shards=2)
        writer.write([sentence(0)] if shard else [])
        writer.finish()
    assert len(names(tmp_path)) == 3
    assert [s.id for s in Records(tmp_path)] == [0]


def test_a_file_in_the_place_of_the_directory(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match=facts("f: … is a file … --norm-records")):
        record_parts(tmp_path / "f")
