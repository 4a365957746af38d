"""What norm-align says of its options."""

import pytest

from fairseq_norm_plugin.align.cli import main


@pytest.mark.parametrize("command", [(), ("calibrate",)])
def test_help_fits_a_terminal(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--help"])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "norm-align calibrate" in shown


def test_version_without_a_model(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("norm-align ")


@pytest.mark.parametrize(("words", "meant"), [(["--paht", "x", "-o", "y"], "--path"), (["calibrat"], "calibrate")])
def test_what_a_mistyped_word_may_mean(words, meant, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert f"do you mean {meant}?" in capsys.readouterr().err
