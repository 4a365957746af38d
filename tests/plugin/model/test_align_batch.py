"""Batches of sentence pairs in the kinds of tables that engines pass on."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.alignment import Alignment
from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin import AlignBatch
from fairseq_norm_plugin.align.batch import align_separately
from fairseq_norm_plugin.text.pair import TextPipeline
from fairseq_norm_plugin.text.subwords import MarkedSubwords
from tests.demo import DEMO, lines
from tests.facts import facts

MODEL = (DEMO / "checkpoint.pt", DEMO, "de", "en", DEMO / "codes.bpe")
SOURCES, TARGETS = [*lines("de")[:9], "", "ja ."], [*lines("en")[:9], "x", None]


@pytest.fixture(scope="module")
def align():
    return AlignBatch(*MODEL, reverse_path=DEMO / "checkpoint.en-de.pt", device="cpu")


@pytest.fixture(scope="module")
def expected():
    model = fairseq_norm_plugin.load(*MODEL, reverse_path=DEMO / "checkpoint.en-de.pt")
    return list(model.align(SOURCES[:10], TARGETS[:10]))


def as_lists(found):
    if isinstance(found, pd.DataFrame):
        found = found.to_dict("list")
    found = found.to_pydict() if isinstance(found, (pa.Table, pa.RecordBatch)) else found
    return {name: list(values) for name, values in found.items()}


KINDS = {
    "lists": dict,
    "arrays": lambda columns: {name: np.array(values, dtype=object) for name, values in columns.items()},
    "pandas": lambda columns: pd.DataFrame(columns, index=range(20, 31)),
    "table": pa.table,
    "batch": pa.RecordBatch.from_pydict,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_links_are_those_of_the_lists(align, expected, kind):
    batch = KINDS[kind]({"source": SOURCES, "id": list(range(3, 14)), "target": TARGETS, "more": ["x"] * 11})
    given = align(batch)
    assert isinstance(given, type(batch))
    found = as_lists(given)
    assert list(found) == ["id", "source_spans", "target_spans", "links", "confidences", "status"]
    assert found["id"] == list(range(3, 14))
    assert found["status"] == ["ok"] * 9 + ["empty", "not text"]
    for links, confidences, pair in zip(found["links"], found["confidences"], expected):
        assert list(map(tuple, links)) == sorted(pair.links)
        np.testing.assert_allclose(list(confidences), [pair.confidences[link] for link in sorted(pair.links)])
    for name, line in zip(("source_spans", "target_spans"), (SOURCES, TARGETS)):
        words = [[text[start:end] for start, end in spans] for spans, text in zip(found[name], line)]
        assert words[:9] == [text.split() for text in line[:9]]
    assert [list(found[name][10]) for name in ("source_spans", "target_spans", "links", "confidences")] == [[]] * 4
    assert [list(found[name][9]) for name in ("source_spans", "links", "confidences")] == [[]] * 3
    if kind == "pandas":
        assert list(given.index) == list(range(20, 31))


def test_models_are_not_pickled(align):
    align({"source": [], "target": []})
    content = pickle.dumps(align)
    assert len(content) < 2000
    assert as_lists(pickle.loads(content)({"source": ["ja"], "target": ["yes"]}))["status"] == ["ok"]


def test_bad_batches(align, tmp_path):
    for batch, text in (
        ({"source": ["a"]}, "no column target, only 'source'"),
        ({"source": ["a"], "target": []}, "columns source, target … different lengths"),
    ):
        with pytest.raises(InputError, match=facts(text)):
            align(batch)
    with pytest.raises(UsageError, match=facts("profile none")):
        AlignBatch(*MODEL, profile="none")
    with pytest.raises(UsageError, match=facts("split_sentences: an option … align")):
        AlignBatch(*MODEL, split_sentences=True)
    copied = tmp_path / "checkpoint.pt"
    copied.write_bytes((DEMO / "checkpoint.pt").read_bytes())
    with pytest.raises(InputError, match=facts("checkpoint.pt.align.json: no such profile … norm-align calibrate")):
        AlignBatch(copied, *MODEL[1:])({"source": ["a"], "target": ["b"]})


class Failing:
    """An aligner that fails with a window that holds a bad word, and counts its windows."""

    models = (SimpleNamespace(pipelines=[TextPipeline(MarkedSubwords("none"))] * 2),)

    def __init__(self, error=None):
        self.error = error or ValueError("bad\x1b word")
        self.windows = 0

    def align(self, first, pairs):
        self.windows += 1
        if any("bad" in source.words for source, _ in pairs):
            raise self.error
        return [Alignment(source.text, target.text, source.spans, target.spans, []) for source, target in pairs]


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


def test_errors_of_no_single_pair():
    for error in (MemoryError(), torch.OutOfMemoryError()):
        with pytest.raises(type(error)):
            align_separately(Failing(error), {0: ("bad", "b"), 1: ("a", "b")})
