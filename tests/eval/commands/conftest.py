from pathlib import Path

import pytest


@pytest.fixture
def files(request, tmp_path, monkeypatch):
    """Write a file in the working folder of the test, which has the FILES of its module."""
    monkeypatch.chdir(tmp_path)

    def write(name, text):
        Path(name).write_text(text, encoding="utf-8")

    for name, text in request.module.FILES.items():
        write(name, text)
    return write
