"""Alignments as a Parquet table."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fairseq_norm_plugin.text.alignment_table import row_numbers, write_table

from alignment_eval.links.write import format_scored_line
from fairseq_norm_plugin.text import alignment_table


@pytest.mark.parametrize("group", [1, 4, 1000])
def test_links_and_confidences(tmp_path, monkeypatch, group):
    monkeypatch.setattr(alignment_table, "GROUP_ROWS", group)
    rng = random.Random(3)
    sentences = [{(rng.randrange(20), k): rng.random() ** 9 for k in range(rng.choice([0, 1, 5]))} for _ in range(11)]
    write_table(tmp_path / "t", iter([("ok", format_scored_line(links)) for links in sentences]), row_numbers(11), True)
    found = pq.read_table(tmp_path / "t").to_pydict()
    assert found["id"] == list(range(11))
    assert found["links"] == [" ".join(f"{i}-{j}" for i, j in sorted(links)) for links in sentences]
    assert found["confidences"] == [[p for _, p in sorted(links.items())] for links in sentences]


def test_links_without_confidences(tmp_path):
    write_table(
        tmp_path / "t", iter([("ok", "0-0 1-2"), ("empty", "")]), iter([pa.array(["x"]), pa.array(["y"])]), False
    )
    table = pq.read_table(tmp_path / "t")
    assert table.to_pydict() == {
        "id": ["x", "y"],
        "links": ["0-0 1-2", ""],
        "confidences": [None, None],
        "status": ["ok", "empty"],
    }
    assert str(table.schema.field("confidences").type).startswith("list")
