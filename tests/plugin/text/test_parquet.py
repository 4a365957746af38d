"""Sentence pairs from Parquet files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alignment_eval.errors import InputError
from fairseq_norm_plugin.text.lines import ParquetText
from tests.facts import facts

GOOD = {"source": ["a b", "", "c"], "target": ["A", "B", "C D"]}


def write(directory, **files):
    for name, table in files.items():
        pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), directory / f"{name}.parquet")


@pytest.mark.parametrize("place", ["", "*.parquet", "[ab].parquet"])
def test_pairs_of_several_files(tmp_path, place):
    other = pa.table({"target": ["E"], "source": ["e"], "more": [1]})
    dictionary = pa.table({name: pa.array(values).dictionary_encode() for name, values in GOOD.items()})
    write(tmp_path, b=other, a=dictionary)
    for ignored in ("_SUCCESS", ".a.crc"):
        (tmp_path / ignored).touch()
    text = ParquetText(str(tmp_path / place))
    pairs = [(("a", "b"), ("A",)), ((), ("B",)), (("c",), ("C", "D")), (("e",), ("E",))]
    assert (text.size, [pair.words for pair in text]) == (4, pairs)
    assert [id_ for batch in text.ids() for id_ in batch.to_pylist()] == [0, 1, 2, 3]
    text.check_unchanged()
    write(tmp_path, b=GOOD)
    with pytest.raises(InputError, match=facts("b.parquet: the text was changed")):
        text.check_unchanged()


@pytest.mark.parametrize("ids", [[5, 2, 9], ["x", "a", "é"]])
def test_ids(tmp_path, ids):
    write(tmp_path, a={**GOOD, "id": ids})
    assert [id_ for batch in ParquetText(str(tmp_path)).ids() for id_ in batch.to_pylist()] == ids


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"target": None}, "a.parquet: no column target among 'source'; give … source and target"),
        ({"source": [1, 2, 3]}, "column source has type int64, expected text"),
        ({"source": ["a", None, "b"]}, "row 1, from 0, has null as its source"),
        ({"id": [1, None, 2]}, "row 1, from 0, has null as its id"),
        ({"id": [0.5, 1, 2]}, "column id has type double, expected whole numbers"),
        ({name: pa.array([], pa.string()) for name in GOOD}, "no rows"),
    ],
)
def test_bad_columns(tmp_path, change, text):
    columns = {name: values for name, values in {**GOOD, **change}.items() if values is not None}
    write(tmp_path, a=columns)
    with pytest.raises(InputError, match=facts(text)):
        ParquetText(str(tmp_path / "a.parquet"))


def test_bad_places(tmp_path):
    with pytest.raises(InputError, match=facts("no such Parquet file")):
        ParquetText(str(tmp_path / "*.parquet"))
    write(tmp_path, a=GOOD, b={**GOOD, "id": [1, 2, 3]})
    with pytest.raises(InputError, match=facts("b.parquet: … column id has type int64, but None in … a.parquet")):
        ParquetText(str(tmp_path))
    (tmp_path / "notes.txt").write_text("a\n")
    with pytest.raises(InputError, match=facts("the directory holds 'notes.txt' … glob … *.parquet")):
        ParquetText(str(tmp_path))
    (tmp_path / "c.parquet").write_text("no table")
    with pytest.raises(InputError, match=facts("c.parquet: damaged, or not a Parquet file of sentence pairs")):
        ParquetText(str(tmp_path / "c.parquet"))


@pytest.mark.parametrize("name", ["other", "target"])
def test_a_name_of_a_column_that_is_not_utf_8(tmp_path, name):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**GOOD, "other": ["", "", ""]}), path, store_schema=False)
    content = path.read_bytes()
    path.write_bytes(content.replace(name.encode(), name[:-1].encode() + b"\xff"))
    with pytest.raises(InputError, match=facts("a.parquet: damaged, or not a Parquet file of sentence pairs")):
        ParquetText(str(path))
