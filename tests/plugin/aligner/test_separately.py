"""A pair that fails costs only itself."""

from __future__ import annotations

import pytest
import torch

from alignment_eval.extraction.corpus import AlignedPair
from fairseq_norm_plugin.aligner.separately import align_separately


class Reader:
    """Reads lines as a model does."""

    def read(self, line, which):
        return line.split()


class Failing:
    """An aligner that fails with a window that holds a bad word, and counts its windows."""

    def __init__(self, error=None):
        self.error = error or ValueError("bad\x1b word")
        self.windows = 0

    def align(self, windows):
        self.windows += 1
        for window in windows:
            for id_, (source, _) in window:
                yield AlignedPair(id_, source)
                if "bad" in source:
                    raise self.error


@pytest.mark.parametrize("bad", [[], [0], [3], [2, 6], range(7)])
def test_pairs_that_fail(bad):
    pairs = {id_ + 5: ("bad" if id_ in bad else f"w{id_}", "x") for id_ in range(7)}
    found = align_separately(Failing(), Reader(), pairs)
    assert list(found) == list(pairs)
    for id_, pair in found.items():
        failed = id_ - 5 in bad
        assert (pair.id, pair.links) == (id_, None if failed else [f"w{id_ - 5}"])
        assert pair.status == (r"failed: bad\x1b word" if failed else "ok")


def test_a_good_window_is_aligned_together():
    aligner = Failing()
    align_separately(aligner, Reader(), dict.fromkeys(range(9), ("a", "b")))
    assert aligner.windows == 1


def test_what_is_no_text():
    found = align_separately(Failing(), Reader(), {0: ("a", None), 1: (float("nan"), "b"), 2: ("a", "b")})
    assert [pair.status for pair in found.values()] == ["not text", "not text", "ok"]


def test_errors_of_no_single_pair():
    for error in (MemoryError(), torch.OutOfMemoryError()):
        with pytest.raises(type(error)):
            align_separately(Failing(error), Reader(), {0: ("bad", "b"), 1: ("a", "b")})
