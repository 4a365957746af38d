import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alignment_eval.errors import InputError
from alignment_eval.records import Records
from tests.facts import facts

PART = "part-00000-of-00001-00000.parquet"


def assert_same(got, expected):
    for name in ("rank", "score", "status", "layers"):
        assert getattr(got, name) == getattr(expected, name)
    for side in ("source", "target"):
        assert getattr(got, side).tokens == getattr(expected, side).tokens
        np.testing.assert_array_equal(getattr(got, side).words, getattr(expected, side).words)
        assert getattr(got, side).words.dtype == np.int32
    assert got.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        assert got.arrays[name].dtype == np.float32
        np.testing.assert_array_equal(got.arrays[name], array)


def test_round_trip(tmp_path, make_sentence, make_records):
    sentences = [
        make_sentence(0, score=-1.5),
        make_sentence(1, status="skipped: 1025 tokens, --max-source-positions is 1024"),
        make_sentence(2, source="</s>", target="</s>"),
        make_sentence(3, source="ä@@ ß 中 </s>", target="<en> x </s>"),
        *(make_sentence(i) for i in range(4, 400)),  # more than two batches of the reader in each shard
    ]
    records = Records(make_records(tmp_path / "run", sentences[::-1], shards=3))
    assert (records.info.layers, records.info.heads, records.info.size) == ((0, 1), 3, 400)
    got = list(records)
    assert len(got) == len(sentences)
    for one in got:
        assert_same(one, sentences[one.id])


def test_best_of_an_nbest_list(tmp_path, make_sentence, make_records):
    sentences = [make_sentence(i, rank=rank) for i in range(2) for rank in range(3)]
    records = Records(make_records(tmp_path, sentences, nbest=3))
    assert [(s.id, s.rank) for s in records.best()] == [(0, 0), (1, 0)]
    assert len(list(records)) == 6


def column(name, value):
    """Replace the value of a column in a table of one row."""

    def change(table):
        array = pa.array([value], type=table.schema.field(name).type)
        return table.set_column(table.schema.get_field_index(name), name, array)

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda table: table.drop_columns("score"), "column 'score' is missing: expected type double"),
        (column("layer_attn_n", [None] * 50), "column layer_attn_n has null values"),
        (column("source_words", [0, 0, 1, 2]), "sentence 0 has 5 source tokens, but source_words"),
        (column("source_words", [0, 0, 1, -2, -1]), "source_words has a number"),
        (column("source_words", [0, 0, 1, 5, -1]), "source_words has a number"),
        (column("source_special", [False] * 5), "source_special contradicts source_words"),
        (column("layer_attn_n", [-1] * 50), "column layer_attn_n has the value -1.0: expected a finite number, 0"),
        (column("head_attn_w", [7] * 150), "column head_attn_w has the value 7.0: expected a weight, from 0 to 1"),
        (column("shape", []), "sentence 0 has shape []"),
    ],
)
def test_columns_of_another_form(tmp_path, make_sentence, make_records, change, text):
    table = pq.read_table(make_records(tmp_path, [make_sentence(0)]) / PART)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), tmp_path / PART)
    with pytest.raises(InputError, match=facts(f"{PART}: … not a part of records or alignments ({text}")):
        list(Records(tmp_path))


@pytest.mark.parametrize(
    ("details", "text"),
    [
        ({"layers": (1, 1)}, "layers are [1, 1]: expected each once"),
        ({"kinds": ("attn_q",)}, "kinds are ['attn_q']: expected some of attn_w, attn_n"),
        ({"layers": (0, 1, 2)}, "sentence 0 … shape [2, 3, 5, 5] … [3, 3, 5, 5]"),
        ({"profile": 3}, "profile: Expected `str | null`, got `int`"),
    ],
)
def test_the_manifest_fits_the_shapes(tmp_path, make_sentence, make_records, details, text):
    make_records(tmp_path, [make_sentence(0)], **details)
    with pytest.raises(InputError, match=facts(text)):
        list(Records(tmp_path))
