"""Sentence pairs from files, and the subwords of their words."""

from __future__ import annotations

import numpy as np
import pytest

from alignment_eval.errors import InputError
from fairseq_norm_plugin.aligning.text import ParallelText, Segmenter
from tests.facts import facts

BPE_CODES = "#version: 0.2\nb a</w>\nk i\nki ba</w>\n"


def test_a_word_is_one_word_whatever_is_in_it(tmp_path):
    (tmp_path / "codes").write_text(BPE_CODES)
    segment = Segmenter(str(tmp_path / "codes"))
    words = ["kiba", "ba", "x@@", "a\u00a0b", "</s>", "kiki"]
    pieces, numbers = segment(words)
    spelled = ["".join(p for p, n in zip(pieces, numbers) if n == k).replace("@@", "") for k in range(len(words))]
    assert spelled == [word.replace("@@", "") for word in words]
    assert pieces[:2] == ["kiba", "ba"]
    assert (np.diff(numbers) >= 0).all()


def test_forgetting_does_not_disturb_who_is_at_work(tmp_path):
    """Another thread may have found a word in the cache and be about to read it."""
    (tmp_path / "codes").write_text(BPE_CODES)
    segment = Segmenter(str(tmp_path / "codes"))
    segment(["kiba"])
    cache = segment._bpe.cache
    segment.forget()
    assert "kiba" in cache
    assert not segment._bpe.cache


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (b"a\nb\n", b"a\n", "other: 1 lines, but … one has 2"),
        (b"a\n", b"", "other: the file is empty"),
        (b"\xff\n", b"a\n", "not UTF-8 (byte 0)"),
        (b"a ||| b\n\n a b\n", None, "one:3: 0 separators |||: expected one, SOURCE ||| TARGET"),
        (b"a ||| b ||| c\n", None, "one:1: 2 separators"),
    ],
)
def test_bad_text(tmp_path, one, other, text):
    paths = []
    for name, content in (("one", one), ("other", other)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
            paths.append(str(tmp_path / name))
    with pytest.raises(InputError, match=facts(text)):
        ParallelText(paths)


def test_pairs_of_a_text(tmp_path):
    (tmp_path / "one").write_bytes("a\u00a0b  c ||| d\r\n\n||| e".encode())
    text = ParallelText([str(tmp_path / "one")])
    assert text.size == 3
    assert list(text) == list(text) == [(["a\u00a0b", "c"], ["d"]), ([], []), ([], ["e"])]
