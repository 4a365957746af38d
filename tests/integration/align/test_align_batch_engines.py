"""The example of docs/scale.md for Ray Data, run as it stands there; the other engines are not installed for tests."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairseq_norm_plugin import AlignBatch
from tests.integration.conftest import ROOT
from tests.integration.demo import lines

PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore")  # Ray's own: of pandas 3, of sockets that are still open
@pytest.mark.slow
def test_example(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed")
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    table = pa.table({"id": range(20), "source": lines("de")[:20], "target": lines("en")[:20]})
    pq.write_table(table, "pairs.parquet")
    names = {}
    for block in (BLOCKS[0], *(block for block in BLOCKS if "import ray" in block)):
        exec(block, names)
    found = pq.read_table("links").to_pydict()
    expected = AlignBatch(**names["MODEL"])(table).to_pydict()
    assert {name: list(map(str, found[name])) for name in ("id", "status")} == {
        name: list(map(str, expected[name])) for name in ("id", "status")
    }
    for name in ("links", "source_spans", "target_spans"):  # lists, or arrays
        assert [list(map(tuple, pairs)) for pairs in found[name]] == [list(map(tuple, x)) for x in expected[name]]
    assert [len(confidences) for confidences in found["confidences"]] == [len(x) for x in expected["confidences"]]
    names["ray"].shutdown()
