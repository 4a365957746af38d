"""Runs killed before any of their file operations: the next run has the same output, and nothing else is left."""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from alignment_eval.files import OwnFiles, new_directory, write_lines
from tests.forks import die, forked
from tests.plugin.output.parts import alignment_parts, record_parts, sentence

#: What Python reports, before it happens, of operations on files.
OPERATIONS = {"open", "fcntl.flock", "os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree"}
OWN = OwnFiles("tabulate", re.compile(r"table\.(csv|json)"), mark="table.json")


def in_two_parts(writer):
    writer.write([sentence(0), sentence(1)])
    writer.commit()
    writer.write([sentence(2), sentence(3)])
    writer.finish()


def alignments(directory):
    in_two_parts(alignment_parts(directory / "a", size=4, resume=True))


def records(directory):
    in_two_parts(record_parts(directory / "records", size=4, resume=True))


def one_file(directory):
    write_lines(directory / "file", ["old"])
    write_lines(directory / "file", ["new"] * 3)


def one_directory(directory):
    with new_directory(directory / "out", True, OWN) as made:
        for name in ("table.csv", "table.json"):
            (made / name).write_text("new")


def killed(run, directory, before):
    """Run in a copy of this process, which is killed before that operation; whether there were so many."""
    numbers = itertools.count()

    def hook(event, given):
        ours = event == "fcntl.flock" or str(given[0] if given else "").startswith(str(directory))
        if event in OPERATIONS and ours and next(numbers) == before:
            die()

    def copy():
        sys.addaudithook(hook)
        run(directory)
        os._exit(0)

    status = forked(copy)
    assert status in (0, -signal.SIGKILL)
    return status != 0


def content(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("run", [alignments, records, one_file, one_directory])
def test_every_operation(tmp_path, run, step):
    """Whatever was there before, a file or directory is complete or as it was; afterwards all is as if never killed."""
    whole = tmp_path / "whole"
    whole.mkdir()
    run(whole)
    kills = 0
    for before in itertools.count(0, step):
        directory = tmp_path / str(before)
        directory.mkdir()
        if not killed(run, directory, before):
            break
        kills += 1
        if run is one_file:
            assert not (directory / "file").exists() or content(directory)[Path("file")] in (b"old\n", b"new\n" * 3)
        run(directory)
        assert content(directory) == content(whole), before
    assert content(directory) == content(whole)
    assert kills > 5 // step
    print(f"{run.__name__}: {kills} kills")
