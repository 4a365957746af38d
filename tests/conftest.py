"""Fixtures of all tests."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory of real gold sets, corpora and models beside the repository; skips where it is absent."""
    path = Path(__file__).resolve().parents[1].parent / "shared"
    if not path.is_dir():
        pytest.skip(f"{path} is absent: it holds the real data that this test reads")
    return path


@pytest.fixture(autouse=True)
def _no_logging_to_closed_outputs() -> None:
    """A command that ran in this process under ``capsys`` left a handler on an output that is closed since then."""
    root = logging.getLogger()
    root.handlers[:] = [each for each in root.handlers if not getattr(getattr(each, "stream", None), "closed", False)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of single tests."""
    parser.addoption(
        "--update-examples",
        action="store_true",
        help="test_docs.py: write what the commands of a page print into the page, instead of comparing",
    )
