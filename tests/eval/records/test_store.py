from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import SentenceMaps, status_of
from alignment_eval.records.manifest import Part, read_manifests
from alignment_eval.records.store import Records, RunInfo, arrow_schema, parquet_writer, part_ids, to_table
from tests.eval.records.edited_parts import PART, column, edited
from tests.facts import facts

Factory = Callable[..., SentenceMaps]
Writer = Callable[..., Path]


def assert_same(got: SentenceMaps, expected: SentenceMaps, dtype: type = np.float32) -> None:
    for name in ("id", "rank", "score", "status", "layers"):
        assert getattr(got, name) == getattr(expected, name)
    for side in ("source", "target"):
        assert getattr(got, side).tokens == getattr(expected, side).tokens
        np.testing.assert_array_equal(getattr(got, side).words, getattr(expected, side).words)
        assert getattr(got, side).words.dtype == np.int32
    assert got.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        assert got.arrays[name].dtype == dtype
        np.testing.assert_array_equal(got.arrays[name], array.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_round_trip(tmp_path: Path, make_sentence: Factory, make_records: Writer, dtype: type) -> None:
    sentences = [
        make_sentence(0, score=-1.5),
        make_sentence(1, status="skipped: 1025 tokens, --max-source-positions is 1024"),
        make_sentence(2, source="</s>", target="</s>"),
        make_sentence(3, source="ä@@ ß 中 </s>", target="<en> x </s>"),
        *(make_sentence(i) for i in range(4, 140)),  # more than two batches of the reader
    ]
    records = Records(make_records(tmp_path / "run", sentences, dtype=np.dtype(dtype).name))
    assert records.info.dtype == np.dtype(dtype).name
    assert (records.info.layers, records.info.heads, records.info.size) == ((0, 1), 3, 140)
    got = list(records)
    assert len(got) == len(sentences)
    for one, expected in zip(got, sentences):
        assert_same(one, expected, dtype)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("transformed_norm", 65520.0, "6.55e+04"),  # the first that float16 rounds to infinity
        ("layer_attn_n", 6.0e-5, "6e-05"),
    ],
)
def test_float16_that_cannot_hold_the_values(
    tmp_path: Path, make_sentence: Factory, make_records: Writer, name: str, value: float, said: str
) -> None:
    s = make_sentence(7)
    array = s.arrays[name].copy()
    array[-1, -1] = 0
    array[-1, -1, 1] = value
    bad = replace(s, arrays={**s.arrays, name: array})
    with pytest.raises(
        InputError,
        match=facts(f"7: {name} has a row whose largest value is {said} … 6.1e-05 to 65504"),
    ):
        make_records(tmp_path / "half", [make_sentence(0), bad], dtype="float16")
    make_records(tmp_path / "single", [make_sentence(0), bad], dtype="float32", size=8)


def test_float16_holds_what_says_nothing_of_alignments(
    tmp_path: Path, make_sentence: Factory, make_records: Writer
) -> None:
    """Rows of zeros, and small values beside large ones."""
    s = make_sentence(0)
    array = s.arrays["layer_attn_n"].copy()
    array[0, :2] = [[0] * 5, [1e-9, 0, 0, 0, 1]]
    (got,) = Records(make_records(tmp_path, [replace(s, arrays={**s.arrays, "layer_attn_n": array})], dtype="float16"))
    np.testing.assert_array_equal(got.arrays["layer_attn_n"], array.astype(np.float16))


def test_stub_that_keeps_its_text(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    stub = replace(make_sentence(0), status="too long", arrays={})
    (got,) = Records(make_records(tmp_path, [stub], heads=3))
    assert_same(got, stub)


def test_all_stubs(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    directory = make_records(tmp_path, [make_sentence(i, status="skipped") for i in range(3)])
    assert [s.status for s in Records(directory)] == ["skipped"] * 3


def test_no_sentences(tmp_path: Path, make_records: Writer) -> None:
    assert list(Records(make_records(tmp_path, []))) == []


@given(shards=st.integers(1, 4), size=st.integers(0, 9), data=st.data())
@settings(max_examples=15, deadline=None)
def test_any_number_of_shards_gives_the_same_sentences(
    tmp_path_factory: pytest.TempPathFactory,
    make_sentence: Factory,
    make_records: Writer,
    shards: int,
    size: int,
    data: st.DataObject,
) -> None:
    order = data.draw(st.permutations(range(size)))
    directory = make_records(tmp_path_factory.mktemp("run"), [make_sentence(i) for i in order], shards=shards)
    got = {s.id: s for s in Records(directory)}
    assert sorted(got) == list(range(size))
    for id_, one in got.items():
        assert_same(one, make_sentence(id_))


def test_best_of_an_nbest_list(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    sentences = [make_sentence(i, rank=rank) for i in range(2) for rank in range(3)]
    records = Records(make_records(tmp_path, sentences, nbest=3))
    assert [(s.id, s.rank) for s in records.best()] == [(0, 0), (1, 0)]
    assert len(list(records)) == 6


def test_stray_files_are_ignored(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    make_records(tmp_path, [make_sentence()])
    for name in (f".{PART}.tmp", f"{PART}.tmp", "notes.txt", "part-00000-of-00001-00001.parquet"):
        (tmp_path / name).write_bytes(b"half a fi")
    assert [s.id for s in Records(tmp_path)] == [0]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=facts("nothing: no such directory … the --norm-records directory of a run")):
        Records(tmp_path / "nothing")
    (tmp_path / "file").write_text("text")
    with pytest.raises(InputError, match=r"file: no such directory"):
        Records(tmp_path / "file")
    with pytest.raises(InputError, match=facts("no manifests (_shard-NNNNN-of-NNNNN.json)")):
        Records(tmp_path)


def test_parts_are_written_value_byte_by_value_byte(tmp_path: Path, make_sentence: Factory) -> None:
    """Which makes them shorter; and any reader of Parquet reads them."""
    info = RunInfo({}, ("attn_w",), (0, 1), 3, "float32", 200, 1, 0, 1)
    schema = arrow_schema(info, ("head_attn_w",))
    table = to_table([make_sentence(i) for i in range(200)], schema)
    with parquet_writer(tmp_path / "part", schema) as writer:
        writer.write_table(table)
    pq.write_table(table, tmp_path / "plain", compression="zstd", use_dictionary=False)
    assert (tmp_path / "part").stat().st_size < 0.95 * (tmp_path / "plain").stat().st_size
    assert pq.read_table(tmp_path / "part").equals(table)


def test_several_parts_of_a_shard(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    sentences = [make_sentence(i) for i in range(6)]
    make_records(tmp_path / "second", sentences[4:], size=6)
    (tmp_path / "second" / PART).rename(tmp_path / "part-00000-of-00001-00001.parquet")
    make_records(tmp_path, sentences[:4], size=6)
    (manifest,) = read_manifests(tmp_path, "records")
    second = Part.of(tmp_path / "part-00000-of-00001-00001.parquet", 2)
    replace(manifest, parts=(*manifest.parts, second)).write(tmp_path)
    for got, expected in zip(Records(tmp_path), sentences):
        assert_same(got, expected)
    assert part_ids(tmp_path / second.name) == [4, 5]
    (tmp_path / second.name).unlink()
    with pytest.raises(InputError, match=r"-00001.parquet: no such file, but _shard-00000-of-00001.json lists it"):
        Records(tmp_path)


def test_damaged_part(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    make_records(tmp_path, [make_sentence(i) for i in range(20)])
    content = bytearray((tmp_path / PART).read_bytes())
    content[1000] ^= 1
    (tmp_path / PART).write_bytes(bytes(content))
    with pytest.raises(InputError, match=facts(f"{PART}: the part is damaged (checksum")):
        list(Records(tmp_path))


def test_listed_part_that_is_no_parquet_file(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    make_records(tmp_path, [make_sentence()])
    (tmp_path / PART).write_text("text")
    (manifest,) = read_manifests(tmp_path, "records")
    replace(manifest, parts=(Part.of(tmp_path / PART, 1),)).write(tmp_path)
    with pytest.raises(InputError, match=facts(f"{PART}: … not a part of records … run its shard again")):
        list(Records(tmp_path))
    with pytest.raises(InputError, match=facts(f"{PART}: … not a part")):
        part_ids(tmp_path / PART)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda table: table.drop_columns("score"), "column 'score' is missing: expected type double"),
        (lambda table: table.append_column("more", [[1]]), "column 'more' has type int64"),
        (lambda table: table.append_column("rank", [[1]]), "column 'rank' has type int64"),
        (column("id", "0", pa.string()), "column 'id' has type string: expected int64"),
        (column("id", None), "column id has null values"),
        (
            column("layer_attn_n", [1] * 50, pa.list_(pa.float64())),
            "column 'layer_attn_n' has type list<element: double>",
        ),
        (column("source_tokens", ["a@@", None, "c", ".", "</s>"]), "column source_tokens has null values"),
        (column("source_tokens", None), "column source_tokens has null values"),
        (column("source_words", [0, 0, 1, 2]), "sentence 0 has 5 source tokens, but source_words"),
        (column("target_special", [True]), "sentence 0 has 5 target tokens, but target_special"),
        (column("source_words", [0, 0, 1, 2**31 - 1, -1]), "source_words has a number"),
        (column("source_words", [0, 0, 1, -2, -1]), "source_words has a number"),
        (column("source_special", [False] * 5), "source_special contradicts source_words"),
        (
            column("layer_attn_n", [-1] * 50),
            "column layer_attn_n has the value -1.0: expected a finite number, 0 or more",
        ),
        (column("layer_attn_n", [None] * 50), "column layer_attn_n has null values"),
        (column("head_attn_w", [float("nan")] * 150), "column head_attn_w has the value nan"),
        (column("score", float("-inf")), "column score has the value -inf: expected a finite number"),
        (column("shape", [2, 3, 5, None]), "column shape has null values"),
        (column("shape", []), "sentence 0 has shape []"),
    ],
)
def test_columns_of_another_form(
    tmp_path: Path,
    make_sentence: Factory,
    make_records: Writer,
    change: Callable[[pa.Table], pa.Table],
    text: str,
) -> None:
    directory = edited(make_records(tmp_path, [make_sentence(0)]), change)
    with pytest.raises(InputError, match=facts(f"{PART}: … not a part of records ({text}")):
        list(Records(directory))


def test_tokens_that_are_not_utf8(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    def change(table: pa.Table) -> pa.Table:
        tokens = pa.array([[b"a", b"\xff", b"c", b".", b"</s>"]], pa.list_(pa.binary())).view(pa.list_(pa.string()))
        return table.set_column(table.schema.get_field_index("source_tokens"), "source_tokens", tokens)

    with pytest.raises(InputError, match=facts("not a part of records … UTF8")):
        list(Records(edited(make_records(tmp_path, [make_sentence(0)]), change)))


def test_ids_of_a_part_of_another_form(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    directory = make_records(tmp_path, [make_sentence(0)])
    for change, text in (
        (lambda table: table.drop_columns("id"), "'id' is missing"),
        (column("id", None), "id has null"),
        (column("id", "0", pa.string()), "'id' has type string"),
    ):
        with pytest.raises(InputError, match=facts(f"{PART}: … {text}")):
            part_ids(edited(directory, change) / PART)
        make_records(tmp_path, [make_sentence(0)])


def test_doubled_id_over_shards(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    make_records(
        tmp_path, [make_sentence(0), make_sentence(1), make_sentence(2), make_sentence(0)], shards=2, held=(2, 1)
    )
    with pytest.raises(
        InputError,
        match=facts("part-00001-of-00002-00000.parquet … sentence 0 (rank 0)"),
    ):
        list(Records(tmp_path))


@pytest.mark.parametrize(
    ("ids", "size", "text"),
    [
        ([0, 2], 3, "ids 1 are missing … every id from 0 to 2"),
        ([0], 9, "ids 1, 2, 3, 4, 5, … (8 in"),
        ([0, 1, 5], 2, "ids 5 are unknown … every id from 0 to 1"),
    ],
)
def test_ids_are_complete(
    tmp_path: Path, make_sentence: Factory, make_records: Writer, ids: list[int], size: int, text: str
) -> None:
    make_records(tmp_path, [make_sentence(i) for i in ids], size=size, held=[size])
    with pytest.raises(InputError, match=facts(text)):
        list(Records(tmp_path))


@pytest.mark.parametrize("size", [3, 300_000_000, 10**18])
def test_a_size_that_the_parts_do_not_hold(
    tmp_path: Path, make_sentence: Factory, make_records: Writer, size: int
) -> None:
    make_records(tmp_path, [make_sentence(0), make_sentence(1)], size=size)
    with pytest.raises(InputError, match=facts(f"parts hold 2 sentences … {size}")):
        Records(tmp_path)


@pytest.mark.parametrize("size", [300_000_000, 10**18])
def test_a_size_that_the_parts_only_say_to_hold(
    tmp_path: Path, make_sentence: Factory, make_records: Writer, size: int
) -> None:
    make_records(tmp_path, [make_sentence(0), make_sentence(2)], size=size, held=[size])
    with pytest.raises(InputError, match=facts(f"ids 1, 3, 4, 5, 6, … ({size - 2} in")):
        list(Records(tmp_path))


@pytest.mark.parametrize(
    ("details", "text"),
    [
        ({"layers": (1, 1)}, "details.layers is [1, 1]"),
        ({"layers": (0,)}, "details.layers is [0]"),  # not those of the signature
        ({"layers": (0, -1), "signature": {}}, "details.layers[1] is -1: expected int >= 0"),
        ({"layers": (0, 1, 2), "signature": {}}, "sentence 0 … shape [2, 3, 5, 5] … [3, 3, 5, 5]"),
        ({"heads": 4, "signature": {}}, "sentence 0 … shape [2, 3, 5, 5] … [2, 4, 5, 5]"),
        ({"heads": -1}, "details.heads is -1"),
        ({"dtype": "float32", "signature": {"dtype": "float16"}}, "details.dtype is 'float32'"),
        ({"kinds": 3}, "details.kinds is 3: expected array"),
        ({"profile": 3}, "details.profile is 3: expected str"),
        ({"signature": {"generation": "x"}}, "signature.generation is 'x': expected object"),
        ({"signature": {"model": 7}}, "signature.model is 7: expected str"),
    ],
)
def test_details_fit_signature_and_shapes(
    tmp_path: Path, make_sentence: Factory, make_records: Writer, details: dict[str, Any], text: str
) -> None:
    make_records(tmp_path, [make_sentence(0)], **{"signature": {"layers": [0, 1]}, **details})
    with pytest.raises(InputError, match=facts(text)):
        list(Records(tmp_path))


def test_values_that_do_not_fill_the_shape(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    s = make_sentence(0)
    damaged = replace(s, arrays={**s.arrays, "layer_attn_n": s.arrays["layer_attn_n"][:, 1:]})
    make_records(tmp_path, [damaged])
    with pytest.raises(InputError, match=facts("layer_attn_n of sentence 0 … 40 values … 2×5×5")):
        list(Records(tmp_path))


def test_only_the_quantities_of_the_schema_are_written(
    make_sentence: Factory, tmp_path: Path, make_records: Writer
) -> None:
    directory = make_records(tmp_path, [make_sentence(0)], quantities=("head_attn_w",), kinds=("attn_w",))
    (got,) = Records(directory)
    assert got.kinds == ("attn_w", "attnres_w")
    assert Records(directory).info.kinds == ("attn_w",)
    schema = arrow_schema(Records(directory).info, ("head_attn_w",))
    assert to_table([got], schema).schema.names == pq.read_schema(directory / PART).names


def test_maps_of_uncertain_words(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    sentences = [replace(make_sentence(i), status=status_of(i > 0, i > 1)) for i in range(3)]
    assert [s.status for s in sentences][1:] == ["unknown target subwords", "ok"]
    for sentence, read in zip(sentences, Records(make_records(tmp_path, sentences, heads=3))):
        assert_same(read, sentence)


def test_records_of_layer_maps_alone(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    """Of kinds such as rollouts, in a run of a model that has heads."""
    sentence = make_sentence()
    sentence = replace(sentence, arrays={"layer_alti": sentence.arrays["layer_attn_n"]})
    (read,) = Records(make_records(tmp_path, [sentence], quantities=["layer_alti"], kinds=("alti",), heads=3))
    assert_same(read, sentence)
