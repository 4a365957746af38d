"""The examples of docs/scale.md for engines of data frames, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairseq_norm_plugin import AlignBatch

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
#: Of each package the word by which its example is found, and how its result is read.
ENGINES = {
    "ray": ("import ray", lambda names: pq.read_table("links").to_pydict()),
    "pyspark": ("pyspark", lambda names: pq.read_table("links").to_pydict()),
    "dask": ("dask.dataframe", lambda names: names["links"].to_dict("list")),
    "datasets": ("load_dataset", lambda names: names["links"].to_dict()),
}


@pytest.mark.filterwarnings("ignore")  # each engine has its own: of pandas 3, of sockets that are still open
@pytest.mark.parametrize(
    "package", [pytest.param(name, marks=[pytest.mark.slow] if name == "ray" else []) for name in ENGINES]
)
def test_example(package, tmp_path, monkeypatch):
    pytest.importorskip(package, reason=f"{package} is not installed")
    word, read = ENGINES[package]
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    source, target = ((ROOT / f"data/demo/demo.{side}").read_text("utf-8").splitlines()[:20] for side in ("de", "en"))
    table = pa.table({"id": range(20), "source": source, "target": target})
    pq.write_table(table, "pairs.parquet")
    names = {}
    for block in (BLOCKS[0], *(block for block in BLOCKS if word in block)):
        exec(block, names)
    found = read(names)
    expected = AlignBatch(**names["MODEL"])(table).to_pydict()
    assert {name: list(map(str, found[name])) for name in ("id", "status")} == {
        name: list(map(str, expected[name])) for name in ("id", "status")
    }
    for name in ("links", "source_spans", "target_spans"):  # lists, or arrays
        assert [list(map(tuple, pairs)) for pairs in found[name]] == [list(map(tuple, x)) for x in expected[name]]
    assert [len(confidences) for confidences in found["confidences"]] == [len(x) for x in expected["confidences"]]
    if "ray" in names:
        names["ray"].shutdown()
    if "spark" in names:
        names["spark"].stop()
