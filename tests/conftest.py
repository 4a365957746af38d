"""Fixtures of all tests."""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

# No test asserts a time: drawing examples is slow on a busy machine, and where coverage is measured.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40)
# pytest --hypothesis-profile=thorough
settings.register_profile("thorough", settings.get_profile("suite"), max_examples=1000)
settings.load_profile("suite")

Make = Callable[[Path], object]


@pytest.fixture(scope="session")
def shared():
    """The directory of real gold sets, corpora and models beside the repository; skips where it is absent."""
    path = Path(__file__).resolve().parents[1].parent / "shared"
    if not path.is_dir():
        pytest.skip(f"{path} is absent: it holds the real data that this test reads")
    return path


def make_once(root, name, make):
    """Give the directory ``name`` under ``root``, which ``make(directory)`` fills for the first process that asks.

    Other processes wait for it.  What a ``make`` that raised has left is removed before the next attempt.
    """
    directory, done = root / name, root / f"{name}.done"
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f"{name}.lock"):
        if not done.exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            make(directory)
            done.touch()
    return directory


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Call :func:`make_once` in a directory that all workers of this run share, and no other run."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each worker has a folder in that of the run
        root = root.parent
    return lambda name, make: make_once(root / "made-once", name, make)


@pytest.fixture(autouse=True)
def _logging_as_at_first():
    """A command that ran in this process under ``capsys`` left a handler on an output that is closed since then."""
    root = logging.getLogger()
    root.handlers[:] = [each for each in root.handlers if not getattr(getattr(each, "stream", None), "closed", False)]


def pytest_collection_modifyitems(config, items):
    """Skip slow tests instead of leaving them out, so that the summary names them."""
    if "slow" not in config.getoption("markexpr"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: run it with -m slow"))


def pytest_addoption(parser):
    """Options of single tests."""
    parser.addoption(
        "--update-examples",
        action="store_true",
        help="test_docs.py: write what the commands of a page print into the page, instead of comparing",
    )
