"""Word alignments of a corpus in shards: the same file as that of one run, whatever was killed in between."""

from __future__ import annotations

import contextlib

import pytest

from alignment_eval import cli

ALIGNMENTS = "--norm-alignments"


def shard(number, shards):
    return ["--distributed-world-size", shards, "--distributed-rank", number]


def run_shard(norm, *options):
    """A shard in this process; an empty one ends it."""
    with contextlib.suppress(SystemExit):
        norm(*options)


@pytest.mark.parametrize("mode", [["--beam", 2], ["--score-reference"]], ids=["generate", "score"])
@pytest.mark.parametrize(
    ("shards", "batching"),
    [
        (2, ["--batch-size", 5]),  # batches of 5, 5 and 2
        (3, ["--max-tokens", 60]),
        (3, ["--batch-size", 7]),  # two batches: the third shard is empty
    ],
    ids=str,
)
def test_merged_shards_are_the_single_run(norm, tmp_path, capsys, mode, shards, batching):
    options = [*mode, *batching, "--norm-part-sentences", 4, ALIGNMENTS]
    norm(*options, tmp_path / "single")
    for number in reversed(range(shards)):
        capsys.readouterr()
        assert cli.main(["merge", str(tmp_path / "a.parts"), "-o", str(tmp_path / "a")]) == 1
        missing = "are missing" if (tmp_path / "a.parts").exists() else "no such directory"
        assert missing in capsys.readouterr().err
        run_shard(norm, *options, tmp_path / "a", *shard(number, shards))
    assert not (tmp_path / "a").exists()
    assert cli.main(["merge", str(tmp_path / "a.parts"), "-o", str(tmp_path / "a")]) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "single").read_bytes()
    assert (tmp_path / "a").read_text().count("\n") == 12
