"""One command of ``align-eval`` in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from alignment_eval.cli import main


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Exit status, stdout and stderr of ``align-eval ARGUMENTS``."""

    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as error:  # argparse
            status = int(error.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run
