"""The commands as a user gives them: from anywhere, as a new process; fairseq-interactive; no output is an input."""

import shutil

import pytest

from alignment_eval.errors import UsageError
from alignment_eval.records import Records
from fairseq_norm_plugin import convert
from tests.facts import content, says
from tests.families import save
from tests.integration.conftest import ROOT, Output

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
    assert says(result.stderr.splitlines()[-1], "fairseq-generate: --num-shards 2")
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


def test_standard_input_is_an_input(command, tmp_path):
    (tmp_path / "links").write_text("0-0\n")
    words = "python -m alignment_eval convert - --to talp -o links --overwrite < links"
    done = command("bash", "-c", words, cwd=tmp_path, check=False, PYTHONPATH=str(ROOT))
    assert (done.returncode, "an input of this command" in done.stderr) == (2, True), done.stderr
    assert (tmp_path / "links").read_text() == "0-0\n"


def test_converted_models(tmp_path):
    save(tmp_path / "marian", "marian")
    before = content(tmp_path)
    assert convert.main(["translation", *[str(tmp_path / "marian")] * 2, "--overwrite"]) == 2
    assert content(tmp_path) == before


def test_norm_analyze(program, data, checkpoint):
    done = program("norm-analyze", data, "--path", checkpoint, "-o", data, "--overwrite", check=False)
    assert (done.returncode, "an input of this command" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["text", "data", "checkpoint", "records", "signature"])
def test_fairseq_generate(norm, data, checkpoint, tmp_path, name):
    text = tmp_path / "text"
    shutil.copy(data.parent / "text2.xx", text)
    place = {
        "text": text,
        "data": data / "test.xx-yy.xx.idx",
        "checkpoint": checkpoint,
        "records": tmp_path / "records" / "part-00000-of-00001-00000.parquet",
        "signature": tmp_path / "records",
    }[name]
    more = ["--norm-source-text", text, "--norm-records", tmp_path / "records"]
    if name == "signature":
        more[1] = tmp_path / "records.signature.json"
        shutil.copy(text, more[1])
    before = place.read_bytes() if place.exists() else None
    with pytest.raises(UsageError, match="of this command, or holds it"):
        norm("--norm-alignments", place, *more, "--norm-records-overwrite")
    assert (place.read_bytes() if place.exists() else None) == before
