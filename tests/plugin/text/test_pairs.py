"""Sentence pairs from files."""

from __future__ import annotations

import os
import threading

import pytest

from alignment_eval.errors import InputError
from fairseq_norm_plugin.text.pairs import ParallelText
from fairseq_norm_plugin.text.pieces import MarkedPieces
from fairseq_norm_plugin.text.tokenise import TextPipeline
from tests.facts import facts


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


def test_a_pipe_is_read_once_and_kept(tmp_path):
    """What a shell gives for <(command)."""
    (tmp_path / "other").write_text("x\ny\n")
    os.mkfifo(tmp_path / "pipe")
    writing = threading.Thread(target=(tmp_path / "pipe").write_text, args=("a\nb\n",))
    writing.start()
    text = ParallelText([str(tmp_path / "pipe"), str(tmp_path / "other")])
    writing.join()
    assert list(text) == list(text) == [(["a"], ["x"]), (["b"], ["y"])]
    text.check_unchanged()


def test_a_text_that_is_changed_while_it_is_used(tmp_path):
    path = tmp_path / "one"
    path.write_text("a ||| b\n")
    text = ParallelText([str(path)])
    through = text.through((TextPipeline(MarkedPieces("none")),) * 2)
    for one in (text, through):
        one.check_unchanged()
    path.write_text("a ||| c\n")
    for one in (text, through):
        with pytest.raises(InputError, match=facts("one: the text was changed while it was read")):
            one.check_unchanged()
    path.unlink()
    with pytest.raises(InputError, match="one: the text was changed"):
        text.check_unchanged()
