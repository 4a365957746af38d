import shutil
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from alignment_eval.files import file_hash
from tests.eval.figures.logs import printed
from tests.facts import says

DEMO = Path(__file__).resolve().parents[3] / "data/demo"


@pytest.fixture
def run(tmp_path, monkeypatch, call):
    """Run ``curve`` where the logs are: exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    small = [printed("test", 100 * n, aer=aer, aer_l0_n_awo=aer, loss="2.5") for n, aer in enumerate(("0.5", "0.25"))]
    Path("small.log").write_text("".join(small), encoding="utf-8")

    return partial(call, "curve")


def test_end_to_end(tmp_path, align_eval):
    picture, csv = tmp_path / "curve.svg", tmp_path / "values.csv"
    logs = [DEMO / "training-a.log", DEMO / "training-b.log"]
    done = align_eval("curve", *logs, "--metrics", "test1_aer*,nll_loss", "-o", picture)
    assert done.returncode == 0, done.stderr
    signed = done.stderr.strip()
    hashes = ",".join(file_hash(log) for log in logs)
    assert signed.startswith(f"logs:{hashes}|metrics:test1_aer*,nll_loss|version:")
    svg = picture.read_text(encoding="utf-8")
    assert signed in svg
    for text in ("training-a", "AER %", "layer 2", "test1 w_awi", "nll_loss", "update"):
        assert f">{text}</text>" in svg
    assert align_eval("curve", *logs, "--metrics", "test1_aer*,nll_loss", "-o", csv).stdout == done.stdout
    table = pd.read_csv(csv)
    assert list(table.columns) == ["run", "subset", "update", "metric", "part", "value"]
    aer = table[(table["run"] == "training-a") & (table["metric"] == "aer")]
    lowest = aer.loc[aer["value"].idxmin()]
    assert (lowest["value"], lowest["update"]) == (0.379961, 2800)
    assert done.stdout.count("\n") == 1 + len(table.groupby(["run", "subset", "metric"]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.svg", "values.csv"]


def test_runs_are_named(run):
    """By their files without endings; by their paths, if two are the same."""
    Path("other").mkdir()
    shutil.copy("small.log", "other/small.log")
    _, out, _ = run("small.log", "other/small.log", "--metrics", "aer", "-o", "a.png")
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["small.log", "other/small.log"]


def test_what_is_not_finite_or_cut_off_or_repeated_is_told(run):
    lines = [
        printed("test", update, aer=aer) for update, aer in ((100, "0.5"), (200, "inf"), (100, "0.4"), (300, "inf"))
    ]
    Path("job.log").write_text("".join(lines) + '{"epoch": 1, "te', encoding="utf-8")
    status, out, err = run("job.log", "-o", "a.png")
    assert status == 0
    assert out.splitlines()[1].split() == ["job", "test", "aer", "40.00%", "100", "40.00%", "100", "40.00%", "100"]
    *warnings, _ = err.splitlines()
    assert len(warnings) == 3
    assert says(warnings[0], "warning: job.log:3: … from update 200 to 100 … from update 100 on")
    assert says(warnings[1], "warning: job.log:5: … left out")
    assert says(warnings[2], "warning: 1 of 2 values are not finite")


def test_an_aer_of_another_gold_is_another_curve(run):
    """Its figures are not compared with those before; what is no AER goes on."""
    basis = {"aer_gold": "111", "aer_texts": "222", "aer_method": "333"}
    changes = [{}, {}, {"aer_gold": "9"}, {"aer_gold": "9"}, {"aer_gold": "9", "aer_texts": "8", "aer_method": "7"}]
    lines = [
        printed("test", 100 * n, aer=f"0.{n}", loss="2.5", **{**basis, **change}) for n, change in enumerate(changes, 1)
    ]
    Path("job.log").write_text("".join(lines), encoding="utf-8")
    status, out, err = run("job.log", "--metrics", "aer,loss", "-o", "a.csv")
    assert status == 0
    first, second, _ = err.splitlines()
    assert says(first, "warning: job.log:3: from update 300 on the AER of test … the gold changed; the curve is broken")
    assert says(second, "warning: job.log:5: from update 500 … the texts and the map or the rule changed")
    rows = [line.split()[2:5] for line in out.splitlines()[1:]]
    assert sorted(rows) == [
        ["aer", "0", "10.00%"],
        ["aer", "1", "30.00%"],
        ["aer", "2", "50.00%"],
        ["loss", "0", "2.5"],
    ]
    assert list(pd.read_csv("a.csv").query("metric == 'aer'")["part"]) == [0, 0, 1, 1, 2]
    assert run("job.log", "-o", "a.svg")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["small.log", "--metrics", "aer,bleu"], 1, "--metrics bleu: no such metric in the logs"),
        (["valid.log"], 1, "--metrics aer,aer_l*,mixing_*: no such metric in valid (fairseq-train logs AER with"),
        (["small.log", "valid.log"], 1, "no such metric in valid"),
    ],
)
def test_errors(run, arguments, status, message):
    Path("valid.log").write_text(printed("valid", 100, loss="2.5"), encoding="utf-8")
    before = sorted(Path().iterdir())
    found, out, err = run(*arguments, "-o", "a.png")
    assert (found, out) == (status, "")
    assert message in err
    assert sorted(Path().iterdir()) == before
