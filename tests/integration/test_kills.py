"""SIGKILL at any moment: the same command, or ``--resume``, gives the same files, and nothing else lies about.

test_records_runs.py kills fairseq-generate.

``pytest -m slow tests/integration/test_kills.py`` kills each command ``KILLS`` times (default: 3).  A command runs in a
fork of this process, so a try does not wait for torch and fairseq.
"""

import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

import fairseq_norm_plugin.align.run  # noqa: F401  # once here, not in each fork
from alignment_eval.commands import main as align_eval
from fairseq_norm_plugin import convert
from fairseq_norm_plugin.align import cli as norm_align
from tests.demo import DEMO, lines, written
from tests.facts import content
from tests.families import save
from tests.integration.conftest import without_fairseqs_warnings

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("KILLS", "3"))
MODEL = ["--path", DEMO / "checkpoint.pt", "--data", DEMO, "-s", "de", "-t", "en", "--bpe-codes", DEMO / "codes.bpe"]
TEXT = ["--source-text", DEMO / "demo.de", "--target-text", DEMO / "demo.en"]


def align(*words):
    return lambda again: norm_align.main([str(word) for word in [*words, *(["--resume"] if again else [])]])


def shards(*words):
    """Both shards of a run, and their merge."""

    def run(again):
        for number in range(2):
            if status := align(*words, "--shard", f"{number}/2")(again):
                return status
        return align_eval(["merge", f"{words[-1]}.parts", "-o", str(words[-1]), "--overwrite"])

    return run


def child(run, again):
    """The command, with nothing said."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    with without_fairseqs_warnings():
        try:
            status = run(again)
        except SystemExit as ended:
            status = ended.code
    sys.exit(status if isinstance(status, int) else 0)


def started(run, again=False):
    process = multiprocessing.get_context("fork").Process(target=child, args=(run, again))
    process.start()
    return process


def command_of(name, out):
    """A function that runs the command, told whether it is run again."""
    few = [written(out.parent / f"few.{language}", lines(language)[:15]) for language in ("de", "en")]
    text = ["--source-text", few[0], "--target-text", few[1]]
    marked = written(out.parent / "marked", [f"<b>{line}</b>" for line in lines("de")[:15]])
    if name == "convert":
        save(out.parent / "marian", "marian")
        return lambda again: convert.main(["translation", str(out.parent / "marian"), str(out / "model")])
    if name == "calibrate":
        words = ["calibrate", *MODEL, *TEXT, "--cpu", "-o", out / "profile.json"]
        return lambda again: norm_align.main([str(word) for word in words])
    options = {
        "plain": (*text, "--tokens-out", out / "words.de", out / "words.en", "-o", out / "out"),
        "parquet": (*text, "-o", out / "out.parquet"),
        "directory": (*text, "--table", "text", "-o", f"{out}/parts/"),
        "shards": (*text, "-o", out / "out"),
        "translate": (*text[:2], "--translate", 2, "-o", out / "out.jsonl"),
        "markup": ("--source-text", marked, *text[2:], "--markup", "xml", "-o", out / "out"),
    }[name]
    return (shards if name == "shards" else align)(*MODEL, "--cpu", "--window", 3, *options)


NAMES = ["plain", "parquet", "directory", "shards", "translate", "markup", "calibrate", "convert"]


@pytest.mark.parametrize("name", NAMES)
def test_killed(name, tmp_path):
    out = tmp_path / "out"
    run, begin = command_of(name, out), time.monotonic()
    out.mkdir()
    whole = started(run)
    whole.join()
    seconds = time.monotonic() - begin
    assert whole.exitcode == 0
    expected = content(out)
    rng, killed = random.Random(name), 0
    for number in range(KILLS):
        shutil.rmtree(out)
        out.mkdir()
        process = started(run)
        process.join(rng.uniform(0, seconds))
        if process.exitcode is None:
            os.killpg(process.pid, signal.SIGKILL) if os.getpgid(process.pid) == process.pid else process.kill()
            killed += 1
        process.join()
        left = content(out)
        if left == expected:  # it was killed after its work, or not at all
            continue
        again = started(run, again=True)
        again.join()
        assert again.exitcode == 0, (number, sorted(left))
        assert content(out) == expected, (number, sorted(left))
    print(f"{name}: {killed} of {KILLS} killed, in {seconds:.2f} s")


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("killed", ["driver", "worker"])
def test_ray_is_killed(tmp_path, killed, number):
    """Then the same command, with --resume, writes what one process writes."""
    pytest.importorskip("ray", reason="Ray is not installed")
    words = ["norm-align", *MODEL, *TEXT, "--cpu", "--window", 2]

    def begun(*options):
        command = [str(word) for word in (*words, *options)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    assert begun("-o", f"{tmp_path}/here/").wait() == 0
    out = tmp_path / "links"
    process = begun("-o", out, "--ray", 2)
    while process.poll() is None and len(list(out.glob("part-*"))) < 2 + 8 * number:
        time.sleep(0.05)
    workers = subprocess.run(["pgrep", "-f", "ray::_Actor"], capture_output=True, text=True, check=False).stdout.split()
    os.kill(process.pid if killed == "driver" else int(workers[0]), signal.SIGKILL)
    assert process.wait() != 0
    assert 0 < len(list(out.glob("part-*"))) < 30
    assert begun("-o", out, "--ray", 2, "--resume").wait() == 0
    assert content(out) == content(tmp_path / "here")
