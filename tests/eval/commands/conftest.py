from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def files(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], None]:
    """Write a file in the working folder of the test, which has the FILES of its module."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> None:
        Path(name).write_text(text, encoding="utf-8")

    for name, text in request.module.FILES.items():
        write(name, text)
    return write
