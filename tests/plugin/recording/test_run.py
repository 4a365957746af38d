"""Plans of a run."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from alignment_eval.errors import InputError
from fairseq_norm_plugin.recording.run import Plan
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
