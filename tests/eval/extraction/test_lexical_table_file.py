import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.lexical_table import (
    EMPTY,
    SCHEMA,
    count_lexical_table,
    read_lexical_table,
    write_lexical_table,
)
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.maps.words import FORMED
from alignment_eval.profiles.profile import TableFile, fit_profile
from alignment_eval.reading import file_hash
from tests.facts import facts, says

METADATA = b"alignment_eval.lexical_table"


def counted(pairs=40):
    rng = np.random.default_rng(5)
    text = []
    for _ in range(pairs):
        source, target = (list(rng.choice(list(letters), rng.integers(1, 6))) for letters in ("abcdeßé", "uvwxyz漢"))
        text.append(((source, target), rng.random((len(target), len(source)))))
    return count_lexical_table(text, FORMED)[0]


@pytest.mark.parametrize("pairs", [6, 40])
def test_what_is_written_is_read(tmp_path, pairs):
    """Of few pairs many words never occur together."""
    lexical_table = counted(pairs)
    write_lexical_table(tmp_path / "lexical_table", lexical_table, "kind:attn_n|table:text")
    found = read_lexical_table(tmp_path / "lexical_table")
    assert found.name == str(tmp_path / "lexical_table")
    assert found.pairs == lexical_table.pairs == pairs
    for words in (("abcdeßé", "uvwxyz漢"), (["unknown", "a"], ["x", "a", "u"])):
        np.testing.assert_array_equal(found.scale(words), lexical_table.scale(words))
        np.testing.assert_array_equal(found.sums_of(words), lexical_table.sums_of(words))


def test_a_lexical_table_of_nothing_is_not_written(tmp_path):
    with pytest.raises(InputError, match=facts("lexical_table: … without sentence pairs")):
        write_lexical_table(tmp_path / "lexical_table", EMPTY, "")


GOOD = {"source": ["a", "a", ""], "target": ["x", "", "x"], "weight": [0.5, 3.0, 2.0]}
ABOUT = {"version": 1, "pairs": 7, "signature": ""}


def written(path, about=ABOUT, **columns):
    table = pa.table({**GOOD, **columns}, schema=SCHEMA.with_metadata({METADATA: json.dumps(about)}))
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"weight": [-0.1, 3, 2]}, "column weight has the value -0.1: expected a finite number, 0 or more"),
        ({"source": ["a", "a", "a"], "target": ["x", "", "x"]}, "duplicate rows"),
        ({"source": [], "target": [], "weight": []}, "no rows"),
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


def test_records_are_moved_with_their_lexical_table(tmp_path, monkeypatch, call, make_records, make_sentence):
    """The table is beside the records, wherever the run read it; another table in its place is refused."""
    monkeypatch.chdir(tmp_path)
    write_lexical_table("t.parquet", counted(), "")
    table = TableFile("/far/away/t.parquet", file_hash("t.parquet"))
    maps = ExtractionOptions("attn_n", "0.0:awi,1", "product", "awo")
    profile = replace(fit_profile((), (0, 1), "m"), maps=maps, chosen_by="agreement", table=table)
    made = [make_sentence(0, source="a b c . </s>", target="x y z . </s>")]
    make_records(tmp_path / "run", made, signature={"model": "m"}, profile=profile.to_json())
    status, _, messages = call("extract", "run")
    assert (status, says(messages, "run/t.parquet: cannot read the file")) == (1, True)
    assert call("extract", "run", "--table", "none")[0] == 0
    Path("t.parquet").rename("run/t.parquet")
    status, out, messages = call("extract", "run")
    assert (status, f"|table:{table.hash}|" in messages) == (0, True)
    assert call("extract", "run", "--table", "run/t.parquet")[1] == out
    write_lexical_table("run/t.parquet", counted(20), "")
    assert says(call("extract", "run")[2], f"run/t.parquet with hash {table.hash}")
