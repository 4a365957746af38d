from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from alignment_eval.cli import main
from alignment_eval.files import file_hash
from tests.facts import says

DEMO = Path(__file__).resolve().parents[3] / "data/demo"
Run = Callable[..., tuple[int, str, str]]


def printed(subset: str, update: int, **values: str) -> str:
    found = {f"{subset}_{name}": value for name, value in values.items()}
    return f"2026-01-05 10:00:00 | INFO | {subset} | {json.dumps({**found, f'{subset}_num_updates': str(update)})}\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``curve`` where the logs are: exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    for name in ("training-a.log", "training-b.log"):
        shutil.copy(DEMO / name, name)
    small = [printed("test", 100 * n, aer=aer, aer_l0_n_awo=aer, loss="2.5") for n, aer in enumerate(("0.5", "0.25"))]
    Path("small.log").write_text("".join(small), encoding="utf-8")

    def command(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(["curve", *arguments])
        except SystemExit as error:  # argparse
            status = int(error.code or 0)
        return status, *capsys.readouterr()

    return command


def test_end_to_end(tmp_path: Path, align_eval: Callable[..., Any]) -> None:
    picture, csv = tmp_path / "curve.svg", tmp_path / "best.csv"
    logs = [DEMO / "training-a.log", DEMO / "training-b.log"]
    done = align_eval("curve", *logs, "--loss", "nll_loss,train_loss", "-o", picture, "--csv", csv)
    assert done.returncode == 0
    signed = done.stderr.strip()
    hashes = ",".join(file_hash(log) for log in logs)
    assert signed.startswith(f"logs:{hashes}|metrics:aer,aer_l*|subset:all|loss:nll_loss,train_loss|version:")
    svg = picture.read_text(encoding="utf-8")
    assert signed in svg
    assert ">training-a, subset test1</text>" in svg
    for text in ("AER %", "layer 2", "weights, AWI", "train_loss", "update"):
        assert f">{text}</text>" in svg
    table = pd.read_csv(csv)
    assert len(table) == 2 * (13 + 2)
    aer = table[(table["run"] == "training-a") & (table["metric"] == "aer")].iloc[0]
    assert (aer["best"], aer["best_update"], aer["better"]) == (0.379961, 2800, "lower")
    assert len(done.stdout.splitlines()) == 1 + len(table)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.csv", "curve.svg"]


def test_help_has_examples(align_eval: Callable[..., Any]) -> None:
    done = align_eval("curve", "--help")
    assert done.returncode == 0
    assert "  align-eval curve data/demo/training-a.log --loss " in done.stdout


def test_table(run: Run) -> None:
    status, out, err = run("small.log", "--loss", "loss", "-o", "a.png")
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["run", "subset", "metric", "best", "best", "update", "last", "last", "update"],
        ["small", "test", "aer", "25.00", "%", "100", "25.00", "%", "100"],
        ["small", "test", "aer_l0_n_awo", "25.00", "%", "100", "25.00", "%", "100"],
        ["small", "test", "loss", "2.5", "0", "2.5", "100"],
    ]
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert len(err.splitlines()) == 1


def test_csv_to_the_standard_output(run: Run) -> None:
    status, out, _ = run("small.log", "--metrics", "aer", "-o", "a.png", "--csv", "-")
    assert status == 0
    assert out == (
        "run,subset,metric,better,best,best_update,last,last_update\nsmall,test,aer,lower,0.25,100,0.25,100\n"
    )


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    with Path("small.log").open(encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        status, out, _ = run("-", "--metrics", "aer", "-o", "a.png")
    assert status == 0
    assert out.splitlines()[1].split()[0] == "stdin"


def test_runs_of_the_same_name_are_called_by_their_paths(run: Run) -> None:
    Path("other").mkdir()
    shutil.copy("small.log", "other/small.log")
    status, out, _ = run("small.log", "other/small.log", "--metrics", "aer", "-o", "a.png")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["small.log", "other/small.log"]


def test_what_is_not_finite_or_cut_off_or_repeated_is_told(run: Run) -> None:
    lines = [
        printed("test", update, aer=aer) for update, aer in ((100, "0.5"), (200, "inf"), (100, "0.4"), (300, "inf"))
    ]
    Path("job.log").write_text("".join(lines) + '{"epoch": 1, "te', encoding="utf-8")
    status, out, err = run("job.log", "-o", "a.png")
    assert status == 0
    assert out.splitlines()[1].split() == ["job", "test", "aer", "40.00", "%", "100", "-", "300"]
    *warnings, _ = err.splitlines()
    assert len(warnings) == 3
    assert says(warnings[0], "warning: job.log:3: … from update 200 to 100 … 2 earlier lines from update 100 on")
    assert says(warnings[1], "warning: job.log:5: the last line is incomplete")
    assert says(warnings[2], "warning: job: 1 of 2 values of test_aer are not finite")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["none.log"], 1, "none.log: no such file"),
        (["small.log", "small.log"], 2, "small.log is a duplicate"),
        (["-", "-"], 2, "several inputs are -"),
        (["small.log", "--metrics", "bleu"], 1, "small.log: no metric bleu in it: expected some of test_aer, te"),
        (["small.log", "--metrics", "aer,"], 2, "'aer,': expected names, separated by commas"),
        (["small.log", "--metrics", "aer,bleu"], 2, "--metrics: bleu matches no metric"),
        (["small.log", "--metrics", "aer,loss"], 2, "aer is drawn in %, loss is not: expected metrics that"),
        (["valid.log"], 1, "valid.log: no AER in it, as of a run without --aer-gold: expected"),
        (["valid.log", "--metrics", "bleu"], 1, "valid.log: no metric bleu in it: expected some of valid_loss"),
        (["small.log", "--loss", "bleu"], 1, "no metric bleu of subset test in it"),
        (["small.log", "--subset", "valid"], 1, "small.log: no metric aer,aer_l* of subset valid in it: expected some"),
        (["small.log", "--subset", "test,valid"], 2, "--subset: valid has no such metric in any log: expected some"),
        (["training-a.log", "small.log", "--subset", "test1"], 1, "small.log: no metric aer,aer_l* of subset test1"),
        (["small.log", "-o", "a.gif"], 2, "a.gif: the ending 'gif' is not one of .png"),
        (["small.log", "-o", "there.png"], 1, "there.png: already exists"),
        (["small.log", "--csv", "there.png"], 1, "there.png: already exists"),
        (["small.log", "-o", "b.png", "--csv", "b.png"], 2, "-o and --csv are both b.png"),
        (["small.log", "--metrics", "a|b"], 1, "no metric a|b"),
    ],
)  # fmt: skip
def test_errors(run: Run, arguments: list[str], status: int, message: str) -> None:
    Path("there.png").write_text("mine", encoding="utf-8")
    Path("valid.log").write_text(printed("valid", 100, loss="2.5"), encoding="utf-8")
    before = sorted(Path().iterdir())
    found, out, err = run(*(arguments if "-o" in arguments else [*arguments, "-o", "a.png"]))
    assert (found, out) == (status, "")
    assert message in err
    assert sorted(Path().iterdir()) == before
    assert Path("there.png").read_text(encoding="utf-8") == "mine"


def test_overwrite(run: Run) -> None:
    Path("a.png").write_text("old", encoding="utf-8")
    assert run("small.log", "-o", "a.png", "--overwrite")[0] == 0
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")


def test_only_training_by_its_full_name(run: Run) -> None:
    status, out, _ = run("training-a.log", "--metrics", "train_loss,train_inner_loss", "-o", "a.png")
    assert status == 0
    assert [line.split()[1] for line in out.splitlines()[1:]] == ["train_inner", "train"]
