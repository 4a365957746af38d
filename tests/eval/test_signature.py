from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from alignment_eval import __version__
from alignment_eval.errors import InputError
from alignment_eval.signature import file_hash, signature


def test_fields_in_order_and_version() -> None:
    text = signature(metric="aer", gold_base=1, swap=False, possible=True, head=None, threshold=0.25)
    expected = f"metric:aer|gold_base:1|swap:no|possible:yes|head:none|threshold:0.25|version:align-eval-{__version__}"
    assert text == expected


def test_separator_in_a_value() -> None:
    with pytest.raises(InputError, match=r"signature field 'rule' is 'a\|b': expected a value without '\|'"):
        signature(rule="a|b")


def test_file_hash(tmp_path: Path) -> None:
    content = "0-0 1-1\nß\n".encode()
    (tmp_path / "x").write_bytes(content)
    expected = hashlib.blake2b(content).hexdigest()[:12]
    assert file_hash(tmp_path / "x") == file_hash(str(tmp_path / "x")) == file_hash(content) == expected
    assert file_hash(content + b"\n") != expected


def test_file_hash_of_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing: cannot be read \(No such file or directory\)"):
        file_hash(tmp_path / "nothing")
