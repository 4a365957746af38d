"""``norm-align`` of Parquet, to Parquet, and on Ray: always the lines of a single process with two texts."""

from __future__ import annotations

import logging
import pickle
import sys
from argparse import Namespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alignment_eval.arguments.maps import stated_options
from alignment_eval.extraction.method import AlignmentMethod
from fairseq_norm_plugin.align import on_ray
from fairseq_norm_plugin.align.cli import _parser
from fairseq_norm_plugin.align.on_ray import Job, WindowAligner
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.aligning.spans import LineSpan
from fairseq_norm_plugin.aligning.text import ParallelText
from tests.integration.align.ways import PAPER

LEXICON = (*PAPER[:-2], "--rule", "two-way=0.3", "--lexicon", 2, "--lexicon-pairs", 5)


@pytest.fixture(scope="module")
def corpus(files, tmp_path_factory):
    """The pairs of the text in two Parquet files, with ids."""
    directory = tmp_path_factory.mktemp("parquet") / "corpus.parquet"
    directory.mkdir()
    source, target = (file.read_text(encoding="utf-8").splitlines() for file in files)
    table = pa.table({"id": [f"pair {100 - number}" for number in range(12)], "source": source, "target": target})
    pq.write_table(table[:7], directory / "0.parquet")
    pq.write_table(table[7:], directory / "1.parquet")
    return directory


@pytest.fixture(scope="module")
def ray():
    """Ray, with a cluster on this machine that the commands of the module share."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    with pytest.MonkeyPatch.context() as patched:
        for name, value in (*on_ray.QUIET.items(), ("RAY_worker_niceness", "0")):  # a busy machine runs no nice process
            patched.setenv(name, value)
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.CRITICAL)
        yield ray
        ray.shutdown()


@pytest.mark.parametrize("options", [PAPER, LEXICON], ids=["paper", "lexicon"])
def test_parquet(run, corpus, tmp_path, options):
    expected = run("--confidences", *options).lines
    assert run("--confidences", *options, "--overwrite", text=[corpus]).lines == expected
    done = run(*options, text=[corpus], out=tmp_path / "links.parquet")
    assert done.status == 0, done.err
    found = pq.read_table(tmp_path / "links.parquet").to_pydict()
    assert found["id"] == [f"pair {100 - number}" for number in range(12)]
    for links, confidences, line in zip(found["links"], found["confidences"], expected):
        assert " ".join(f"{link}:{p!r}" for link, p in zip(links.split(), confidences)) == line
    again = run(*options, "--resume", text=[corpus], out=tmp_path / "links.parquet")
    assert (again.status, "12 kept from before" in again.err) == (0, True)
    assert run(*options, text=[corpus], out=tmp_path / "links.parquet").status == 1


def test_bad_usage(run, corpus):
    done = run("--text", "x", text=[corpus])
    assert (done.status, "no text, or more than one" in done.err) == (2, True)
    done = run("--engine", "ray", text=["-"])
    assert (done.status, "--engine ray with standard input" in done.err) == (2, True)
    done = run("--actors", 2)
    assert (done.status, "--actors without --engine ray" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("cpu", "actors", "resources", "expected"),
    [
        (True, None, {"CPU": 8, "GPU": 2}, (8, {"num_cpus": 1})),
        (False, None, {"CPU": 8, "GPU": 2}, (2, {"num_gpus": 1})),
        (False, 5, {"CPU": 8, "GPU": 2}, (5, {"num_gpus": 1 / 3})),
        (False, 3, {"CPU": 8}, (3, {"num_cpus": 1})),
    ],
)
def test_actors(cpu, actors, resources, expected):
    assert on_ray._actors(Namespace(cpu=cpu, actors=actors), resources) == expected


def test_ray_is_not_installed(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    done = run(*PAPER, "--engine", "ray")
    assert (done.status, "--engine ray: the package ray cannot be imported" in done.err) == (1, True)


def test_two_actors(run, corpus, tmp_path, ray):
    """A lexicon is counted in the first process; the actors give the same lines from Parquet, in any order."""
    expected = run("--confidences", *LEXICON, "--window", 3).lines
    options = ("--engine", "ray", "--actors", 2, "--window", 3, "--confidences", "--overwrite")
    done = run(*LEXICON, *options, text=[corpus])
    assert done.lines == expected, done.err
    assert "the lexicon is counted first, in this process, on 5 pairs" in done.err
    assert "Ray" not in done.err
    assert ray.is_initialized()
    done = run(*LEXICON, "--engine", "ray", "--actors", 3, "--overwrite")
    assert (done.status, "--actors 3: the cluster has 2 processors" in done.err) == (2, True)


def test_an_actor_that_cannot_work(run, tmp_path, ray, monkeypatch):
    """It does not see the text: one sentence."""
    monkeypatch.setattr(
        "fairseq_norm_plugin.aligning.text.line_spans", lambda paths, ends: [LineSpan((("/nowhere/text", 0, 1),))]
    )
    done = run(*PAPER, "--engine", "ray", "--actors", 1)
    assert (done.status, "an actor failed: /nowhere/text: cannot read the file (No such" in done.err) == (1, True)
    assert not (tmp_path / "out.pharaoh").exists()


def test_a_pair_that_fails_does_not_harm_its_window(run, checkpoint, data, files, tmp_path):
    """A word whose embedding is not a number stops a single process; a window loses only the pair that has it."""
    lines = [file.read_text(encoding="utf-8").splitlines() for file in files]
    for side, word in zip(lines, ("ba", "ab")):
        side.insert(4, word)
    texts = [tmp_path / "source", tmp_path / "target"]
    for text, side in zip(texts, lines):
        text.write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    args = _parser().parse_args(
        ["--path", str(checkpoint), "--data", str(data), "--bpe", "none", "--cpu", "-o", "none", *map(str, PAPER)]
    )
    aligner = WindowAligner(args, AlignmentMethod(stated_options(args)), None)
    maps = Direction.maps

    def failing(self, pairs, *what):
        if any(len(source.ids) == 2 and len(target.ids) == 2 for source, target in pairs.values()):
            raise ValueError("the map holds NaN")
        return maps(self, pairs, *what)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Direction, "maps", failing)
        (span,) = ParallelText(list(map(str, texts))).spans([13])
        (content,) = aligner({"job": [pickle.dumps(Job(20, span))]})["window"]
    window = pickle.loads(content)
    assert [line.id for line in window.lines] == list(range(20, 33))
    assert [line.status for line in window.lines if not line.ok] == ["failed: the map holds NaN"]
    found = [line.line for line in window.lines]
    assert found.pop(4) == ""
    assert found == run(*PAPER).lines
    assert window.tokens["source"] > 12
