"""``norm-align``: runs that were stopped and are continued or replaced."""

import resource
from dataclasses import replace
from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.method import DEFAULTS
from alignment_eval.profiles import chosen
from fairseq_norm_plugin.align.unfinished import UnfinishedOutput
from fairseq_norm_plugin.model.direction import Direction
from tests.demo import BOTH, raw_lines, written
from tests.facts import content, facts, says
from tests.integration.align.conftest import ALIGNING, PAPER, TRANSLATING

SOURCES, TARGETS = (
    [" ".join(pair) for pair in zip(text[:12:2], text[1:12:2])] for text in map(raw_lines, ("de", "en"))
)
RULE = ("--heads", 2, "--rule", "kobayashi2020")
TRANSLATED = ("--translate", 2)


@pytest.mark.parametrize(
    ("out", "options", "where", "others"),
    [
        ("out.parquet", RULE, ALIGNING, [("--final-punctuation",)]),
        ("out", (*RULE, "--scores", "out.tsv"), ALIGNING, [("--source-contribution",)]),
        # counted again, on pairs whose links are written
        ("out", ("--heads", 2, "--rule", "two-way=0.3", "--table", "text"), ALIGNING, [("--table", "none")]),
        ("out", ("--markup", "xml"), ALIGNING, [("--markup", "html")]),
        ("out.jsonl", TRANSLATED, ALIGNING, [("--translate", 3), ("--split-sentences",)]),
        ("out.jsonl", TRANSLATED, TRANSLATING, [("--translate", 3), ("--path", BOTH[3]), ("--source-text", "target")]),
        ("out.jsonl", (*TRANSLATED, "--split-sentences"), TRANSLATING, []),
    ],
    ids=["parquet", "scores", "lexical table", "markup", "aligning", "translating", "sentences"],
)
def test_every_output_is_continued(lines_run, stop, tmp_path, monkeypatch, out, options, where, others):
    """Only by a run that would write the same; what is translated is not translated again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(chosen, "DEFAULTS", replace(DEFAULTS, table_pairs=2))
    written(tmp_path / "target", TARGETS)
    sources = [f"<b>{line}</b>" if "--markup" in options else line for line in SOURCES]
    targets = None if "--translate" in options else TARGETS

    def run(*more):
        return lines_run(*options, "--window", 2, *more, sources=sources, targets=targets, out=out)

    assert run().status == 0
    whole = content(tmp_path)
    for file in tmp_path.glob("out*"):
        file.unlink()
    stop(2, where)
    assert run().status == 130
    left = content(tmp_path)
    assert out not in left
    stop(None, where)
    for more, text in (
        ((), "was stopped, or is running; give --resume"),
        *(((*other, "--resume"), "output of another run") for other in others),
    ):
        done = run(*more)
        assert (done.status, says(done.err, text)) == (1, True), done.err
        assert content(tmp_path) == left
    stop(0 if where == ALIGNING else None, TRANSLATING)
    done = run("--resume")
    assert done.status == 0, done.err
    assert content(tmp_path) == whole


@pytest.fixture
def stopped(run, stop, tmp_path):
    """A run of windows of 4 sentences that was stopped in its third window; its unfinished output."""
    stop(2, error=RuntimeError("the power is off"))
    with pytest.raises(RuntimeError, match="the power is off"):
        run(*PAPER, "--window", 4, "--confidences")
    stop(None)
    assert not (tmp_path / "out.pharaoh").exists()
    return tmp_path / "out.pharaoh.partial"


def test_a_stopped_run_is_continued(run, stopped, stop, tmp_path):
    whole = run(*PAPER, "--window", 4, "--confidences", out=tmp_path / "whole")
    batches = stop(None)
    done = run(*PAPER, "--window", 4, "--confidences", "--resume")
    assert (done.status, done.lines) == (0, whole.lines)
    assert [len(batch) for batch in batches] == [4]
    assert "norm-align: 4 sentences in " in done.err
    assert "8 kept from before" in done.err
    assert done.err.splitlines()[-1] == whole.err.splitlines()[-1]  # the signature
    assert not stopped.exists()


def test_wherever_the_file_ends(run, stopped, tmp_path):
    """A process or a machine that is killed may leave any beginning of the file, and half a line."""
    left = stopped.read_bytes()
    expected = run(*PAPER, "--window", 4, "--confidences", out=tmp_path / "whole").lines
    lines = left.splitlines(keepends=True)
    assert len(lines) == 9  # the signature, and two windows
    for cut in (0, 10, len(lines[0]), len(left) - 1, sum(map(len, lines[:6])), sum(map(len, lines[:5])) + 2):
        stopped.write_bytes(left[:cut])
        done = run(*PAPER, "--window", 4, "--confidences", "--resume", out=tmp_path / "out.pharaoh")
        assert (done.status, done.lines) == (0, expected), cut
        (tmp_path / "out.pharaoh").unlink()


def test_a_stopped_run_is_replaced_only_with_overwrite(run, stopped):
    done = run(*PAPER, "--window", 4, "--resume", "--heads", 1)
    assert (done.status, done.err.count("\n")) == (1, 1), done.err
    assert says(done.err, "out.pharaoh.partial … output of another run (different: confidences, layer, run)"), done.err
    assert run(*PAPER, "--window", 4, "--overwrite").status == 0
    assert not stopped.exists()


def test_two_runs_of_one_output_at_once(run, stop, monkeypatch, tmp_path):
    """The second one takes what the first has done so far; neither disturbs the other."""
    maps, others, batches = Direction.maps, [], []

    def counted(self, pairs, *what):
        batches.append(len(pairs))
        if len(batches) == 3 and not others:  # the third window
            others.append(None)
            others.append(run(*PAPER, "--window", 4, "--resume").status)
            others.append((tmp_path / "out.pharaoh").read_text())
        return maps(self, pairs, *what)

    whole = run(*PAPER, "--window", 4, out=tmp_path / "whole")
    monkeypatch.setattr(Direction, "maps", counted)
    first = run(*PAPER, "--window", 4)
    assert (first.status, first.lines, others[1]) == (0, whole.lines, 0)
    assert others[2].splitlines() == whole.lines
    names = [f"{name}{ending}" for name in ("out.pharaoh", "whole") for ending in ("", ".signature.json")]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_what_a_stopped_run_had_written(run, stopped, tmp_path, monkeypatch):
    """It is continued from there; another file with the name of an output is not replaced, and no work is lost."""
    options = (*PAPER, "--window", 4, "--confidences", "--tokens-out", tmp_path / "t.xx", tmp_path / "t.yy")
    whole = run(*options[:-2], tmp_path / "whole.xx", tmp_path / "whole.yy", out=tmp_path / "whole")
    (tmp_path / "t.yy").write_text("mine\n")
    done = run(*options, "--resume")
    assert (done.status, f"{tmp_path / 't.yy'}: already exists, with other content" in done.err) == (1, True)
    assert (tmp_path / "t.yy").read_text() == "mine\n"
    for name in ("t.xx", "t.yy"):
        (tmp_path / name).write_bytes((tmp_path / f"whole{name[1:]}").read_bytes())
    (tmp_path / "out.pharaoh").write_text("mine\n")
    done = run(*options, "--resume")
    assert (done.status, "out.pharaoh: already exists, with other content" in done.err) == (1, True)
    (tmp_path / "out.pharaoh").write_text((tmp_path / "whole").read_text())
    done = run(*options, "--resume")
    assert (done.status, done.lines, stopped.exists()) == (0, whole.lines, False)
    assert "12 kept from before" in done.err
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
    maps, batches, before = Direction.maps, [], texts[0].read_text()

    def edit(self, pairs, *what):
        batches.append(len(pairs))
        if len(batches) == 2:  # the second window
            texts[0].write_text(before.replace("ba", "ki"))
        return maps(self, pairs, *what)

    monkeypatch.setattr(Direction, "maps", edit)
    done = run(*PAPER, "--window", 4, text=texts)
    assert done.status == 1
    assert "text.0: the text was changed while it was read" in done.err
    assert not (tmp_path / "out.pharaoh").exists()


def test_a_full_disk_names_the_file_and_what_is_kept(tmp_path, capsys):
    """The limit of a file's size stands for the disk; closing the file fails, too."""
    output, before = str(tmp_path / "out"), resource.getrlimit(resource.RLIMIT_FSIZE)
    unfinished = UnfinishedOutput(output, "run", [2, 4])
    unfinished.append([[1], [2]])
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, before[1]))
    try:
        with pytest.raises(InputError, match=facts("out.partial: cannot write the file")), unfinished:
            unfinished.append([["x" * 100], [4]])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "2 sentences are kept: --resume" in capsys.readouterr().err
    with UnfinishedOutput(output, "run", [2, 4], resume=True) as unfinished:
        assert (unfinished.kept, list(unfinished.rows())) == (2, [[1], [2]])
