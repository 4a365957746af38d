"""What tables and pages call systems."""

import pytest

from alignment_eval.options.alignments import distinct_names
from alignment_eval.options.common import system


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["runs/a.links", "b.links"], ["a.links", "b.links"]),
        (["runs/small/1/links", "runs/large/1/links", "other"], ["small", "large", "other"]),
        (["runs/links", "links"], ["runs", "links"]),
        (["x/links", "x/links"], ["x/links", "x/links"]),
        (["ours=x/links", "x/links", "-"], ["ours", "links", "standard input"]),
        (["a b=x=1/links"], ["a b"]),
    ],
)
def test_names(given, names):
    assert distinct_names([system(word) for word in given]) == names


def test_a_file_whose_name_has_the_sign(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lr=1").write_text("0-0\n")
    assert distinct_names([system("lr=1")]) == ["lr=1"]
    assert system("lr=1") == "lr=1"
