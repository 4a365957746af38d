from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.lexicon import count_lexicon
from alignment_eval.files import file_hash
from alignment_eval.formats.lexicon_file import read_lexicon, write_lexicon
from fairseq_norm_plugin.api import lexicons
from fairseq_norm_plugin.api.lexicons import LexiconCache


def write(path: Path, words: str) -> None:
    pairs = [((list(words), ["x"]), np.ones((1, len(words))))]
    write_lexicon(path, count_lexicon(pairs, 1, 1)[0], "rule:x")


def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(lexicons, "read_lexicon", lambda path: read.append(path) or read_lexicon(path))
    cache = LexiconCache()
    one, other = tmp_path / "one", tmp_path / "other"
    write(one, "ab")
    write(other, "abc")
    for path, times in ((one, 1), (one, 1), (other, 2), (one, 3)):
        lexicon, found_hash = cache.read(path)
        assert len(read) == times
        assert (lexicon.name, found_hash) == (str(path), file_hash(path))
    write(one, "cd")
    os.utime(one, ns=(0, 0))  # another time, whatever the clock of the file system
    assert set(cache.read(one)[0].source.numbers) == {"c", "d"}
    assert len(read) == 4
    one.unlink()
    with pytest.raises(InputError, match="one: cannot read the file"):
        cache.read(one)
