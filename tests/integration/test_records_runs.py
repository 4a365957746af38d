"""Runs and their records directory: shards, a second run, other options, killed runs."""

from __future__ import annotations

import signal
import sys

import numpy as np
import pytest

from alignment_eval import cli
from alignment_eval.errors import InputError
from alignment_eval.records import Records

EXTRACT = ["--kind", "attn_n", "--layer", "0", "--setting", "awo", "--rule", "kobayashi2020"]
PART = "part-00000-of-00001.parquet"
# A whole process that ends in the middle of its second batch, in the way that {end} says.
DYING = """
import os, signal, sys
from fairseq_cli import generate
from fairseq_norm_plugin.task import TranslationNormTask

step = TranslationNormTask.inference_step
batches = []

def dying_step(self, *args, **kwargs):
    batches.append(1)
    if len(batches) == 2:
        {end}
    return step(self, *args, **kwargs)

TranslationNormTask.inference_step = dying_step
generate.cli_main()
"""
ENDS = {
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "raising": "raise RuntimeError('the disk is full')",
}


@pytest.fixture
def dying(command, data, checkpoint):
    def run(end, *extra):
        words = [data, "--path", checkpoint, "--user-dir", "fairseq_norm_plugin", "--task", "translation_norm"]
        program = DYING.format(end=ENDS[end])
        return command(sys.executable, "-c", program, *words, "--cpu", "--batch-size", 3, *extra, check=False)

    return run


def shard(number, shards):
    return ["--distributed-world-size", shards, "--distributed-rank", number]


def by_id(directory):
    return {(sentence.id, sentence.rank): sentence for sentence in Records(directory)}


def assert_same(records, expected):
    assert sorted(records) == sorted(expected)
    for key, sentence in expected.items():
        assert records[key].target.tokens == sentence.target.tokens
        assert records[key].score == sentence.score
        for name, array in sentence.arrays.items():
            np.testing.assert_array_equal(records[key].arrays[name], array)


@pytest.mark.parametrize("mode", [["--beam", 2, "--nbest", 2], ["--score-reference"]], ids=["generate", "score"])
def test_shards_together_are_the_single_run(norm, tmp_path, capsys, mode):
    options = [*mode, "--batch-size", 3, "--norm-records"]
    norm(*options, tmp_path / "single")
    seen = []
    for number in range(3):
        if number:  # some shards are missing: no number from the others
            with pytest.raises(InputError, match=r"shards .*2 of 3 are missing: expected a part"):
                Records(tmp_path / "shards")
        seen += [id_ for id_, _, _ in norm(*options, tmp_path / "shards", *shard(number, 3)).lines("S")]
    assert sorted(seen) == list(range(12))
    assert_same(by_id(tmp_path / "shards"), by_id(tmp_path / "single"))
    (tmp_path / "shards" / "part-00001-of-00003.parquet").unlink()
    capsys.readouterr()
    assert cli.main(["extract", str(tmp_path / "shards"), *EXTRACT]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "shards 1 of 3 are missing" in said.err


def test_more_shards_than_batches(norm, tmp_path):
    options = ["--gen-subset", "test2", "--norm-records"]
    norm(*options, tmp_path / "single")
    norm(*options, tmp_path / "shards", *shard(0, 3))
    for number in (1, 2):
        with pytest.raises(SystemExit) as end:
            norm(*options, tmp_path / "shards", *shard(number, 3))
        assert end.value.code == 0
    assert len(list((tmp_path / "shards").iterdir())) == 3
    assert_same(by_id(tmp_path / "shards"), by_id(tmp_path / "single"))


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (["--batch-size", 3], "max_sentences"),
        (["--batch-size", 4, *shard(1, 2)], "shards"),
        (["--batch-size", 4, "--seed", 7], "seed"),
    ],
)
def test_shards_of_other_batches_are_refused(norm, tmp_path, other, named):
    norm("--batch-size", 4, "--norm-records", tmp_path / "r", *shard(0, 3))
    with pytest.raises(InputError, match=rf"is of another run \(its {named} differ\)"):
        norm("--norm-records", tmp_path / "r", *shard(1, 3), *other)


def test_skipped_sentences_stand_in_one_shard(norm, tmp_path):
    options = ["--gen-subset", "test5", "--max-source-positions", 60, "--skip-invalid-size-inputs-valid-test"]
    for number in range(2):
        norm(*options, "--batch-size", 2, "--norm-records", tmp_path / "r", *shard(number, 2))
    assert [s.id for s in sorted(Records(tmp_path / "r"), key=lambda s: s.id)] == list(range(6))
    assert [s.id for s in Records(tmp_path / "r") if not s.ok] == [3]


def test_a_second_run_is_refused_kept_or_replaces(norm, tmp_path):
    directory, part = tmp_path / "r", tmp_path / "r" / PART
    options = ["--score-reference", "--norm-records", directory]
    norm(*options)
    first = by_id(directory)
    before = part.stat()
    with pytest.raises(InputError, match="--norm-records-resume to keep it, --norm-records-overwrite to replace it"):
        norm(*options)
    with pytest.raises(SystemExit) as end:
        norm(*options, "--norm-records-resume")
    assert end.value.code == 0
    assert (part.stat().st_mtime_ns, part.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    norm(*options, "--norm-records-overwrite")
    assert part.stat().st_mtime_ns > before.st_mtime_ns
    assert [path.name for path in directory.iterdir()] == [PART]
    assert_same(by_id(directory), first)
    norm("--score-reference", "--norm-records", tmp_path / "new", "--norm-records-resume")  # nothing there yet
    assert_same(by_id(tmp_path / "new"), first)


def test_resuming_gives_the_alignments_of_the_kept_records(norm, tmp_path):
    options = ["--norm-records", tmp_path / "r", "--norm-alignments"]
    norm(*options, tmp_path / "first")
    with pytest.raises(SystemExit) as end:
        norm(*options, tmp_path / "second", "--norm-records-resume")
    assert end.value.code == 0
    assert (tmp_path / "second").read_text() == (tmp_path / "first").read_text()


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (["--beam", 3], "generation.beam"),
        (["--beam", 3, "--norm-records-resume"], "generation.beam"),
        (["--beam", 3, "--norm-records-overwrite"], "generation.beam"),
        (["--score-reference"], "generation.score_reference"),
        (["--gen-subset", "test4"], "data, subset"),
        (["--norm-records-dtype", "float16"], "dtype"),
        (["--norm-record-layers", 1, "--left-pad-source"], "layers, left_pad"),
    ],
)
def test_other_options_are_refused_and_named(norm, recorded, other, named):
    directory, before = recorded
    with pytest.raises(InputError, match=rf"{PART}: is of another run \(its {named} differ\)"):
        norm("--norm-records", directory, *other)
    assert [path.name for path in directory.iterdir()] == [PART]
    assert (directory / PART).read_bytes() == before


@pytest.fixture(scope="module")
def recorded(norm, tmp_path_factory):
    directory = tmp_path_factory.mktemp("recorded") / "r"
    norm("--norm-records", directory)
    return directory, (directory / PART).read_bytes()


def test_another_seed_is_another_sample(norm, tmp_path):
    options = ["--sampling", "--beam", 2, "--nbest", 2, "--norm-records", tmp_path / "r"]
    norm(*options, "--seed", 1)
    with pytest.raises(InputError, match=r"is of another run \(its seed differ\)"):
        norm(*options, "--seed", 2, "--norm-records-resume")


def test_another_model_is_refused(norm, trained, recorded):
    with pytest.raises(InputError, match=r"is of another run \(its model differ\)"):
        norm("--norm-records", recorded[0], path=trained("second", seed=2))


def test_a_killed_run_leaves_no_part(dying, norm, tmp_path):
    directory = tmp_path / "r"
    options = ["--norm-records", directory, "--norm-alignments", tmp_path / "a"]
    result = dying("killed", *options)
    assert result.returncode == -signal.SIGKILL, result.stderr[-3000:]
    assert not (tmp_path / "a").exists()
    assert [path.name for path in directory.iterdir()] == [f".{PART}.tmp"]
    with pytest.raises(InputError, match=r"no record parts .* was it killed"):
        Records(directory)
    norm(*options)
    assert [path.name for path in directory.iterdir()] == [PART]
    assert len(by_id(directory)) == 12


def test_a_failing_run_keeps_the_part_that_it_was_to_replace(dying, norm, tmp_path):
    directory = tmp_path / "r"
    norm("--norm-records", directory)
    before = (directory / PART).read_bytes()
    result = dying("raising", "--norm-records", directory, "--norm-records-overwrite")
    assert result.returncode == 1
    assert result.stderr.endswith("RuntimeError: the disk is full\n")
    assert [path.name for path in directory.iterdir()] == [PART]
    assert (directory / PART).read_bytes() == before


def test_a_file_in_the_place_of_the_directory(norm, tmp_path):
    (tmp_path / "r").write_text("mine")
    with pytest.raises(InputError, match="r: is a file: expected a directory for --norm-records"):
        norm("--norm-records", tmp_path / "r", "--norm-records-overwrite")
    assert (tmp_path / "r").read_text() == "mine"
