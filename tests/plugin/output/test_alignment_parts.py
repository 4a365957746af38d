"""The alignments file of a run of one shard: made at the end, kept, replaced."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from alignment_eval.records.manifest import Manifest
from fairseq_norm_plugin.output.alignment_parts import AlignmentParts, aligned_ids
from fairseq_norm_plugin.output.shard_parts import ShardParts
from tests.facts import facts
from tests.forks import die, forked
from tests.plugin.output.parts import alignment_parts, names, sentence


def finish(file, size=2, **options):
    writer = alignment_parts(file, size=size, **options)
    writer.write([sentence(id_) for id_ in range(size)])
    writer.finish()
    return writer


def test_the_file_and_its_manifest(tmp_path):
    finish(tmp_path / "a", a=1)
    assert (tmp_path / "a").read_text() == "0-0 1-1\n" * 2
    assert names(tmp_path) == ["a", "a.manifest.json"]
    assert aligned_ids(tmp_path / "a", 0, 1).tolist() == [0, 1]


def test_a_finished_run_is_resumed_by_doing_nothing(tmp_path):
    finish(tmp_path / "a", a=1)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    writer = alignment_parts(tmp_path / "a", size=2, a=1, resume=True)
    assert writer.manifest.finished
    writer.write([sentence(0, status="skipped")])
    writer.finish()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_a_finished_run_is_not_taken_for_another(tmp_path):
    finish(tmp_path / "a", a=1)
    with pytest.raises(InputError, match=facts("a.manifest.json: … of another run (different: a)")):
        alignment_parts(tmp_path / "a", size=2, a=2, resume=True)
    with pytest.raises(InputError, match=r"a: already exists; .* pass --norm-records-overwrite$"):
        alignment_parts(tmp_path / "a", size=2, a=1)
    (tmp_path / "a").write_text("changed")
    with pytest.raises(InputError, match=r"a: already exists; .* pass --norm-records-overwrite$"):
        alignment_parts(tmp_path / "a", size=2, a=1, resume=True)
    assert aligned_ids(tmp_path / "a", 0, 1).tolist() == []
    assert (tmp_path / "a").read_text() == "changed"
    finish(tmp_path / "a", a=2, overwrite=True)
    assert alignment_parts(tmp_path / "a", size=2, a=2, resume=True).manifest.finished


def test_an_alignments_file_is_not_lost(tmp_path):
    (tmp_path / "a").write_text("mine")
    for resume in (False, True):
        with pytest.raises(InputError, match="a: already exists; choose another path or pass --norm-records-overwrite"):
            alignment_parts(tmp_path / "a", resume=resume)
    assert names(tmp_path) == ["a"]
    writer = alignment_parts(tmp_path / "a", overwrite=True, size=1)
    writer.write([sentence(0)])
    assert (tmp_path / "a").read_text() == "mine"
    writer.finish()
    assert (tmp_path / "a").read_text() == "0-0 1-1\n"
    assert names(tmp_path) == ["a", "a.manifest.json"]


def test_what_is_foreign_in_the_directory_of_parts_stays(tmp_path):
    writer = alignment_parts(tmp_path / "a", size=1)
    for name in (".x.tmp", "notes"):
        (tmp_path / "a.parts" / name).write_text("mine")
    writer.write([sentence(0)])
    writer.finish()
    assert names(tmp_path / "a.parts") == [".x.tmp", "notes"]


STEPS = ["the manifest", "the file", "the parts"]


def last(function):
    """``function``, and then the end of the process."""

    def run(self, *given):
        function(self, *given)
        if function is not WRITE or len(given) > 1:
            die()

    return run


WRITE = Manifest.write


def killed_run(file, after):
    if after == "the manifest":
        Manifest.write = last(WRITE)
    elif after == "the file":
        AlignmentParts._remove = lambda *_: die()
    else:
        ShardParts._remove = last(ShardParts._remove)
    writer = alignment_parts(file, size=2)
    writer.write([sentence(0), sentence(1)])
    writer.finish()


@pytest.mark.parametrize("killed_after", STEPS)
def test_killed_at_the_end(tmp_path, killed_after):
    """Whatever the last steps left, the same run resumed has the same end."""
    assert forked(lambda: killed_run(tmp_path / "a", killed_after)) == -signal.SIGKILL
    assert (tmp_path / "a").exists() == (killed_after != "the manifest")
    finish(tmp_path / "a", resume=True)
    assert (tmp_path / "a").read_text() == "0-0 1-1\n" * 2
    assert names(tmp_path) == ["a", "a.manifest.json"]


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/null"])
def test_no_file(path):
    with pytest.raises(InputError, match=facts(f"{path} … is not a regular file")):
        alignment_parts(Path(path))


@pytest.mark.parametrize("name", [".", "..", "/", "here"])
@pytest.mark.parametrize("shards", [1, 2])
def test_a_directory_is_not_the_name_of_a_file(tmp_path, monkeypatch, name, shards):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    for call in (lambda: alignment_parts(Path(name), shards=shards), lambda: aligned_ids(Path(name), 0, shards)):
        with pytest.raises(InputError, match=facts(f"{name}: this is a directory; give the name of a file")):
            call()
    assert names(tmp_path) == ["here"]
