"""The alignments file of a run of one shard: made at the end, kept, replaced."""

from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from fairseq_norm_plugin.recording.alignments import aligned_ids
from tests.facts import facts
from tests.plugin.recording.parts import alignment_writer, names, write


def finish(file, size=2, **options):
    write(alignment_writer(file, size=size, **options), *range(size)).finish()


def test_the_file_and_its_manifest(tmp_path):
    finish(tmp_path / "deep" / "a", a=1)
    assert (tmp_path / "deep" / "a").read_text() == "0-0 1-1\n" * 2
    assert names(tmp_path / "deep") == ["a", "a.manifest.json"]
    assert aligned_ids(tmp_path / "deep" / "a", 0, 1).tolist() == [0, 1]


def test_a_file_is_only_replaced_with_overwrite(tmp_path):
    (tmp_path / "a").write_text("mine")
    for resume in (False, True):
        with pytest.raises(InputError, match=facts("a: already exists … --norm-records-overwrite")):
            alignment_writer(tmp_path / "a", resume=resume)
    assert names(tmp_path) == ["a"]
    writer = alignment_writer(tmp_path / "a", overwrite=True, size=1)
    write(writer, 0)
    assert (tmp_path / "a").read_text() == "mine"
    writer[0].finish()
    assert (tmp_path / "a").read_text() == "0-0 1-1\n"
    with pytest.raises(InputError, match=facts("a.manifest.json: … of another run (different: a)")):
        alignment_writer(tmp_path / "a", size=1, a=2, resume=True)
    finish(tmp_path / "a", size=1, a=2, overwrite=True)
    finish(tmp_path / "a", size=1, a=2, resume=True)
    assert names(tmp_path) == ["a", "a.manifest.json"]


def test_foreign_files_in_the_directory_of_parts_stay(tmp_path):
    writer = alignment_writer(tmp_path / "a", size=1)
    for name in (".x.tmp", "notes"):
        (tmp_path / "a.parts" / name).write_text("mine")
    write(writer, 0).finish()
    assert names(tmp_path / "a.parts") == [".x.tmp", "notes"]


@pytest.mark.parametrize("there", [False, True])
def test_a_run_that_fails_while_merging_is_resumed(tmp_path, there):
    if there:
        finish(tmp_path / "a", a=0)
    (tmp_path / "a.manifest.json").unlink(missing_ok=True)
    (tmp_path / "a.manifest.json").mkdir()  # cannot be written
    with pytest.raises(InputError, match=r"a\.manifest\.json"):
        finish(tmp_path / "a", a=1, overwrite=there)
    (tmp_path / "a.manifest.json").rmdir()
    finish(tmp_path / "a", a=1, resume=not there, overwrite=there)
    assert (tmp_path / "a").read_text() == "0-0 1-1\n" * 2
    finish(tmp_path / "a", a=1, resume=True)
    assert names(tmp_path) == ["a", "a.manifest.json"]


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/null"])
def test_a_stream_is_no_file(path):
    with pytest.raises(InputError, match=facts(f"{path} … is not a regular file")):
        alignment_writer(Path(path))


@pytest.mark.parametrize("name", [".", "/", "here"])
@pytest.mark.parametrize("shards", [1, 2])
def test_a_directory_is_not_the_name_of_a_file(tmp_path, monkeypatch, name, shards):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=facts(f"{name}: this is a directory; give the name of a file")):
        alignment_writer(Path(name), shards=shards)
    assert names(tmp_path) == ["here"]
