"""``python -m fairseq_norm_plugin.align``: runs that were stopped and are continued or replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_norm_plugin.aligning.direction import Direction
from tests.integration.align.ways import PAPER

MADE = ["out.pharaoh", "out.pharaoh.manifest.json"]


@pytest.fixture
def stopped(run, monkeypatch):
    """A run that was stopped in its third window of 4 sentences."""
    maps, batches = Direction.maps, []

    def counted(self, pairs, *what):
        batches.append(sorted(pairs))
        if len(batches) == 3:
            raise RuntimeError("the disk is full")
        return maps(self, pairs, *what)

    monkeypatch.setattr(Direction, "maps", counted)
    with pytest.raises(RuntimeError, match="the disk is full"):
        run(*PAPER, "--window", 4)
    return batches


def test_a_stopped_run_is_continued(run, stopped, extracted, tmp_path):
    assert not (tmp_path / "out.pharaoh").exists()
    done = run(*PAPER, "--window", 4, "--resume")
    assert done.lines == extracted(*PAPER)
    assert stopped[3:] == [[8, 9, 10, 11]]
    assert "norm-align: 4 sentences in " in done.err
    assert "8 kept from before" in done.err
    assert "warning" not in done.err
    assert sorted(path.name for path in tmp_path.glob("*out.pharaoh*")) == MADE


def test_a_stopped_run_is_replaced(run, stopped, extracted):
    assert run(*PAPER, "--window", 4, "--overwrite").lines == extracted(*PAPER)
    assert stopped[3:] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "already begun (2 parts); give --resume to continue it, --overwrite to start again"),
        (
            ("--resume", "--layer", 1),
            "output of another run (different: extraction.layer)",
        ),
    ],
)
def test_a_stopped_run_is_not_taken_for_another(run, stopped, options, text):
    done = run(*PAPER, "--window", 4, *options)
    assert done.status == 1
    assert text in done.err
    assert "-o" in done.err
    assert "--norm" not in done.err


def test_a_stopped_run_is_refused_before_its_models_are_loaded(run, stopped, monkeypatch):
    monkeypatch.setattr("fairseq_norm_plugin.align.run.load_models", None)
    assert "this run is already begun" in run(*PAPER, "--window", 4).err


def test_ctrl_c(run, monkeypatch, tmp_path):
    maps = Direction.maps

    def interrupted(self, pairs, *what):
        if 4 in pairs:  # the second window
            raise KeyboardInterrupt
        return maps(self, pairs, *what)

    monkeypatch.setattr(Direction, "maps", interrupted)
    done = run(*PAPER, "--window", 4)
    assert done.status == 130
    last = ["norm-align: 4 sentences are kept: --resume continues this run", "norm-align: stopped by Ctrl-C"]
    assert done.err.splitlines()[-2:] == last
    done = run(*PAPER, "--window", 20, out=tmp_path / "other")
    assert (done.status, "are kept" in done.err) == (130, False)


def test_a_finished_run_counts_no_lexicon(run, tmp_path):
    options = (*PAPER[:-2], "--rule", "two-way=0.3", "--lexicon", 2)
    before = run(*options, "--save-lexicon", tmp_path / "lexicon")
    saved = (tmp_path / "lexicon").read_bytes()
    done = run(*options, "--save-lexicon", tmp_path / "again", "--resume")
    assert (done.status, done.lines) == (0, before.lines), done.err
    assert "lexicon was counted" not in done.err
    assert not (tmp_path / "again").exists()
    assert (tmp_path / "lexicon").read_bytes() == saved


def test_a_finished_run_is_kept(run):
    before = run()
    done = run()
    assert done.status == 1
    assert "already exists; choose another path or pass --overwrite" in done.err
    done = run("--resume")
    assert (done.status, done.lines) == (0, before.lines)
    assert "align: 0 sentences in " in done.err
    assert ", 12 kept from before" in done.err
    assert done.err.splitlines()[-1] == before.err.splitlines()[-1]  # the signature
    done = run("--resume", "--layer", 1)
    assert done.status == 1
    assert "out.pharaoh.manifest.json: this is output of another run (different: extraction." in done.err
    assert run("--overwrite").lines == before.lines


def test_a_text_that_is_changed_in_the_meantime(run, files, tmp_path, monkeypatch):
    """Its alignments had status 0 and the hash of the old text."""
    texts = [tmp_path / f"text.{number}" for number in range(2)]
    for file, text in zip(files, texts):
        text.write_text(Path(file).read_text())
    maps, before = Direction.maps, texts[0].read_text()

    def edit(self, pairs, *what):
        if 4 in pairs:  # the second window
            texts[0].write_text(before.replace("ba", "ki"))
        return maps(self, pairs, *what)

    monkeypatch.setattr(Direction, "maps", edit)
    done = run(*PAPER, "--window", 4, text=texts)
    assert done.status == 1
    assert "text.0: the text was changed while it was read" in done.err
    monkeypatch.setattr(Direction, "maps", maps)
    texts[0].write_text(before)
    done = run(*PAPER, "--window", 4, "--resume", text=texts)
    assert (done.status, done.lines) == (0, run(*PAPER, out=tmp_path / "whole").lines)
    assert ", 4 kept from before" in done.err
