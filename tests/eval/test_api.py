"""``import alignment_eval as ae``: the functions of the commands, for scripts; and what setup.py ships."""

from fnmatch import fnmatch
from pathlib import Path

import pytest

import alignment_eval as ae
from alignment_eval.errors import InputError
from alignment_eval.links.formats import GoldSentence
from tests.facts import facts

FORWARD, REVERSE = [frozenset({(0, 0), (1, 1)})], [frozenset({(0, 0), (2, 1)})]


def test_reads_and_scores(tmp_path):
    (tmp_path / "gold").write_text("1-1 2p2\n\n")
    (tmp_path / "links").write_text("0-0 1-1\n0-0\n")
    gold = ae.read_gold(tmp_path / "gold", base=1)
    links = ae.read_links(str(tmp_path / "links"))
    assert gold == [GoldSentence(frozenset({(0, 0)}), frozenset({(1, 1)})), GoldSentence(frozenset())]
    assert links == [{(0, 0), (1, 1)}, {(0, 0)}]
    # |A| = 3, |S| = 1, |A∩S| = 1, |A∩P| = 2
    assert (ae.score(links, gold).aer, ae.score(links, gold).precision) == (0.25, 2 / 3)
    assert ae.read_links(tmp_path / "gold", 1, swap=True, allow_possible=True) == [{(0, 0), (1, 1)}, frozenset()]
    with pytest.raises(InputError, match=facts("links:1: … index 0 … give base 0")):
        ae.read_gold(tmp_path / "links", base=1)


def test_compares():
    gold = [GoldSentence(frozenset({(k, 0)})) for k in range(30)]
    right, wrong = [sentence.sure for sentence in gold], [frozenset({(k, 1)}) for k in range(30)]
    better = ae.compare(wrong, right, iter(gold), resamples=200)["aer"]
    assert (better.delta, better.p_bootstrap, better.p_randomisation) == (-1, 1 / 201, 1 / 201)
    with pytest.raises(InputError, match="hypotheses"):
        ae.compare(wrong[1:], right, gold)


def test_symmetrizes():
    assert ae.symmetrize(FORWARD, REVERSE, "union") == [FORWARD[0] | REVERSE[0]]
    assert ae.symmetrize(FORWARD, REVERSE) == [{(0, 0), (1, 1), (2, 1)}]
    assert ae.symmetrize(FORWARD, REVERSE, "grow-diag", "lilt") == [{(0, 0), (1, 1)}]
    with pytest.raises(InputError, match="forward has 1 sentences, but reverse has 2"):
        ae.symmetrize(FORWARD, REVERSE * 2)


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
