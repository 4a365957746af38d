"""``norm-align`` in parts: runs that were stopped, shards, and directories, on the way to the same bytes."""

from dataclasses import replace
from pathlib import Path

import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from alignment_eval.commands import main as align_eval
from alignment_eval.extraction.method import DEFAULTS
from alignment_eval.profiles import chosen
from fairseq_norm_plugin.model import windows
from fairseq_norm_plugin.model.model import Model
from tests.demo import BOTH, raw_lines, written
from tests.facts import content, says
from tests.integration.align.conftest import ALIGNING, PAPER, TRANSLATING

SOURCES, TARGETS = (
    [" ".join(pair) for pair in zip(text[:12:2], text[1:12:2])] for text in map(raw_lines, ("de", "en"))
)
RULE = ("--heads", 2, "--rule", "kobayashi2020")
TRANSLATED = ("--translate", 2)
CASES = {
    "parquet": ("out.parquet", RULE, ALIGNING, [("--final-punctuation",), ("--window", 3)]),
    "scores": ("out", (*RULE, "--scores", "out.tsv"), ALIGNING, [("--source-contribution",)]),
    # counted again, on pairs whose links are written
    "table": ("out", ("--heads", 2, "--rule", "two-way=0.3", "--table", "text"), ALIGNING, [("--table", "none")]),
    "markup": ("out", ("--markup", "xml"), ALIGNING, [("--markup", "html")]),
    "translated": ("out.jsonl", TRANSLATED, TRANSLATING, [("--translate", 3), ("--path", BOTH[3])]),
    "sentences": ("out.jsonl", (*TRANSLATED, "--split-sentences"), TRANSLATING, [("--source-text", "target")]),
    "directory": ("out/", (*RULE, "--scores"), ALIGNING, [("--heads", 1)]),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request, lines_run, tmp_path, monkeypatch):
    """An output, its options, which lose nothing by a stop; the other options; and a function that runs them."""
    out, options, where, others = request.param
    monkeypatch.chdir(tmp_path)
    for module in (chosen, windows):
        monkeypatch.setattr(module, "DEFAULTS", replace(DEFAULTS, table_pairs=2))
    written(tmp_path / "target", TARGETS)
    sources = [f"<b>{line}</b>" if "--markup" in options else line for line in SOURCES]
    targets = None if "--translate" in options else TARGETS

    def run(*more, out=out):
        return lines_run(*options, "--window", 2, *more, sources=sources, targets=targets, out=out)

    return out, options, where, others, run


def outputs(directory):
    """What a run leaves, without its texts."""
    return {name: made for name, made in content(directory).items() if name not in ("source", "target")}


def test_every_output_is_continued(case, stop, tmp_path):
    """Only by a run that would write the same; windows that are there are neither translated nor aligned again."""
    out, options, where, others, run = case
    assert run().status == 0
    whole = outputs(tmp_path)
    for name in whole:
        (tmp_path / name).unlink()
    stop(2, where)
    assert run().status == 130
    left = outputs(tmp_path)
    assert out not in left
    stop(None, where)
    for more, text in (
        ((), "already"),
        *(((*other, "--resume"), "output of another run") for other in others),
    ):
        done = run(*more)
        assert (done.status, says(done.err, text)) == (1, True), done.err
        assert outputs(tmp_path) == left
    batches = stop(None, where)
    done = run("--resume")
    assert done.status == 0, done.err
    assert outputs(tmp_path) == whole
    assert len(batches) == 1 + ("--table" in options)  # the window that is missing; the counted one


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_shards_write_what_one_process_writes(case, stop, tmp_path, order):
    """In any order, each after a stop; a file is merged of their parts."""
    out, options, where, _, run = case
    assert run().status == 0
    if {"--tokens-out", "out.tsv"} & {*options}:
        done = run("--shard", "0/3", out="other")
        assert (done.status, says(done.err, "--shard: … -o FILE.parquet")) == (2, True)
        return
    whole = outputs(tmp_path)
    for name in whole:
        (tmp_path / name).unlink()
    out = "out.parquet" if out == "out/" else out  # test_a_directory_of_parts
    for number in order:
        shard = ("--shard", f"{number}/3")
        stop(0, where)
        assert run(*shard, out=out).status == 130
        stop(None, where)
        done = run(*shard, "--resume", out=out)
        assert done.status == 0, done.err
    assert align_eval(["merge", str(tmp_path / f"{out}.parts"), "-o", str(tmp_path / out)]) == 0
    if out in whole:
        assert {name: made for name, made in outputs(tmp_path).items() if ".parts" not in name} == whole


@pytest.fixture
def stopped(run, stop, tmp_path):
    """A run of windows of 4 sentences that was stopped in its third window; the directory of its parts."""
    stop(2, error=RuntimeError("the power is off"))
    with pytest.raises(RuntimeError, match="the power is off"):
        run(*PAPER, "--window", 4, "--confidences")
    stop(None)
    assert not (tmp_path / "out.pharaoh").exists()
    return tmp_path / "out.pharaoh.parts"


def test_a_stopped_run_is_continued_or_replaced(run, stopped, stop, tmp_path):
    options = (*PAPER, "--window", 4, "--confidences")
    whole = run(*options, out=tmp_path / "whole")
    done = run(*options, "--heads", 1, "--resume")
    assert (done.status, done.err.count("\n")) == (1, 1), done.err
    assert says(done.err, "out.pharaoh.parts … output of another run (different: layer, run)"), done.err
    batches = stop(None)
    done = run(*options, "--resume")
    assert (done.status, done.lines) == (0, whole.lines)
    assert [len(batch) for batch in batches] == [4]
    assert "norm-align: 4 sentences in " in done.err
    assert "8 kept from before" in done.err
    assert done.err.splitlines()[-1] == whole.err.splitlines()[-1]  # the signature
    assert not stopped.exists()


def test_overwriting_begins_again(run, stopped, tmp_path):
    """Also with other options."""
    whole = run(*PAPER, "--window", 3, out=tmp_path / "whole")
    done = run(*PAPER, "--window", 3, "--overwrite")
    assert (done.status, done.lines, stopped.exists()) == (0, whole.lines, False)


def test_what_a_stopped_run_had_written(run, stopped, tmp_path):
    """It is continued from there; another file with the name of an output is not replaced, and no work is lost."""
    options = (*PAPER, "--window", 4, "--confidences", "--tokens-out", tmp_path / "t.xx", tmp_path / "t.yy")
    whole = run(*options[:-2], tmp_path / "whole.xx", tmp_path / "whole.yy", out=tmp_path / "whole")
    for name, expected in (("t.yy", "whole.yy"), ("out.pharaoh", "whole")):
        (tmp_path / name).write_text("mine\n")
        done = run(*options, "--resume")
        assert (done.status, f"{tmp_path / name}: already exists, with other content" in done.err) == (1, True)
        assert (tmp_path / name).read_text() == "mine\n"
        (tmp_path / name).write_bytes((tmp_path / expected).read_bytes())
    done = run(*options, "--resume")
    assert (done.status, done.lines, stopped.exists()) == (0, whole.lines, False)
    assert (tmp_path / "t.xx").read_bytes() == (tmp_path / "whole.xx").read_bytes()
    assert run(*options, "--resume").status == 1  # nothing was stopped


def test_ctrl_c(run, stop, tmp_path):
    stop(1)
    done = run(*PAPER, "--window", 4)
    assert done.status == 130
    last = ["norm-align: 4 sentences are kept: --resume continues this run", "norm-align: stopped by Ctrl-C"]
    assert done.err.splitlines()[-2:] == last
    stop(0)
    done = run(*PAPER, "--window", 20, out=tmp_path / "other")
    assert (done.status, "are kept" in done.err) == (130, False)
    assert not list(tmp_path.glob("other*"))


def test_a_text_that_is_changed_in_the_meantime(run, files, tmp_path, monkeypatch):
    """Its alignments had status 0 and the hash of the old text."""
    texts = [tmp_path / f"text.{number}" for number in range(2)]
    for file, text in zip(files, texts):
        text.write_text(Path(file).read_text())
    maps, batches, before = Model.maps, [], texts[0].read_text()

    def edit(self, pairs, *what):
        batches.append(len(pairs))
        if len(batches) == 2:  # the second window
            texts[0].write_text(before.replace("ba", "ki"))
        return maps(self, pairs, *what)

    monkeypatch.setattr(Model, "maps", edit)
    done = run(*PAPER, "--window", 4, text=texts)
    assert done.status == 1
    assert "text.0: the text was changed while it was read" in done.err
    assert not (tmp_path / "out.pharaoh").exists()


def test_a_directory_of_parts(run, tmp_path):
    """It holds what a file holds; when all parts are there, it says so, as other programs do."""
    out = tmp_path / "links"
    out.mkdir()
    assert run(*PAPER, "--window", 5, "--shard", "1/2", out=out).status == 0
    assert not (out / "_SUCCESS").exists()
    done = run(*PAPER, "--window", 5, "--shard", "0/2", out=out)
    assert (done.status, (out / "_SUCCESS").exists()) == (0, True)
    run(*PAPER, "--window", 5, out=tmp_path / "file.parquet")
    parts = [out / f"part-0000{number % 2}-of-00002-0000{number}.parquet" for number in range(3)]
    assert sorted(path for path in out.iterdir() if path.suffix) == sorted(parts)
    whole = pq.read_table(tmp_path / "file.parquet")
    assert pyarrow.dataset.dataset(parts, format="parquet").to_table().to_pylist() == whole.to_pylist()
    assert pq.read_metadata(parts[0]).metadata[b"signature"].decode() == done.err.splitlines()[-1]
    (out / "thesis.tex").write_text("years of work")
    done = run(*PAPER, "--window", 5, "--overwrite", out=out)
    assert (done.status, "thesis.tex" in done.err) == (1, True)
