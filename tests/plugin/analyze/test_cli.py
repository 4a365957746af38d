"""What the command line refuses before it loads anything."""

import pytest

from fairseq_norm_plugin.analyze.cli import main


@pytest.mark.parametrize(
    ("options", "status", "facts"),
    [
        (("--mixing-kinds", "attn_w,alti"), 2, ("'alti'", "attn_w", "ffresln_n")),
        (("--path", "no-such.pt"), 1, ("no-such.pt", "no such file")),
        (("--path", "a.pt:b.pt"), 2, ("--path a.pt:b.pt", "one checkpoint")),
        ((), 2, ("--path", "one checkpoint")),
    ],
)
def test_bad_input(tmp_path, capsys, options, status, facts):
    assert main([str(tmp_path), "-o", str(tmp_path / "out"), *options]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("norm-analyze: ")
    assert all(fact in err for fact in facts), err
    assert not (tmp_path / "out").exists()
