import subprocess
import sys

import pytest

from alignment_eval import __version__
from alignment_eval.cli import COMMANDS, main


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"align-eval {__version__}\n"


@pytest.mark.parametrize("words", [[], ["nothing"]])
def test_bad_usage(words):
    with pytest.raises(SystemExit, match="2"):
        main(words)


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_help_fits_a_terminal(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        main([*([name] if name else []), "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["scor"], "score"),
        (["score", "--golf", "g", "hyp"], "--gold"),
        (["score", "--gold", "g", "--fromat=tsv", "hyp"], "--format"),
        (["score", "--gold", "g", "--format", "jsom", "hyp"], "json"),
    ],
)
def test_what_a_mistyped_word_may_mean(words, meant, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert f"do you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import alignment_eval", "numpy"),
        ("from alignment_eval.cli import _parser; _parser(['--help'])", "pandas"),
        ("from alignment_eval.commands import curve, plot, sweep", "matplotlib"),
    ],
)
def test_imports_are_light(code, heavy):
    script = f"import sys; {code}; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ("score", "hyp", "--gold", "gold", "--gold-base", 0),
        ("compare", "hyp", "gold", "--gold", "gold", "--gold-base", 0),
        ("errors", "hyp", "gold", "--gold", "gold", "--gold-base", 0, "--source", "text", "--target", "text"),
        ("curve", "log", "--metrics", "aer", "-o", "out.csv"),
        ("convert", "none", "--to", "talp"),
        ("score", "--none"),
    ],
    ids=lambda words: words[0],
)
def test_no_name_of_a_file_controls_the_terminal(align_eval, tmp_path, monkeypatch, words):
    escape, names = "\x1b[2J\n", {"gold": "0-0\n1-1\n", "hyp": "0-0\n1-0\n", "text": "a b\nc d\n"}
    names["log"] = '{"epoch": 1, "valid_loss": "2.0", "valid_aer": "0.5", "valid_num_updates": "100"}\n'
    monkeypatch.chdir(tmp_path)
    for name, content in names.items():
        (tmp_path / f"{name}{escape}").write_text(content)
    done = align_eval(*(f"{word}{escape}" if word in (*names, "none", "--none") else word for word in words))
    assert "\x1b" not in done.stdout + done.stderr
    assert done.returncode == (1 if "none" in words else 2 if "--none" in words else 0)
