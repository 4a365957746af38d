"""Plans, signatures and sinks of a run."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from alignment_eval.errors import InputError
from alignment_eval.extract import ExtractionOptions
from alignment_eval.maps import SentenceMaps, Side
from alignment_eval.records import Records, RunInfo
from fairseq_norm_plugin.run import Output, Plan
from fairseq_norm_plugin.signature import data_hash, generation_options, model_hash, signature_hash
from fairseq_norm_plugin.sinks import AlignmentFile, PartWriter, is_finished

QUANTITIES = ("head_attn_w", "transformed_norm", "layer_attn_n")


def sentence(id_, rank=0, status="ok"):
    side = Side(("a", "b", "</s>"), np.array([0, 1, -1], dtype=np.int32))
    maps = np.eye(3, dtype=np.float32)
    arrays = {
        "head_attn_w": np.stack([[maps, maps]]),
        "transformed_norm": np.ones((1, 2, 3), dtype=np.float32),
        "layer_attn_n": maps[None],
    }
    if status != "ok":
        side, arrays = Side((), np.empty(0, dtype=np.int32)), {}
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
    assert [plan.expected for plan in plans] == [{0, 3, 4, 2}, {1}]
    assert [s.id for s in plans[0].stubs((0,))] == [5]
    assert plans[1].stubs((0,)) == []


def test_a_run_over_nothing_is_an_error():
    with pytest.raises(InputError, match=r"subset test leaves no sentence to process \(2 sentences, 1 skipped"):
        Plan.of("test", iterator([], 2), {1: "long"}, {})


def test_output_finishes_after_the_last_sentence(tmp_path):
    plan = Plan.of("test", iterator([[2, 0]], 3), {1: "skipped: long"}, {})
    writer = PartWriter(tmp_path / "r", info(), QUANTITIES, overwrite=False)
    path = tmp_path / "deep" / "hyp.pharaoh"
    options = ExtractionOptions("attn_n", 0, setting="awo")
    output = Output(plan, (0,), [writer, AlignmentFile(path, options)])
    output.write([2], [sentence(2)])
    assert not output.finished
    assert not path.exists()
    assert [p.name for p in (tmp_path / "r").iterdir()] == [".part-00000-of-00001.parquet.tmp"]
    with pytest.raises(InputError, match="sentence 2 came twice"):
        output.write([2], [sentence(2)])
    with pytest.raises(InputError, match="sentence 7 came twice or was not asked for"):
        output.write([7], [sentence(7)])
    output.write([0], [sentence(0)])
    assert output.finished
    assert path.read_text() == "0-0 1-1\n\n0-0 1-1\n"
    assert sorted((s.id, s.status) for s in Records(tmp_path / "r")) == [(0, "ok"), (1, "skipped: long"), (2, "ok")]
    assert [p.name for p in path.parent.iterdir()] == ["hyp.pharaoh"]


def test_a_part_is_refused_kept_or_replaced(tmp_path):
    def write(overwrite=False, **signature):
        writer = PartWriter(tmp_path, info(size=1, **signature), QUANTITIES, overwrite)
        writer.write([sentence(0)])
        writer.finish()

    assert not is_finished(tmp_path, info(a=1))
    write(a=1)
    assert is_finished(tmp_path, info(a=1))
    with pytest.raises(InputError, match=r"--norm-records-resume to keep it, --norm-records-overwrite to replace it"):
        write(a=1)
    write(a=1, overwrite=True)
    with pytest.raises(InputError, match=r"is of another run \(its a, b differ\)"):
        write(a=2, b=3, overwrite=True)
    with pytest.raises(InputError, match=r"is of another run"):
        is_finished(tmp_path, info(a=2))


def test_an_abandoned_part_leaves_nothing(tmp_path):
    writer = PartWriter(tmp_path, info(), QUANTITIES, overwrite=False)
    writer.write([sentence(0)])
    writer.abandon()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_replaced(tmp_path):
    (tmp_path / ".part-00000-of-00001.parquet.tmp").write_bytes(b"half")
    writer = PartWriter(tmp_path, info(size=1), QUANTITIES, overwrite=False)
    writer.write([sentence(0)])
    writer.finish()
    assert [p.name for p in tmp_path.iterdir()] == ["part-00000-of-00001.parquet"]
    assert len(list(Records(tmp_path))) == 1


def test_a_file_in_the_place_of_the_directory(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match="f: is a file: expected a directory for --norm-records"):
        PartWriter(tmp_path / "f", info(), QUANTITIES, overwrite=False)


def test_many_small_writes_make_few_row_groups(tmp_path):
    writer = PartWriter(tmp_path, info(size=50), QUANTITIES, overwrite=False)
    for i in range(50):
        writer.write([sentence(i)])
    writer.finish()
    assert pq.ParquetFile(writer.path).num_row_groups == 1


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
    side = Side(("a", "<unk>" if unknown else "b", "</s>"), np.array([0, 1, -1], dtype=np.int32))
    Output(plan, (0,), []).write([0], [replace(sentence(0), source=side)])
    assert ("1 of 6 tokens are <unk>: is the text split into the subwords" in caplog.text) is warned
