"""What setup.py ships: every package, and every file in them that is not code (py.typed above all)."""

from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("alignment_eval", "fairseq_norm_plugin")


@pytest.fixture(scope="module")
def distribution():
    from distutils.core import run_setup  # that of setuptools

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return run_setup("setup.py", stop_after="init")


def test_every_package_is_shipped(distribution):
    found = [path.parent.relative_to(ROOT) for name in PACKAGES for path in (ROOT / name).rglob("__init__.py")]
    demo = "fairseq_norm_plugin.demo"  # data/demo, which is no folder of the package
    assert sorted(distribution.packages) == sorted([*(".".join(path.parts) for path in found), demo])


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_is_shipped(distribution, package):
    """``package_data`` names files by patterns relative to their package."""
    others = [path for path in (ROOT / package).rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    assert ROOT / package / "py.typed" in others
    patterns = distribution.package_data[package]
    for path in others:
        name = path.relative_to(ROOT / package).as_posix()
        assert any(fnmatch(name, pattern) for pattern in patterns), name
