"""Plans of a run, and its output as a whole."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from tests.plugin.output.parts import PART, alignment_writer, names, record_writer, sentence

from alignment_eval.errors import InputError
from alignment_eval.records.manifest import finished_run
from alignment_eval.records.store import Records, RunInfo
from fairseq_norm_plugin.recording.run import Output, Plan
from tests.facts import facts


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
    with pytest.raises(InputError, match=facts("no sentence to process (2 sentences, 1 skipped")):
        Plan.of("test", iterator([], 2), {1: "long"}, {})


def test_output_finishes_after_the_last_sentence(tmp_path, capsys):
    plan = Plan.of("test", iterator([[2, 0]], 3), {1: "skipped: long"}, {})
    path = tmp_path / "deep" / "hyp.pharaoh"
    output = Output(plan, (0,), [record_writer(tmp_path / "r"), alignment_writer(path)], part_sentences=100)
    output.write([2], [sentence(2)])
    assert not output.finished
    assert names(path.parent) == ["hyp.pharaoh.parts"]
    assert not list((tmp_path / "r").glob("[!.]*"))
    with pytest.raises(InputError, match=facts("sentence 2 is a duplicate")):
        output.write([2], [sentence(2)])
    with pytest.raises(InputError, match=facts("sentence 7 is a duplicate or")):
        output.write([7], [sentence(7)])
    assert "shard 0 of 1" not in capsys.readouterr().err
    output.write([0], [sentence(0)])
    assert output.finished
    assert path.read_text() == "0-0 1-1\n\n0-0 1-1\n"
    assert sorted((s.id, s.status) for s in Records(tmp_path / "r")) == [(0, "ok"), (1, "skipped: long"), (2, "ok")]
    assert names(path.parent) == ["hyp.pharaoh", "hyp.pharaoh.manifest.json"]
    assert re.fullmatch(r"test: shard 0 of 1: 2 sentences in [\d.]+ s, [\d.]+ sentences/s\n", capsys.readouterr().err)


def test_parts_hold_so_many_sentences(tmp_path):
    plan = Plan.of("test", iterator([[i] for i in range(5)], 5), {}, {"num_shards": 1})
    output = Output(plan, (0,), [record_writer(tmp_path / "r", size=5)], part_sentences=2)
    for i in range(5):
        output.write([i], [sentence(i, rank) for rank in range(2)])
        assert len(list((tmp_path / "r").glob("part-*"))) == (0, 1, 1, 2, 3)[i]
    parts = finished_run(tmp_path / "r", RunInfo)
    assert [(part.path.name, len(part.ids())) for part in parts] == [
        (PART.format(0), 2),
        (PART.format(1), 2),
        (PART.format(2), 1),
    ]
    assert [(s.id, s.rank) for s in Records(tmp_path / "r")] == [(i, rank) for i in range(5) for rank in range(2)]
