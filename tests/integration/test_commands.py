"""The commands as a user gives them: from anywhere, one as a whole new process; fairseq-interactive."""

import pytest

from alignment_eval.errors import UsageError
from alignment_eval.records import Records
from tests.integration.conftest import Output

LINES = ["ba@@ ki lo", "mu ne@@ ra"]


@pytest.fixture
def words(data, checkpoint):
    options = ["--path", checkpoint, "--cpu", "--beam", 2, "--required-batch-size-multiple", 1]
    return [data, *options, "--task", "translation_norm", "--user-dir"]


def test_from_elsewhere_by_the_path_that_the_package_prints(words, command, stock, tmp_path):
    path = command("python", "-m", "fairseq_norm_plugin").stdout
    assert path.endswith("fairseq_norm_plugin\n")
    outputs = ["--print-alignment", "soft", "--norm-records", "r", "--norm-alignments", "a"]
    output = Output(command("fairseq-generate", *words, path.rstrip("\n"), *outputs, cwd=tmp_path).stdout)
    assert len(output.lines("A")) == len(list(Records(tmp_path / "r"))) == 12
    assert output.lines() == stock("--beam", 2).lines()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "a.signature.json", "r"]
    assert len((tmp_path / "a").read_text().splitlines()) == 12


def test_an_error_ends_the_command(words, command, tmp_path):
    wrong = ["--norm-records", tmp_path / "r", "--num-shards", 2]
    result = command("fairseq-generate", *words, "fairseq_norm_plugin", *wrong, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("fairseq-generate: --num-shards 2 has no effect")
    assert "Traceback" not in result.stderr
    assert "hydra" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_interactive_translates_and_prints_hard_alignments(norm_interactive, stock, norm, texts):
    lines = [source for source, _ in texts[2]]
    hard = ["--beam", 2, "--print-alignment", "hard"]
    output, expected = norm_interactive(lines, *hard), stock("--beam", 2, "--batch-size", 1).lines()
    assert output.lines() == norm_interactive(lines, "--beam", 2).lines() == expected
    assert len(output.lines("A")) == 12
    assert output.lines("A") == norm(*hard, "--batch-size", 1).lines("A")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--print-alignment", "soft"], "crashes on --print-alignment soft"),
        (["--norm-records", "{tmp}/r"], "need sentence ids: expected fairseq-generate"),
        (["--norm-alignments", "{tmp}/a"], "need sentence ids: expected fairseq-generate"),
    ],
)
def test_what_interactive_cannot_do_is_refused(norm_interactive, tmp_path, options, text):
    with pytest.raises(UsageError, match=text):
        norm_interactive(LINES, *(word.replace("{tmp}", str(tmp_path)) for word in options))
    assert [file.name for file in tmp_path.iterdir()] == ["input"]
