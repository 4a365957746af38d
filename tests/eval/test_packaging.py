"""What setup.py ships: every package, and every file in them that is not code (py.typed above all)."""

from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("alignment_eval", "fairseq_norm_plugin")


def test_every_package_and_every_file_is_shipped(monkeypatch):
    """``package_data`` names files by patterns relative to their package."""
    from distutils.core import run_setup  # that of setuptools

    monkeypatch.chdir(ROOT)
    distribution = run_setup("setup.py", stop_after="init")
    found = [path.parent.relative_to(ROOT) for name in PACKAGES for path in (ROOT / name).rglob("__init__.py")]
    demo = "fairseq_norm_plugin.demo"  # data/demo, which is no folder of the package
    assert sorted(distribution.packages) == sorted([*(".".join(path.parts) for path in found), demo])
    for package in PACKAGES:
        files = [path for path in (ROOT / package).rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
        names = [path.relative_to(ROOT / package).as_posix() for path in files]
        assert "py.typed" in names
        patterns = distribution.package_data[package]
        assert [name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)] == []
