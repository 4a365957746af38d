"""Logs of fairseq-train: read against a slow obvious reader, with what is wrong with them; drawn; the command."""

import base64
import html
import itertools
import json
import re
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alignment_eval.commands.curve import COLUMNS, draw_curves, read_training_log
from alignment_eval.reading import file_hash
from tests.facts import says

DEMO = Path(__file__).resolve().parents[3] / "data/demo"
STAMP = "2026-01-05 10:00:00 | INFO | "


def printed(subset, update, **values):
    """The statistics of a subset at an update."""
    fields = {f"{subset}_{name}": value for name, value in {**values, "num_updates": str(update)}.items()}
    return f"{STAMP}{subset} | {json.dumps({'epoch': 1, **fields})}\n"


def plain(subset, update, **values):
    """The same with ``--log-format simple``."""
    where = "" if subset == "train" else f"valid on '{subset}' subset | "
    fields = " | ".join(f"{name} {value}" for name, value in {**values, "num_updates": update}.items())
    return f"{STAMP}{subset} | epoch 001 | {where}{fields}\n"


@pytest.fixture
def read(tmp_path):
    """Read a log with this content: values by subset, update and metric; warnings."""

    def do(text):
        path = tmp_path / "log"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            table, _ = read_training_log(path, "run")
        values = {(row.subset, row.update, row.metric): row.value for row in table.itertuples()}
        return values, [str(warning.message) for warning in said]

    return do


def test_the_demo_against_a_slow_reader():
    expected, log = set(), DEMO / "training.log"
    for text in log.read_text(encoding="utf-8").splitlines():
        if " | {" in text and "train_inner" not in text:
            tag, values = text.split(" | ")[2], json.loads(text.split(" | ", 3)[3])
            update = int(values.pop(f"{tag}_num_updates"))
            expected |= {
                ("run", tag, update, k.removeprefix(f"{tag}_"), 0, float(values[k]))
                for k in values.keys() - {"epoch", *(f"{tag}_aer_{of}" for of in ("gold", "texts", "method"))}
            }
    table, _ = read_training_log(log, "run")
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == len(expected)
    assert set(table.itertuples(index=False, name=None)) == expected


def test_plain_logs_and_log_files_hold_the_same(read):
    lines = [("test1", "200"), ("valid", "200"), ("train", "250"), ("test1", "1.2e+06")]
    logs = [
        "".join(made(subset, update, loss="7.5", aer="0.5") for subset, update in lines) for made in (printed, plain)
    ]
    logs += [re.sub(r"^.* \| INFO \| \w+ \| ", "", log, flags=re.MULTILINE) for log in logs]  # --log-file has no tags
    logs.append(re.sub(r"(?m)^(.*?) \| INFO \| (\w+) \| ", r"[\1,101][\2][INFO] - ", logs[0]))  # of Hydra
    noise = f"{STAMP}x | epoch 001:   100 / 300 loss=9, num_updates=100\n{{'_name': None}}\n" + '{"num_updates": "1"}\n'
    expected = {(s, int(float(u)), name): value for s, u in lines for name, value in (("loss", 7.5), ("aer", 0.5))}
    assert [read(noise + log) for log in logs] == [(expected, [])] * 5


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 6)), min_size=1, max_size=12))
def test_a_run_that_goes_back_has_discarded_what_came_later(read, steps):
    values, said = read("".join(printed(subset, str(u), n=n) for n, (subset, u) in enumerate(steps)))
    expected = {}
    for n, (subset, update) in enumerate(steps):
        if n and update < steps[n - 1][1]:
            expected = {key: value for key, value in expected.items() if key[1] < update}
        expected[subset, update, "n"] = n
    assert values == expected
    assert len(said) == sum(later < earlier for (_, earlier), (_, later) in itertools.pairwise(steps))


@pytest.mark.parametrize(
    "damaged",
    [
        printed("valid", "many", loss="7").encode(),
        printed("valid", "2", loss="7").encode()[:-9],
        b'{"a": ' + 50_000 * b"[",
    ],
    ids=["updates", "cut off", "nested"],
)
def test_nothing_of_a_damaged_line_counts(read, damaged):
    values, (warning,) = read(damaged.strip() + b"\n" + printed("valid", "2", loss="7").encode())
    assert list(values) == [("valid", 2, "loss")]
    assert says(warning, "log:1: … left out")


# --- drawn

MAPS = [f"aer_l{layer}_{kind}_{setting}" for layer in range(6) for kind in "wn" for setting in ("awo", "awi")]


def runs(names, subsets, metrics):
    """Values that are all different."""
    rows = [
        (name, subset, update, metric, 0)
        for name in names
        for subset in subsets
        for metric in metrics
        for update in (1, 2, 3)
    ]
    return pd.DataFrame([(*row, 0.1 + n / 1000) for n, row in enumerate(rows)], columns=list(COLUMNS))


def test_every_value_is_drawn_aer_in_percent():
    table = runs(["a", "b"], ["test"], ["aer", *MAPS, "nll_loss"])
    aer = table[table["metric"] != "nll_loss"]
    above, below = (draw_curves(part).axes for part in (aer, table[table["metric"] == "nll_loss"]))
    drawn = [list(line.get_ydata()) for axes in above for line in axes.lines]
    np.testing.assert_allclose(drawn, 100 * aer["value"].to_numpy().reshape(-1, 3))
    assert max(np.max(line.get_ydata()) for axes in below for line in axes.lines) < 1  # a loss is no percentage


def test_the_metric_of_the_whole_has_a_name_and_a_broad_line_of_its_own():
    figure = draw_curves(runs(["a"], ["test"], ["aer", "aer_l0_n_awo", "aer_l1_n_awo"]))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        *("layer 0", "layer 1", "test, aer", "test, norms, AWO")
    ]
    runs_alone = draw_curves(runs(["a", "b"], ["test"], ["aer"]))
    assert [text.get_text() for text in runs_alone.legends[0].get_texts()] == ["a", "b"]
    whole, *layers = sorted(figure.axes[0].lines, key=lambda line: line.get_zorder())
    assert whole.get_linewidth() > 2 * max(line.get_linewidth() for line in layers)


# --- the command


@pytest.fixture
def run(tmp_path, monkeypatch, call):
    """Run ``curve`` where the logs are: exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    small = [printed("test", 100 * n, aer=aer, aer_l0_n_awo=aer, loss="2.5") for n, aer in enumerate(("0.5", "0.25"))]
    Path("small.log").write_text("".join(small), encoding="utf-8")

    return partial(call, "curve")


def test_end_to_end(tmp_path, align_eval):
    picture = tmp_path / "curve.svg"
    logs = [DEMO / "training.log", tmp_path / "other.log"]
    logs[1].write_bytes(logs[0].read_bytes())
    done = align_eval("curve", *logs, "--metrics", "test_aer*,nll_loss", "-o", picture)
    assert done.returncode == 0, done.stderr
    signed = done.stderr.strip()
    hashes = ",".join(file_hash(log) for log in logs)
    assert signed.startswith(f"logs:{hashes}|metrics:test_aer*,nll_loss|version:")
    svg = picture.read_text(encoding="utf-8")
    assert signed in svg
    for text in ("training", "AER %", "layer 2", "test, weights, AWI", "nll_loss", "update"):
        assert f">{text}</text>" in svg
    rows = {tuple(line.split()[:3]): line.split()[3:] for line in done.stdout.splitlines()[1:]}
    assert rows["training", "test", "aer"] == ["67.16%", "1300", "90.12%", "100", "67.16%", "1300"]
    assert {run for run, _, metric in rows if metric == "nll_loss"} == {"training", "other"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.svg", "other.log"]


def test_a_page_has_the_table_and_the_pictures_by_update(run):
    Path("pictures").mkdir()
    for update in (200, 1000, 90):
        Path(f"pictures/{update:06d}.png").write_bytes(str(update).encode())
    status, out, _ = run("small.log", "--metrics", "aer", "--pictures", "pictures", "-o", "run.html")
    assert status == 0
    page = Path("run.html").read_text(encoding="utf-8")
    assert html.escape(out.strip()) in page
    embedded = [base64.b64decode(content) for content in re.findall(r"base64,([^\"]+)", page)]
    assert embedded[0].startswith(b"\x89PNG")
    assert embedded[1:] == [b"90", b"200", b"1000"]


def test_what_is_not_finite_is_left_out_with_a_warning(run):
    Path("job.log").write_text("".join(printed("test", n, aer=aer) for n, aer in ((100, "0.5"), (200, "inf"))))
    status, out, err = run("job.log", "-o", "a.png")
    assert status == 0
    assert out.splitlines()[1].split() == ["job", "test", "aer", "50.00%", "100", "50.00%", "100", "50.00%", "100"]
    assert says(err.splitlines()[0], "warning: 1 of 2 values are not finite")


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
