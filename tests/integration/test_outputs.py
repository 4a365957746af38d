"""No output of a command is one of its inputs or another of its outputs, whatever it is called."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alignment_eval.errors import UsageError
from tests.demo import DEMO
from tests.facts import content
from tests.families import save
from tests.integration.conftest import ROOT

MODEL = ["--path", "model.pt", "--data", "model", "-s", "de", "-t", "en", "--bpe-codes", "codes.bpe", "--cpu"]
TEXT = ["--source-text", "demo.de", "--target-text", "demo.en"]
JOINT = ["--text", "text/*.parquet"]


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """The working directory, with inputs and other names of them."""
    (tmp_path / "model").mkdir()
    for name in ("demo.de", "demo.en", "codes.bpe", "model/dict.de.txt", "model/dict.en.txt"):
        shutil.copy(DEMO / name.rpartition("/")[2], tmp_path / name)
    for name in ("checkpoint.pt", "checkpoint.pt.align.json"):
        shutil.copy(DEMO / name, tmp_path / name.replace("checkpoint", "model"))
    (tmp_path / "text").mkdir()
    pq.write_table(pa.table({"id": [0], "source": ["ein Haus"], "target": ["a house"]}), tmp_path / "text/part.parquet")
    (tmp_path / "link").symlink_to("demo.de")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        *([*MODEL, *TEXT, "-o", name] for name in ("link", "codes.bpe", "model.pt")),
        *([*MODEL, *TEXT, "-o", name] for name in ("model/dict.de.txt", "model.pt.align.json")),
        [*MODEL, *TEXT, "-o", "f", "--tokens-out", "f", "g"],
        [*MODEL, *TEXT, "-o", "f", "--tokens-out", "f.partial", "g"],
        [*MODEL, *JOINT, "-o", "text/part.parquet"],
        [*MODEL, *JOINT, "-o", "text", "--ray"],
        ["calibrate", *MODEL, *TEXT, "-o", "demo.de"],
        ["calibrate", *MODEL, *TEXT, "--reverse-path", "model.pt"],
    ],
    ids=lambda words: " ".join(words[words.index("-o") if "-o" in words else -2 :]),
)
def test_norm_align(directory, program, words):
    before = content(directory)
    done = program("norm-align", *words, "--overwrite", check=False)
    assert (done.returncode, done.stderr.count(" of this command, or holds it")) == (2, 1), done.stderr
    assert content(directory) == before


def test_standard_input_is_an_input(directory, command):
    before = content(directory)
    words = ["python", "-m", "alignment_eval", "convert", "-", "--to", "pharaoh", "-o", "demo.de"]
    shell = ["bash", "-c", '"$@" --overwrite < demo.de', "_", *words]
    done = command(*shell, cwd=directory, check=False, PYTHONPATH=str(ROOT))
    assert (done.returncode, "an input of this command" in done.stderr) == (2, True), done.stderr
    assert content(directory) == before


def test_converted_models(directory):
    from fairseq_norm_plugin import convert

    save(directory / "marian", "marian")
    before = content(directory)
    assert convert.main(["translation", "marian", "marian", "--overwrite"]) == 2
    assert content(directory) == before


def test_norm_analyze(program, data, checkpoint):
    done = program("norm-analyze", data, "--path", checkpoint, "-o", data, "--overwrite", check=False)
    assert (done.returncode, "an input of this command" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["text", "data", "checkpoint", "records", "manifest"])
def test_fairseq_generate(norm, data, checkpoint, tmp_path, name):
    text = tmp_path / "text"
    shutil.copy(data.parent / "text2.xx", text)
    place = {
        "text": text,
        "data": data / "test.xx-yy.xx.idx",
        "checkpoint": checkpoint,
        "records": tmp_path / "records" / "part-00000-of-00001-00000.parquet",
        "manifest": tmp_path / "records",
    }[name]
    more = ["--norm-source-text", text, "--norm-records", tmp_path / "records"]
    if name == "manifest":
        more[1] = tmp_path / "records.manifest.json"
        shutil.copy(text, more[1])
    before = place.read_bytes() if place.exists() else None
    with pytest.raises(UsageError, match="of this command, or holds it"):
        norm("--norm-alignments", place, *more, "--norm-records-overwrite")
    assert (place.read_bytes() if place.exists() else None) == before
