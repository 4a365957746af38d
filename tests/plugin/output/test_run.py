"""Plans, signatures and writers of a run."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import ExtractionOptions
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.records.manifest import Manifest, finished_run
from alignment_eval.records.store import Records, RunInfo
from fairseq_norm_plugin.output import writers
from fairseq_norm_plugin.output.identity import data_hash, generation_options, model_hash, signature_hash
from fairseq_norm_plugin.output.run import Output, Plan
from fairseq_norm_plugin.output.writers import (
    AlignmentParts,
    IfExists,
    RecordParts,
    parts_directory,
    pharaoh_line,
    written_ids,
)

QUANTITIES = ("head_attn_w", "transformed_norm", "layer_attn_n")


def sentence(id_, rank=0, status="ok"):
    side = SentenceSide(("a", "b", "</s>"), np.array([0, 1, -1], dtype=np.int32))
    maps = np.eye(3, dtype=np.float32)
    arrays = {
        "head_attn_w": np.stack([[maps, maps]]),
        "transformed_norm": np.ones((1, 2, 3), dtype=np.float32),
        "layer_attn_n": maps[None],
    }
    if status != "ok":
        side, arrays = SentenceSide((), np.empty(0, dtype=np.int32)), {}
    return SentenceMaps(id_, side, side, (0,), rank=rank, status=status, arrays=arrays)


def info(shard=0, shards=1, size=3, **signature):
    return RunInfo(
        signature, signature_hash(signature), ("attn_w", "attn_n"), (0,), 2, "float32", size, 1, shard, shards
    )


def iterator(batches, size):
    return SimpleNamespace(dataset=range(size), frozen_batches=batches)


def test_plans_of_shards_are_disjoint_and_complete():
    batches = [[0, 3], [1], [4, 2]]
    plans = [Plan.of("test", iterator(batches, 6), {5: "skipped"}, {"num_shards": 2, "shard_id": k}) for k in (0, 1)]
    assert [plan.batches for plan in plans] == [[[0, 3], [4, 2]], [[1]]]
    assert [s.id for s in plans[0].stubs((0,))] == [5]
    assert plans[1].stubs((0,)) == []


def test_a_plan_leaves_out_what_is_written():
    whole = iterator([[0, 3], [1], [4, 2]], 5)
    plan = Plan.of("test", whole, {}, {}, written=np.array([1, 3]))
    assert (plan.batches, plan.kept) == ([[0], [4, 2]], 2)
    assert Plan.of("test", whole, {}, {}).iterator(whole) is whole


def test_a_run_over_nothing_is_an_error():
    with pytest.raises(InputError, match=r"subset test leaves no sentence to process \(2 sentences, 1 skipped"):
        Plan.of("test", iterator([], 2), {1: "long"}, {})


OPTIONS = ExtractionOptions("attn_n", 0, setting="awo")
PART = "part-00000-of-00001-{:05d}.parquet"
MANIFEST = "_shard-00000-of-00001.json"


def record_parts(directory, resume=False, overwrite=False, **fields):
    return RecordParts(directory, info(**fields), QUANTITIES, IfExists(resume, overwrite))


def alignment_parts(file, resume=False, overwrite=False, shard=0, shards=1, size=3, **signature):
    manifest = Manifest("alignments", signature, signature_hash(signature), size, shard, shards)
    return AlignmentParts(file, manifest, partial(pharaoh_line, options=OPTIONS), IfExists(resume, overwrite))


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_output_finishes_after_the_last_sentence(tmp_path, capsys):
    plan = Plan.of("test", iterator([[2, 0]], 3), {1: "skipped: long"}, {})
    path = tmp_path / "deep" / "hyp.pharaoh"
    output = Output(plan, (0,), [record_parts(tmp_path / "r"), alignment_parts(path)], part_sentences=100)
    output.write([2], [sentence(2)])
    assert not output.finished
    assert names(path.parent) == ["hyp.pharaoh.parts"]
    assert names(tmp_path / "r") == [f".{PART.format(0)}.tmp"]
    with pytest.raises(InputError, match="sentence 2 came twice"):
        output.write([2], [sentence(2)])
    with pytest.raises(InputError, match="sentence 7 came twice or was not asked for"):
        output.write([7], [sentence(7)])
    assert capsys.readouterr().err == ""
    output.write([0], [sentence(0)])
    assert output.finished
    assert path.read_text() == "0-0 1-1\n\n0-0 1-1\n"
    assert sorted((s.id, s.status) for s in Records(tmp_path / "r")) == [(0, "ok"), (1, "skipped: long"), (2, "ok")]
    assert names(path.parent) == ["hyp.pharaoh"]
    assert re.fullmatch(r"test: shard 0 of 1: 2 sentences in [\d.]+ s, [\d.]+ sentences/s\n", capsys.readouterr().err)


def test_parts_hold_so_many_sentences(tmp_path):
    plan = Plan.of("test", iterator([[i] for i in range(5)], 5), {}, {"num_shards": 1})
    output = Output(plan, (0,), [record_parts(tmp_path / "r", size=5)], part_sentences=2)
    for i in range(5):
        output.write([i], [sentence(i, rank) for rank in range(2)])
        assert len(list((tmp_path / "r").glob("part-*"))) == (0, 1, 1, 2, 3)[i]
    manifest = finished_run(tmp_path / "r", "records")[0]
    assert [(part.name, part.sentences) for part in manifest.parts] == [
        (PART.format(0), 2),
        (PART.format(1), 2),
        (PART.format(2), 1),
    ]
    assert [(s.id, s.rank) for s in Records(tmp_path / "r")] == [(i, rank) for i in range(5) for rank in range(2)]


@pytest.mark.parametrize("make", [record_parts, alignment_parts], ids=["records", "alignments"])
def test_a_begun_shard_is_refused_continued_or_replaced(tmp_path, make):
    place = tmp_path / "x"
    content = "records" if make is record_parts else "alignments"
    directory = place if make is record_parts else parts_directory(place)
    writer = make(place, shards=2, a=1)
    writer.write([sentence(2)])
    writer.commit()
    writer.write([sentence(1)])
    writer.abandon()
    assert written_ids(directory, content, 0, 2).tolist() == [2]
    assert written_ids(directory, content, 1, 2).tolist() == []
    with pytest.raises(
        InputError, match=r"this shard of the same run is begun \(1 parts\) already: give --norm-records-r"
    ):
        make(place, shards=2, a=1)
    with pytest.raises(InputError, match=r"is of another run \(its a, b differ\)"):
        make(place, shards=2, a=2, b=3, overwrite=True)
    writer = make(place, shards=2, a=1, resume=True)
    writer.write([sentence(1), sentence(2), sentence(0, status="skipped")])
    writer.finish()
    assert written_ids(directory, content, 0, 2).tolist() == [0, 1, 2]
    before = {path: path.stat().st_mtime_ns for path in directory.iterdir()}
    with pytest.raises(InputError, match="this shard of the same run is finished already"):
        make(place, shards=2, a=1)
    writer = make(place, shards=2, a=1, resume=True)
    assert writer.manifest.finished
    assert writer.manifest.skipped == 1
    writer.write([sentence(1)])
    writer.finish()
    assert {path: path.stat().st_mtime_ns for path in directory.iterdir()} == before
    writer = make(place, shards=2, a=1, overwrite=True)
    assert {path: path.stat().st_mtime_ns for path in directory.iterdir()} == before
    writer.write([sentence(0)])
    writer.finish()
    assert written_ids(directory, content, 0, 2).tolist() == [0]
    assert len(names(directory)) == 2


def test_an_abandoned_part_leaves_nothing(tmp_path):
    writer = record_parts(tmp_path)
    writer.write([sentence(0)])
    writer.abandon()
    assert names(tmp_path) == []


def test_what_a_killed_run_left_is_replaced(tmp_path):
    (tmp_path / f".{PART.format(0)}.tmp").write_bytes(b"half")
    (tmp_path / PART.format(0)).write_bytes(b"whole, but not in a manifest")
    writer = record_parts(tmp_path, size=1)
    writer.write([sentence(0)])
    writer.finish()
    assert names(tmp_path) == [MANIFEST, PART.format(0)]
    assert len(list(Records(tmp_path))) == 1


def test_an_empty_shard_is_a_finished_one(tmp_path):
    for shard in range(2):
        writer = record_parts(tmp_path, size=1, shard=shard, shards=2)
        writer.write([sentence(0)] if shard else [])
        writer.finish()
    assert len(names(tmp_path)) == 3
    assert [s.id for s in Records(tmp_path)] == [0]


def test_an_alignments_file_is_not_lost(tmp_path):
    (tmp_path / "a").write_text("mine")
    for resume in (False, True):
        with pytest.raises(InputError, match="a: there is a file already, which does not say what run it is of"):
            alignment_parts(tmp_path / "a", resume=resume)
    writer = alignment_parts(tmp_path / "a", overwrite=True, size=1)
    writer.write([sentence(0)])
    assert (tmp_path / "a").read_text() == "mine"
    (tmp_path / "a.parts" / ".x.tmp").write_text("of a killed run")
    writer.finish()
    assert (tmp_path / "a").read_text() == "0-0 1-1\n"
    assert names(tmp_path) == ["a"]


def test_a_file_in_the_place_of_the_directory(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match="f: is a file: expected a directory for --norm-records"):
        record_parts(tmp_path / "f")


def test_many_small_writes_make_few_row_groups(tmp_path):
    writer = record_parts(tmp_path, size=50)
    for i in range(50):
        writer.write([sentence(i)])
    writer.finish()
    assert pq.ParquetFile(tmp_path / PART.format(0)).num_row_groups == 1


@pytest.fixture
def full_disk(monkeypatch):
    """Records are written a sentence at a time, in the background, and the third is one too many."""
    written = []

    class Writer(pq.ParquetWriter):
        def write_table(self, table, *args, **kwargs):
            written.extend(table["id"].to_pylist())
            if len(written) > 2:
                raise OSError("No space left on device")
            super().write_table(table, *args, **kwargs)

    monkeypatch.setattr(pq, "ParquetWriter", Writer)
    monkeypatch.setattr(writers, "_BUFFER_BYTES", 0)
    return written


def test_what_fails_in_the_background_fails_the_run(tmp_path, full_disk):
    writer = record_parts(tmp_path, size=9)
    for i in range(3):
        writer.write([sentence(i)])
    time.sleep(0.2)
    for _ in range(2):  # and goes on failing
        with pytest.raises(OSError, match="No space left"):
            writer.write([sentence(8)])
    with pytest.raises(OSError, match="No space left"):
        writer.commit()
    with pytest.raises(OSError, match="No space left"):
        writer.finish()
    assert full_disk == [0, 1, 2]
    writer.abandon()
    assert names(tmp_path) == []


def test_what_fails_in_the_background_last_fails_the_part(tmp_path, full_disk):
    writer = record_parts(tmp_path, size=9)
    writer.write([sentence(0)])
    writer.commit()
    writer.write([sentence(1)])
    writer.write([sentence(2)])
    with pytest.raises(OSError, match="No space left"):
        writer.finish()
    writer.abandon()
    assert names(tmp_path) == [MANIFEST, PART.format(0)]
    assert written_ids(tmp_path, "records", 0, 1).tolist() == [0]


def test_lots_are_written_in_the_order_in_which_they_came(tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "_BUFFER_BYTES", 0)
    writer = record_parts(tmp_path, size=30)
    order = np.random.default_rng(0).permutation(30).tolist()
    for i in order:
        writer.write([sentence(i)])
    writer.finish()
    assert [s.id for s in Records(tmp_path)] == order
    assert pq.ParquetFile(tmp_path / PART.format(0)).num_row_groups == 30


def test_values_that_float16_cannot_hold_fail_the_run(tmp_path):
    half = replace(info(size=1), dtype="float16")
    writer = RecordParts(tmp_path, half, QUANTITIES, IfExists())
    one = sentence(0)
    writer.write([replace(one, arrays={**one.arrays, "transformed_norm": np.full((1, 2, 3), 1e5, np.float32)})])
    with pytest.raises(InputError, match=r"sentence 0: transformed_norm has a row whose largest value is 1e\+05"):
        writer.finish()
    writer.abandon()
    assert names(tmp_path) == []


def test_hashes_see_what_changes(tmp_path, build):
    model, other = build(seed=1), build(seed=1)
    assert model_hash([model]) == model_hash([other])
    with torch.no_grad():
        other.decoder.layers[0].fc1.bias[0] += 1e-3
    assert model_hash([model]) != model_hash([other])
    assert model_hash([model.half()]) != model_hash([build(seed=1)])
    for name in ("test.de-en.de.bin", "dict.de.txt", "train.de-en.de.bin"):
        (tmp_path / name).write_text("a")
    before = data_hash(str(tmp_path), "test", ("de", "en"))
    (tmp_path / "train.de-en.de.bin").write_text("b")
    assert data_hash(str(tmp_path), "test", ("de", "en")) == before
    assert data_hash(str(tmp_path), "test", ("en", "de")) == before  # the direction stands in the signature by itself
    (tmp_path / "test.de-en.de.bin").write_text("b")
    assert data_hash(str(tmp_path), "test", ("de", "en")) != before


def test_printing_belongs_to_no_signature():
    first = SimpleNamespace(beam=5, print_alignment="hard", lenpen=1.0)
    second = SimpleNamespace(beam=5, print_alignment=None, lenpen=1.0)
    assert generation_options(first) == generation_options(second) == {"beam": 5, "lenpen": 1.0}


@pytest.mark.parametrize(("unknown", "warned"), [(1, True), (0, False)])
def test_many_unknown_tokens_are_said(caplog, unknown, warned):
    plan = Plan.of("test", iterator([[0]], 1), {}, {})
    side = SentenceSide(("a", "<unk>" if unknown else "b", "</s>"), np.array([0, 1, -1], dtype=np.int32))
    Output(plan, (0,), [], part_sentences=1).write([0], [replace(sentence(0), source=side)])
    assert ("1 of 6 tokens are <unk>: is the text split into the subwords" in caplog.text) is warned
