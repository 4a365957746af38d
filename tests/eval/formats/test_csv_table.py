from __future__ import annotations

import io

import pandas as pd
import pytest

from alignment_eval.formats.csv_table import csv_text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-a", "@SUM(A1)", "\t=1"])
def test_no_text_is_a_formula(text: str) -> None:
    table = pd.DataFrame({"token": [text, "plain", "", None], "value": [-1.5, 0.1, float("nan"), 1e-20]})
    written = csv_text(table)
    read = pd.read_csv(io.StringIO(written, newline=""), keep_default_na=False)
    assert list(read["token"]) == [f"'{text}", "plain", "", ""]
    assert list(read["value"]) == ["-1.5", "0.1", "", "1e-20"]


def test_other_tables_are_as_pandas_writes_them() -> None:
    table = pd.DataFrame({"a": ["x,y", 'q"'], "n": [1, 2], "f": [0.1, 1 / 3], "b": [True, False]})
    table["i"] = pd.array([1, None], dtype="Int64")
    assert csv_text(table) == table.to_csv(index=False)
