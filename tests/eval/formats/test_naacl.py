"""NAACL files (tests of all parsers together are in test_parsing.py)."""

from __future__ import annotations

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.formats.naacl import parse_naacl
from alignment_eval.links.table import packed


def test_naacl_has_sentences_beyond_a_million() -> None:
    result = parse_naacl([b"999999 1 2\n1000000 3 4\n", b"1234567 5 6\n"], "x", False)
    expected = [(999_998, 1, 2), (999_999, 3, 4), (1_234_566, 5, 6)]
    assert result.keys.tolist() == [int(packed(*np.array(link))) for link in expected]
    with pytest.raises(InputError, match=r"x:1: .*12345678 1 1"):
        parse_naacl([b"12345678 1 1\n"], "x", False)


def test_one_long_confidence_takes_no_room_in_other_lines() -> None:
    """In a column as wide as the longest these lines would take 200 GB."""
    text = b"1 1 1 0.5\n" * 200_000 + b"1 1 2 0." + b"1" * 1_000_000 + b"\n"
    result = parse_naacl([text], "x", False)
    assert result.confidence is not None
    assert result.confidence[-1] == pytest.approx(1 / 9)
    assert len(result.keys) == 200_001
