"""No output of a command is one of its inputs or another of its outputs; test_mistakes.py has those of norm-align."""

import shutil

import pytest

from alignment_eval.errors import UsageError
from fairseq_norm_plugin import convert
from tests.facts import content
from tests.families import save
from tests.integration.conftest import ROOT


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
