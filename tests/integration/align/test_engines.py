"""``norm-align`` of Parquet, to Parquet, and on Ray: always the lines of a single process with two texts."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import sys
from argparse import Namespace
from collections import Counter
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alignment_eval.arguments.maps import stated_method
from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.align import on_ray
from fairseq_norm_plugin.align.cli import _parser
from fairseq_norm_plugin.align.on_ray import AlignedWindow, Job, WindowAligner, _checked
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.aligning.spans import LineSpan
from fairseq_norm_plugin.aligning.text import ParallelText
from fairseq_norm_plugin.output.alignment_parts import AlignmentLine
from tests.facts import facts, says
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
        try:
            ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.CRITICAL)
        except Exception as error:  # a bare one
            if "timed out during startup" not in str(error):
                raise
            ray.shutdown()
            pytest.skip("the machine is too busy: Ray gives its own node 30 s to start")
        # Ray sets it, and what is started with another one is no copy of a process that has imported torch
        os.environ.pop("PYTHONBREAKPOINT", None)
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


def test_more_actors_than_this_machine_has_processors():
    with pytest.raises(UsageError, match=r"--actors 100000: this machine has [0-9]+ processors"):
        on_ray._connect(SimpleNamespace(__version__="2"), Namespace(ray_address=None, actors=100_000))


def test_the_environment_stays_as_it_is(monkeypatch):
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    monkeypatch.delenv("PYTHONBREAKPOINT")
    with on_ray._kept_breakpoint():
        os.environ["PYTHONBREAKPOINT"] = "ray.util.rpdb._driver_set_trace"
    assert "PYTHONBREAKPOINT" not in os.environ


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
    assert "actors work" not in done.err
    done = run(*PAPER, "--engine", "ray", "--actors", 2, "--overwrite")
    assert done.lines == run(*PAPER, "--overwrite").lines
    assert "only 1 of 2 actors work, one for each window of 10000 pairs" in done.err
    assert ray.is_initialized()
    done = run(*LEXICON, "--engine", "ray", "--actors", 3, "--overwrite")
    assert (done.status, "--actors 3: the cluster has 2 processors" in done.err) == (2, True)


@pytest.mark.parametrize("prefix", ["", "ray://"])
def test_a_cluster_that_cannot_be_reached(prefix):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"{prefix}127.0.0.1:{server.getsockname()[1]}"
        on_ray._check_listens(address)
    with pytest.raises(InputError, match=facts(f"--ray-address {address}: … cluster … refused … ray status")):
        on_ray._connect(SimpleNamespace(__version__="2"), Namespace(ray_address=address, actors=None))


def test_actors_that_die(ray):
    for error, text in (
        (ray.exceptions.ActorDiedError(), "an actor died 4 times … fewer --actors … --max-tokens … --window"),
        (ray.exceptions.RayError("x\ny"), "an actor failed: RayError: y"),
    ):
        with pytest.raises(InputError, match=facts(text)), on_ray._errors(ray):
            raise error


def answer(aligner, job):
    """What an actor answers."""
    (content,) = aligner({"job": [pickle.dumps(job)]})["window"]
    return pickle.loads(content)


@pytest.fixture
def aligner(checkpoint, data):
    """What an actor is, in this process."""
    words = ["--path", checkpoint, "--data", data, "--bpe", "none", "--cpu", "-o", "none", *PAPER]
    args = _parser().parse_args(list(map(str, words)))
    return WindowAligner(args, stated_method(args, None, 0), None)


def test_an_actor_that_cannot_work(aligner, tmp_path):
    lost = answer(aligner, Job(0, LineSpan((("/nowhere/text", 0, 1),))))
    with pytest.raises(InputError, match=facts("an actor failed: /nowhere/text: cannot read the file (No such")):
        _checked(lost)
    aligner._args.path = str(tmp_path / "none.pt")
    del aligner.__dict__["_directions"]
    assert says(str(answer(aligner, Job(0, LineSpan(())))), "an actor failed: … none.pt")


def test_a_window_that_fails_whole():
    lines = [AlignmentLine(id_, "", "failed: no map") for id_ in (3, 4)]
    with pytest.raises(InputError, match=facts("none of pairs 3 to 4, from 0, could be aligned: no map")):
        _checked(AlignedWindow(lines, Counter(), Counter()))
    assert _checked(AlignedWindow(lines[:1], Counter(), Counter())).lines == lines[:1]


def test_a_pair_that_fails_does_not_harm_its_window(run, aligner, files, tmp_path):
    lines = [file.read_text(encoding="utf-8").splitlines() for file in files]
    for side, word in zip(lines, ("ba", "ab")):
        side.insert(4, word)
    texts = [tmp_path / "source", tmp_path / "target"]
    for text, side in zip(texts, lines):
        text.write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    maps = Direction.maps

    def failing(self, pairs, *what):
        if 24 in pairs:
            raise ValueError("the map holds NaN")
        return maps(self, pairs, *what)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Direction, "maps", failing)
        (span,) = ParallelText(list(map(str, texts))).spans([13])
        window = answer(aligner, Job(20, span))
    assert [line.id for line in window.lines] == list(range(20, 33))
    assert [line.status for line in window.lines if not line.ok] == ["failed: the map holds NaN"]
    found = [line.line for line in window.lines]
    assert found.pop(4) == ""
    assert found == run(*PAPER).lines
    assert window.tokens["source"] > 12
