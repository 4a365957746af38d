"""Runs and their records or alignments: shards, a second run, other options, killed runs."""

import contextlib
import itertools
import multiprocessing
import os
import re
import signal

import numpy as np
import pytest

from alignment_eval import commands as cli
from alignment_eval.errors import InputError
from alignment_eval.records import Records
from fairseq_norm_plugin.tasks.norm import TranslationNormTask

PART = "part-00000-of-00001-00000.parquet"


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


@pytest.mark.parametrize(
    ("mode", "shards", "batching"),
    [
        (["--score-reference"], 2, ["--batch-size", 5]),  # batches of 5, 5 and 2
        (["--beam", 2, "--nbest", 2], 3, ["--max-tokens", 60]),
        (["--score-reference"], 3, ["--batch-size", 7]),  # two batches: the third shard is empty
    ],
    ids=str,
)
def test_shards_together_are_the_single_run(norm, tmp_path, capsys, mode, shards, batching):
    def run(name, *extra):
        outputs = ["--norm-records", tmp_path / f"{name}.records", "--norm-alignments", tmp_path / name]
        return norm(*mode, *batching, "--norm-part-sentences", 4, *outputs, *extra)

    run("single")
    merge, seen = ["merge", str(tmp_path / "a.parts"), "-o", str(tmp_path / "a")], []
    for number in reversed(range(shards)):  # some shards are missing: no number from the others
        capsys.readouterr()
        assert cli.main(merge) == 1
        missing = "are missing" if seen else "no parts"
        assert missing in capsys.readouterr().err
        with pytest.raises(InputError, match=r"missing \(shards without any part: " if seen else "no parts"):
            Records(tmp_path / "a.records")
        with contextlib.suppress(SystemExit):  # an empty shard ends its process
            seen += [id_ for id_, _, _ in run("a", *shard(number, shards)).lines("S")]
    assert sorted(seen) == list(range(12))
    assert_same(by_id(tmp_path / "a.records"), by_id(tmp_path / "single.records"))
    assert not (tmp_path / "a").exists()
    assert cli.main(merge) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "single").read_bytes()
    assert (tmp_path / "a").read_text().count("\n") == 12


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (["--batch-size", 3], "max_sentences"),
        (["--batch-size", 4, *shard(1, 2)], "shards"),
    ],
)
def test_shards_of_other_batches_are_refused(norm, tmp_path, other, named):
    norm("--batch-size", 4, "--norm-records", tmp_path / "r", *shard(0, 3))
    with pytest.raises(InputError, match=rf"another run \(.*{named}\)"):
        norm("--norm-records", tmp_path / "r", *shard(1, 3), *other)


def test_a_second_run_is_refused_kept_or_replaces(norm, tmp_path):
    part = tmp_path / "r" / PART
    options = ["--score-reference", "--norm-records", tmp_path / "r"]
    norm(*options)
    before = part.stat().st_mtime_ns
    with pytest.raises(InputError, match=r"holds parts.* --norm-records-resume.*--norm-records-overwrite"):
        norm(*options)
    with pytest.raises(SystemExit) as end:
        norm(*options, "--norm-records-resume")
    assert (end.value.code, part.stat().st_mtime_ns) == (0, before)
    norm(*options, "--norm-records-overwrite")
    assert part.stat().st_mtime_ns > before


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (["--beam", 3, "--norm-records-overwrite"], "generation.beam"),
        (["--score-reference"], "generation.score_reference"),
        (["--gen-subset", "test1", "--norm-records-resume"], "data, size, subset"),  # with fewer sentences
        (["--norm-record-layers", 1, "--left-pad-source"], "layers, .*left_pad"),
    ],
)
def test_other_options_are_refused_and_named(norm, recorded, other, named):
    directory, before = recorded
    with pytest.raises(InputError, match=rf"{PART}: .*another run \(.*{named}\)"):
        norm("--norm-records", directory, *other)
    assert sorted(path.name for path in directory.iterdir()) == [PART]
    assert (directory / PART).read_bytes() == before


@pytest.fixture(scope="module")
def recorded(norm, tmp_path_factory):
    directory = tmp_path_factory.mktemp("recorded") / "r"
    norm("--norm-records", directory)
    return directory, (directory / PART).read_bytes()


def killed(norm, batch, *options):
    """Run fairseq-generate in a fork of this process that is killed in its batch ``batch``; its exit code."""

    def run():
        step, batches = TranslationNormTask.inference_step, itertools.count(1)

        def stopping(*args, **kwargs):
            if next(batches) == batch:
                os.kill(os.getpid(), signal.SIGKILL)
            return step(*args, **kwargs)

        TranslationNormTask.inference_step = stopping
        norm(*options)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join()
    return process.exitcode


def test_a_killed_run_is_continued(norm, tmp_path, capsys):
    options = ["--beam", 2, "--nbest", 2, "--batch-size", 3]
    outputs = ["--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a", "--norm-part-sentences", 3]
    norm(*options, "--norm-records", tmp_path / "whole", "--norm-alignments", tmp_path / "expected")
    assert killed(norm, 3, *options, *outputs) == -signal.SIGKILL
    assert not (tmp_path / "a").exists()
    with pytest.raises(InputError, match=r"sentences .*\(6 in total\) are missing.* resume"):
        Records(tmp_path / "r")
    with pytest.raises(InputError, match=r"r: holds parts"):
        norm(*options, *outputs)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "r").glob("part-*")}
    # the links lose a part that the records have: the moment between two renames
    (tmp_path / "a.parts" / PART.replace("0.parquet", "1.parquet")).unlink()
    capsys.readouterr()
    output = norm(*options, *outputs, "--norm-records-resume")
    assert re.search(r"shard 0 of 1: 9 sentences in .* sentences/s, 3 kept from before", capsys.readouterr().err)
    assert len({id_ for id_, _, _ in output.lines("H")}) == 9
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert_same(by_id(tmp_path / "r"), by_id(tmp_path / "whole"))
    assert (tmp_path / "a").read_text() == (tmp_path / "expected").read_text()
    assert not (tmp_path / "a.parts").exists()
