"""A pair that fails costs only itself."""

from types import SimpleNamespace

import pytest
import torch

from alignment_eval.extraction.corpus import AlignedPair
from fairseq_norm_plugin.aligner.separately import align_separately
from fairseq_norm_plugin.text.subwords import MarkedSubwords
from fairseq_norm_plugin.text.tokenise import TextPipeline


class Failing:
    """An aligner that fails with a window that holds a bad word, and counts its windows."""

    directions = (SimpleNamespace(pipelines=[TextPipeline(MarkedSubwords("none"))] * 2),)

    def __init__(self, error=None):
        self.error = error or ValueError("bad\x1b word")
        self.windows = 0

    def align(self, windows):
        self.windows += 1
        for window in windows:
            for id_, (source, _) in window:
                yield AlignedPair(id_, None)
                if "bad" in source.words:
                    raise self.error


@pytest.mark.parametrize("bad", [[], [3], [2, 6], range(7)])
def test_pairs_that_fail(bad):
    pairs = {id_ + 5: ("bad" if id_ in bad else f"w{id_}", "x") for id_ in range(7)}
    aligner = Failing()
    found = align_separately(aligner, pairs)
    assert (aligner.windows == 1) == (not bad)  # a good window is aligned together
    assert list(found) == list(pairs)
    for id_, pair in found.items():
        failed = id_ - 5 in bad
        assert (pair.source, pair.target, pair.links) == (*pairs[id_], [])
        assert bool(pair.source_words) != failed
        assert pair.status == (r"failed: bad\x1b word" if failed else "ok")


def test_what_is_no_text():
    found = align_separately(Failing(), {0: ("a", None), 1: (float("nan"), "b"), 2: ("a", "b")})
    assert [pair.status for pair in found.values()] == ["not text", "not text", "ok"]


def test_errors_of_no_single_pair():
    for error in (MemoryError(), torch.OutOfMemoryError()):
        with pytest.raises(type(error)):
            align_separately(Failing(error), {0: ("bad", "b"), 1: ("a", "b")})
