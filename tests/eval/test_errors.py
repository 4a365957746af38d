from __future__ import annotations

import pytest

from alignment_eval.errors import InputError, UsageError, warn_on_stderr


def test_a_warning_is_a_line_on_the_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    warn_on_stderr("3 lines are blank")
    assert capsys.readouterr() == ("", "warning: 3 lines are blank\n")


def test_bad_usage_is_bad_input_too() -> None:
    """One ``except InputError`` catches both; callers of the Python interface may catch ValueError."""
    assert issubclass(UsageError, InputError)
    assert issubclass(InputError, ValueError)
