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
import torch
from fairseq_cli import train

import fairseq_norm_plugin.align.run  # noqa: F401  # once here, not in each fork
from alignment_eval.commands import main as align_eval
from fairseq_norm_plugin import convert
from fairseq_norm_plugin.align import cli as norm_align
from tests.demo import DEMO, lines, written
from tests.facts import content
from tests.families import save
from tests.integration.conftest import ROOT, training_config, without_fairseqs_warnings

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


def names(directory):
    """What a training leaves; after a stop, fairseq does not go on with the same numbers."""
    last = torch.load(directory / "checkpoint_last.pt", weights_only=False)
    return sorted(path.name for path in directory.iterdir()), last["optimizer_history"][-1]["num_updates"]


def drop_incomplete(directory):
    """fairseq copies its checkpoints, so a kill may leave a part of one; a user removes it, or names an earlier one."""
    for path in directory.glob("*.pt"):
        try:
            torch.load(path, weights_only=False)
        except (RuntimeError, EOFError):
            path.unlink()


def commands(out, request):
    """Name -> a function that runs the command, told whether it is run again; and what is compared."""
    few = [written(out.parent / f"few.{language}", lines(language)[:15]) for language in ("de", "en")]
    text = ["--source-text", few[0], "--target-text", few[1]]
    options = [*MODEL, "--cpu", "--window", 3]
    plain = ["-o", out / "out", "--tokens-out", out / "words.de", out / "words.en"]
    marked = written(out.parent / "marked", [f"<b>{line}</b>" for line in lines("de")[:15]])
    data = request.getfixturevalue("data")
    gold = written(out.parent / "gold", ["0-0"] * 12)
    monitored = ["--valid-subset", "test", "--aer-gold", f"test={gold}", "--aer-gold-base", 0]
    monitored += ["--save-interval-updates", 2]

    def calibrated(again):
        words = ["calibrate", *MODEL, *TEXT, "--cpu", "-o", out / "profile.json"]
        return norm_align.main([str(word) for word in words])

    def converted(again):
        return convert.main(["translation", str(out.parent / "marian"), str(out / "model")])

    def trained(again):
        fields = {"task": "translation_norm", "updates": 12}
        words = [*monitored, "--user-dir", ROOT / "fairseq_norm_plugin"]
        train.main(training_config(data, out, *words, **fields)[1])

    save(out.parent / "marian", "marian")
    return {
        "plain": (align(*options, *text, *plain), content),
        "jsonl": (align(*options, *text, "-o", out / "out.jsonl"), content),
        "parquet": (align(*options, *text, "-o", out / "out.parquet"), content),
        "directory": (align(*options, *text, "--table", "text", "-o", f"{out}/parts/"), content),
        "shards": (shards(*options, *text, "-o", out / "out"), content),
        "translate": (align(*options, *text[:2], "--translate", 2, "-o", out / "out.jsonl"), content),
        "markup": (align(*options, "--source-text", marked, *text[2:], "--markup", "xml", "-o", out / "out"), content),
        "calibrate": (calibrated, content),
        "convert": (converted, content),
        "train": (trained, names),
    }


NAMES = [
    *("plain", "jsonl", "parquet", "directory", "shards", "translate", "markup"),
    *("calibrate", "convert", "train"),
]


@pytest.mark.parametrize("name", NAMES)
def test_killed(name, tmp_path, request):
    out = tmp_path / "out"
    run, compared = commands(out, request)[name]
    begin = time.monotonic()
    out.mkdir()
    whole = started(run)
    whole.join()
    seconds = time.monotonic() - begin
    assert whole.exitcode == 0
    expected = compared(out)
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
        if name != "train" and left == expected:  # it was killed after its work, or not at all
            continue
        drop_incomplete(out)
        again = started(run, again=True)
        again.join()
        assert again.exitcode == 0, (number, sorted(left))
        assert compared(out) == expected, (number, sorted(left))
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
