from __future__ import annotations

import argparse

import pytest

from alignment_eval.options.common import finite_number


def test_finite_numbers() -> None:
    assert [finite_number(text) for text in ("0", "-1.5", "1e-3")] == [0, -1.5, 0.001]


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "", "a", "1,5"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected a finite number"):
        finite_number(text)
