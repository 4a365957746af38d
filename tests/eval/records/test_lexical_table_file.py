import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.lexical_table import EMPTY, count_lexical_table
from alignment_eval.maps.words import two_way_shares
from alignment_eval.records.lexical_table_file import SCHEMA, read_lexical_table, write_lexical_table
from tests.facts import facts

METADATA = b"alignment_eval.lexical_table"


def counted(pairs=40):
    rng = np.random.default_rng(5)
    text = []
    for _ in range(pairs):
        source, target = (list(rng.choice(list(letters), rng.integers(1, 6))) for letters in ("abcdeßé", "uvwxyz漢"))
        text.append(((source, target), rng.random((len(target), len(source)))))
    return count_lexical_table(text, two_way_shares)[0]


def test_what_is_written_is_read(tmp_path):
    lexical_table = counted()
    write_lexical_table(tmp_path / "lexical_table", lexical_table, "kind:attn_n|table:text")
    found = read_lexical_table(tmp_path / "lexical_table")
    assert found.name == str(tmp_path / "lexical_table")
    assert found.pairs == lexical_table.pairs == 40
    for words in ((["a", "ß", "b"], ["z", "漢"]), (["unknown", "a"], ["x", "a", "u"])):
        np.testing.assert_array_equal(found.scale(words), lexical_table.scale(words))
        np.testing.assert_array_equal(found.sums_of(words), lexical_table.sums_of(words))
    # and again the same
    write_lexical_table(tmp_path / "again", found, "kind:attn_n|table:text")
    rows = [sorted(map(str, pq.read_table(tmp_path / name).to_pylist())) for name in ("lexical_table", "again")]
    assert rows[0] == rows[1]


def test_a_lexical_table_of_nothing_is_not_written(tmp_path):
    with pytest.raises(InputError, match=facts("lexical_table: … without sentence pairs")):
        write_lexical_table(tmp_path / "lexical_table", EMPTY, "")
    with pytest.raises(InputError, match=r"none/lexical_table: .*directory"):
        write_lexical_table(tmp_path / "none" / "lexical_table", counted(), "")
    assert not list(tmp_path.iterdir())


GOOD = {"source": ["a", "a", ""], "target": ["x", "", "x"], "weight": [0.5, 3.0, 2.0]}
ABOUT = {"version": 1, "pairs": 7, "signature": ""}


def written(path, schema=SCHEMA, about=ABOUT, **columns):
    metadata = None if about is None else {METADATA: json.dumps(about)}
    fields = [pa.field(f.name, f.type, nullable=any(v is None for v in columns.get(f.name, []))) for f in schema]
    table = pa.table({**GOOD, **columns}, schema=pa.schema(fields, metadata))
    pq.write_table(table, path)
    return path


def test_a_file_made_by_hand(tmp_path):
    lexical_table = read_lexical_table(written(tmp_path / "lexical_table"))
    assert lexical_table.pairs == 7
    assert lexical_table.sums_of((["a", "b"], ["x"])).tolist() == [[0.5, 0.0]]
    assert lexical_table.scale((["a"], ["x"])) == pytest.approx(1 / np.sqrt(12))


STRINGS = [pa.field("source", pa.string()), pa.field("target", pa.string())]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"weight": [-0.1, 3, 2]}, "column weight has the value -0.1: expected a finite number, 0 or more"),
        ({"source": ["a", None, ""]}, "null values"),
        ({"source": ["a", "a", "a"], "target": ["x", "", "x"]}, "duplicate rows"),
        ({"weight": [0.5, 0.0, 2]}, "words without a count, .*whole number"),
        ({"source": [], "target": [], "weight": []}, "no rows"),
        ({"schema": pa.schema([*STRINGS, pa.field("weight", pa.float32())])}, "column 'weight' has type float"),
        ({"about": None}, "truncated"),
        ({"about": {**ABOUT, "version": 2}}, "version is 2: expected version 1"),
    ],
    ids=str,
)
def test_files_of_another_form(tmp_path, columns, message):
    path = written(tmp_path / "lexical_table", **columns)
    with pytest.raises(InputError, match=message) as error:
        read_lexical_table(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "norm-align calibrate" in str(error.value)
    assert str(error.value).isprintable()


def test_a_damaged_file(tmp_path):
    """test_fuzz_readers.py changes single bytes."""
    path = tmp_path / "lexical_table"
    write_lexical_table(path, counted(), "")
    whole = path.read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"lexical_table: .*not a lexical table file"):
            read_lexical_table(path)
