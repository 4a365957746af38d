"""Logs of fairseq-train read: against a slow obvious reader, and what is wrong with them said."""

from __future__ import annotations

import contextlib
import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.figures.training_log import COLUMNS, Line, Metric, TrainingLog, best, chosen, read_training_log
from tests.facts import says

DEMO = Path(__file__).resolve().parents[3] / "data/demo"
STAMP = "2026-01-05 10:00:00 | INFO | "


def statistics(subset: str, update: object, **values: object) -> dict[str, object]:
    prefix = "" if subset == "train_inner" else f"{subset}_"
    return {"epoch": 1, **{f"{prefix}{name}": value for name, value in values.items()}, f"{prefix}num_updates": update}


def printed(subset: str, update: object, **values: object) -> str:
    return f"{STAMP}{subset} | {json.dumps(statistics(subset, update, **values))}\n"


def read(path: Path, text: str | bytes) -> tuple[TrainingLog, list[str]]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    warnings: list[str] = []
    return read_training_log(path, warnings.append), warnings


def figures(log: TrainingLog) -> list[tuple[str, int, dict[str, float]]]:
    return [(line.subset, line.update, dict(line.values)) for line in log.lines]


@pytest.mark.parametrize("name", ["training-a.log", "training-b.log"])
def test_the_demo_against_a_slow_reader(name: str) -> None:
    expected = set()
    for text in (DEMO / name).read_text(encoding="utf-8").splitlines():
        if " | {" in text:
            tag, found = text.split(" | ")[2], json.loads(text.split(" | ", 3)[3])
            prefix = "" if tag == "train_inner" else f"{tag}_"
            update = int(found.pop(f"{prefix}num_updates"))
            for key in found.keys() - {"epoch", "update"}:
                expected.add(("run", tag, update, key.removeprefix(prefix), float(found[key])))
    table = read_training_log(DEMO / name, pytest.fail).table("run")
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == len(expected)
    assert set(table.itertuples(index=False, name=None)) == expected


def test_the_object_alone_as_in_a_log_file(tmp_path: Path) -> None:
    lines = [("train_inner", "100"), ("test1", "200"), ("valid", "200"), ("train", "250")]
    with_tags = "".join(printed(subset, update, loss="7.5", aer="0.5") for subset, update in lines)
    alone = re.sub(r"^.* \| ", "", with_tags, flags=re.MULTILINE)
    # every bar adds a handler, so lines come several times in a row
    repeated = "".join(3 * f"{line}\n" for line in alone.splitlines())
    logs = [read(tmp_path / f"{n}.log", text) for n, text in enumerate((with_tags, alone, repeated))]
    assert [warnings for _, warnings in logs] == [[], [], []]
    expected = [(subset, int(update), {"loss": 7.5, "aer": 0.5}) for subset, update in lines]
    assert [figures(log) for log, _ in logs] == [expected] * 3


def test_values(tmp_path: Path) -> None:
    text = printed("test", "1.2e+06", aer="inf", loss="nan", ppl=None, bleu=12.5, other=[1, 2], number=3, small="-1e-3")
    log, warnings = read(tmp_path / "log", text + STAMP + 'x | {"no": "statistics"}\n' + "{'_name': None}\n[1]\n")
    assert warnings == []
    (_, update, values), *more = figures(log)
    assert not more
    assert update == 1_200_000
    assert math.isnan(values.pop("aer"))
    assert math.isnan(values.pop("loss"))
    assert values == {"bleu": 12.5, "number": 3, "small": -0.001}


def test_a_cut_last_line_is_told_and_left_out(tmp_path: Path) -> None:
    whole = printed("valid", "200", loss="7.5") + printed("valid", "400", loss="7.25")
    first = whole.index("\n") + 1
    for end in (*range(first, len(whole), 9), *range(len(whole) - 3, len(whole))):
        log, warnings = read(tmp_path / "log", whole[:end])
        begun = '{"' in whole[first:end] and end < len(whole) - 1
        assert len(warnings) == begun
        assert all(says(warning, f"{tmp_path}/log:2: the last line is incomplete") for warning in warnings)
        assert [update for _, update, _ in figures(log)] == ([200, 400] if end == len(whole) - 1 else [200])


def test_a_cut_line_elsewhere_is_an_error(tmp_path: Path) -> None:
    text = printed("valid", "200", loss="7.5")[:-20] + printed("valid", "400", loss="7.25")
    with pytest.raises(InputError, match=r"log:1: .*not a line of statistics .*malformed.*; remove"):
        read(tmp_path / "log", text + "more\n")


def test_a_resumed_run(tmp_path: Path) -> None:
    updates = [100, 200, 300, 400, 200, 300]
    lines = [printed("valid", str(update), loss=str(n)) for n, update in enumerate(updates)]
    log, warnings = read(tmp_path / "log", "".join(lines))
    assert figures(log) == [("valid", 100, {"loss": 0}), ("valid", 200, {"loss": 4}), ("valid", 300, {"loss": 5})]
    assert len(warnings) == 1
    assert says(warnings[0], f"{tmp_path}/log:5: … from update 400 to 200 … 3 earlier lines from update 200 on")


def test_what_came_after_the_checkpoint_of_a_resumed_run_is_discarded_in_all_subsets(tmp_path: Path) -> None:
    text = "".join(printed("test", str(u), aer="0.5") + printed("train_inner", str(u), loss="1") for u in (100, 200))
    log, warnings = read(tmp_path / "log", text + printed("train_inner", "150", loss="2"))
    assert [(subset, update) for subset, update, _ in figures(log)] == [
        ("test", 100),
        ("train_inner", 100),
        ("train_inner", 150),
    ]
    assert len(warnings) == 1


def test_other_figures_of_the_same_update_are_told(tmp_path: Path) -> None:
    text = printed("valid", "200", loss="nan", ppl="2") * 2 + printed("valid", "200", loss="nan", ppl="3")
    log, warnings = read(tmp_path / "log", text)
    assert [values["ppl"] for _, _, values in figures(log)] == [3]
    assert len(warnings) == 1
    assert says(warnings[0], f"{tmp_path}/log:3: … valid at update 200 … line 2")


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 6)), min_size=1, max_size=12))
def test_of_each_subset_and_update_the_last_counts(tmp_path_factory: Any, steps: list[tuple[str, int]]) -> None:
    path = tmp_path_factory.getbasetemp() / "property.log"
    log, _ = read(path, "".join(printed(subset, str(u), n=n) for n, (subset, u) in enumerate(steps)))
    # slow and obvious: a line counts if no later one is of an earlier update, or of the same update and subset
    expected = [
        (subset, u, {"n": n})
        for n, (subset, u) in enumerate(steps)
        if not any(later < u or (later == u and (other == subset)) for other, later in steps[n + 1 :])
    ]
    # going back to an update discards it in all subsets
    back = {n: u for n, (_, u) in enumerate(steps) if n and u < steps[n - 1][1]}
    expected = [row for row in expected if not any(row[2]["n"] < n and row[1] >= u for n, u in back.items())]
    assert figures(log) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "log: the file is empty; expected the log of fairseq-train --log-format json"),
        ("nothing\n", "log: … no lines of statistics … fairseq-train --log-format json"),
        ("epoch 001 | loss 8.1 | num_updates 100\n", "--log-format json"),
        (printed("valid", "many"), "log:1: … 'valid_num_updates' is 'many': expected a number or null"),
        (printed("valid", "1.5"), "log:1: … 'valid_num_updates' is '1.5': expected a number of updates"),
        (printed("valid", "-1"), "expected a number of updates"),
        (printed("valid", "nan"), "expected a number of updates"),
        (printed("valid", "inf"), "expected a number of updates"),
        (printed("valid", None), "'valid_num_updates' is None: expected a number of updates"),
        (printed("valid", "1", loss="7,5"), "log:1: … 'valid_loss' is '7,5': expected a number or null"),
        (printed("valid", "1", loss=True), "'valid_loss' is True: expected a number"),
        (printed("valid", "1", loss={}), "'valid_loss' is {}: expected a number"),
        (b"\xff\n", "not UTF-8 (byte 0)"),
        (b'{"a": ' + 50_000 * b"[" + b"\nx\n", "log:1: … not a line of statistics … recursion"),
        (printed("valid", "1", loss=10**400), "'valid_loss' is 1000 … expected a number"),
        (printed("valid", 10**400), "'valid_num_updates' is 1000"),
        (printed("valid", "1e300"), "'valid_num_updates' is '1e300'"),
        (printed("valid", "1", loss="\x1b[31m" * 99), r"'valid_loss' is '\x1b[31m"),
        (printed("valid", "1").replace("}", ', "x": 1e999}\nx'), "log:1: … out of range"),
        (printed("valid", "1").replace("}", ', "x": "\\ud800"}\nx'), "log:1: … truncated"),
    ],
)
def test_errors(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path / "log", text)
    assert says(str(error.value), message)
    assert "\n" not in str(error.value)


@given(st.data())
def test_damage_is_an_input_error_or_read(tmp_path_factory: Any, data: st.DataObject) -> None:
    text = bytearray((printed("valid", "200", loss="7.5") + printed("test", "200", aer="0.5")).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        read(tmp_path_factory.getbasetemp() / "damaged.log", bytes(text))


@pytest.mark.parametrize(
    ("name", "layer", "kind", "setting", "share", "better"),
    [
        ("aer", None, None, None, True, "lower"),
        ("aer_l0_w_awo", 0, "w", "awo", True, "lower"),
        ("aer_l11_n_awi", 11, "n", "awi", True, "lower"),
        ("aer_precision", None, None, None, True, "higher"),
        ("aer_recall", None, None, None, True, "higher"),
        ("aer_sentences", None, None, None, False, None),
        ("nll_loss", None, None, None, False, "lower"),
        ("ppl", None, None, None, False, "lower"),
        ("bleu", None, None, None, False, "higher"),
        ("mixing_encoder_self_l0_attnres_n", None, None, None, False, None),
        ("gloss", None, None, None, False, None),
    ],
)
def test_metric(name: str, layer: int, kind: str, setting: str, share: bool, better: str) -> None:
    assert Metric.of(name) == Metric(name, layer, kind, setting, share, better)


def test_shown() -> None:
    assert Metric.of("aer").shown(0.261) == "26.10 %"
    assert Metric.of("loss").shown(7.655) == "7.655"


def table(*lines: Line) -> pd.DataFrame:
    return TrainingLog("log", "0", lines).table("run")


def test_chosen() -> None:
    names = {"aer": 0.5, "aer_l0_n_awo": 0.6, "best_aer": 0.5, "loss": 1.0}
    subsets = ("train_inner", "test", "valid", "train")
    every = table(*(Line(1, subset, 100, names) for subset in subsets))

    def found(patterns: list[str], subsets: list[str] | None = None) -> list[str]:
        rows = chosen(every, patterns, subsets)
        return list(rows["subset"] + "/" + rows["metric"])

    assert found(["aer"]) == ["test/aer", "valid/aer"]
    assert found(["aer", "aer_l*"], ["test"]) == ["test/aer", "test/aer_l0_n_awo"]
    assert found(["loss"], ["train"]) == ["train/loss"]
    assert found(["loss", "train_loss"], ["test"]) == ["test/loss", "train/loss"]
    assert found(["train_inner_loss"]) == ["train_inner/loss"]
    assert found(["AER"]) == []


def test_best() -> None:
    aers = (0.9, 0.4, 0.4, math.nan)
    lines = [
        Line(n, "test", 100 * n, {"aer": aer, "bleu": 10 * n, "mixing": 0.5, "failed_ppl": math.nan})
        for n, aer in enumerate(aers)
    ]
    rows = {row["metric"]: row for row in best(table(*reversed(lines))).to_dict("records")}
    keys = ("better", "best", "best_update", "last_update")
    assert [rows["aer"][key] for key in keys] == ["lower", 0.4, 100, 300]  # of equal ones the earliest
    assert math.isnan(rows["aer"]["last"])
    assert [rows["bleu"][key] for key in (*keys, "last")] == ["higher", 30, 300, 300, 30]
    for name in ("mixing", "failed_ppl"):  # not known what is better; nothing finite
        assert math.isnan(rows[name]["best"])
        assert pd.isna(rows[name]["best_update"])
