"""Alignments with their text as rows."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alignment_eval.links import files as write
from alignment_eval.links.files import row_numbers, write_table


def rows(size):
    """Rows as alignments have them, of random links."""
    rng = random.Random(3)
    sides = {"source": "a\u2028b \u00fc", "target": "\U0001f600"}
    spans = {"source_spans": [[0, 1], [2, 3], [4, 5]], "target_spans": [[0, 1]]}
    found = []
    for _ in range(size):
        links = [[rng.randrange(20), k] for k in range(rng.choice([0, 1, 5]))]
        confidences = None if links and rng.random() < 0.5 else [rng.random() ** 9 for _ in links]
        of_links = {"links": links, "confidences": confidences, "status": "ok" if links else "empty"}
        found.append({**sides, **spans, **of_links, "score": rng.choice([None, -rng.random()])})
    return found


BARE = {**rows(1)[0], "links": [], "confidences": None, "score": None}


@pytest.mark.parametrize("given", [rows(11), [BARE] * 11], ids=["random", "bare"])
def test_a_table_has_the_rows_in_groups(tmp_path, monkeypatch, given):
    """Batches of ids decide the row groups; the types do not depend on the rows."""
    monkeypatch.setattr(write, "GROUP_ROWS", 4)
    for ids, groups in ((list(row_numbers(11)), 3), ([pa.array(["x"]), pa.array(list("yzabcdefgh"))], 2)):
        write_table(tmp_path / "t", iter(given), iter(ids))
        written = pq.ParquetFile(tmp_path / "t")
        assert written.num_row_groups == groups
        found, numbers = written.read(), [number for batch in ids for number in batch.to_pylist()]
        assert found.to_pylist() == [{"id": number, **row} for number, row in zip(numbers, given)]
        assert {name: found.schema.field(name).type for name in write.TYPES} == write.TYPES
