"""``norm-align calibrate``: profiles beside checkpoints, and what align does with them."""

import json
import shutil
from types import SimpleNamespace

import pytest

from alignment_eval.extraction.lexical_table import read_lexical_table
from alignment_eval.reading import file_hash
from fairseq_norm_plugin.align import cli
from tests.demo import DEMO, lines, written


@pytest.fixture
def models(tmp_path):
    """The two bundled models and their codes in a place of their own, without profiles."""
    for name in ("checkpoint.pt", "checkpoint.en-de.pt", "codes.bpe"):
        shutil.copy(DEMO / name, tmp_path / name)
    return tmp_path


def add_profiles(models):
    """The bundled profiles and their lexical table."""
    for name in ("checkpoint.pt.align.json", "checkpoint.en-de.pt.align.json", "checkpoint.pt.align.parquet"):
        shutil.copy(DEMO / name, models / name)


@pytest.fixture
def call(models, capsys, tmp_path):
    """Run ``norm-align``; (status, stdout, stderr)."""

    def call(
        *words,
        pairs=60,
        texts=(DEMO / "demo.de", DEMO / "demo.en"),
        codes=("--bpe-codes", models / "codes.bpe"),
    ):
        files = [written(tmp_path / f"text{file.suffix}", file.read_text().splitlines()[:pairs]) for file in texts]
        calibrating = words[:1] == ("calibrate",)
        command = ["calibrate"] if calibrating else ["-o", tmp_path / "out", "--overwrite"]
        command += ["--path", models / "checkpoint.pt", "--data", DEMO, "-s", "de", "-t", "en", "--cpu"]
        command += [*codes, "--source-text", files[0], "--target-text", files[1]]
        capsys.readouterr()
        status = cli.main([str(word) for word in (*command, *words[calibrating:])])
        output = capsys.readouterr()
        links = (tmp_path / "out").read_text().splitlines() if (tmp_path / "out").exists() else None
        return SimpleNamespace(status=status, out=output.out, err=output.err, lines=links)

    return call


def both(models):
    return ("--reverse-path", models / "checkpoint.en-de.pt")


def test_profiles_and_their_table(call, models):
    """The maps are those of the bundled profiles, which were chosen on other text."""
    done = call("calibrate", *both(models))
    assert done.status == 0, done.err
    bundled = json.loads((DEMO / "checkpoint.pt.align.json").read_text())
    table = read_lexical_table(models / "checkpoint.pt.align.parquet")
    assert table.pairs == 60
    for name, exchanged in (("checkpoint.pt.align.json", False), ("checkpoint.en-de.pt.align.json", True)):
        mine = json.loads((models / name).read_text())
        assert mine["maps"] == mine["reverse_maps"] == bundled["maps"]
        own = file_hash(models / "checkpoint.pt.align.parquet")
        assert mine["table"] == {"name": "checkpoint.pt.align.parquet", "hash": own, "exchanged": exchanged}
    assert done.out.count("chosen by agreement on 60 pairs") == 2
    assert "rule two-way=0.4; lexical table checkpoint.pt.align.parquet" in done.out
    again = call("calibrate", *both(models))
    assert (again.status, "already exists" in again.err) == (1, True)
    whole = call(*both(models), pairs=8)
    assert str(models / "checkpoint.pt.align.json") in whole.err
    alone = call(*both(models), "--window", 1, "--max-tokens", 1, pairs=8)
    assert (alone.lines, call(*both(models), pairs=1).lines) == (whole.lines, whole.lines[:1])
    (models / "checkpoint.pt.align.parquet").write_bytes((DEMO / "checkpoint.pt.align.parquet").read_bytes())
    other = call(*both(models))
    assert (other.status, "checkpoint.pt.align.parquet with hash" in other.err) == (1, True)


def test_a_named_profile_has_what_belongs_to_it_beside_it(call, models, tmp_path):
    place = tmp_path / "own"
    place.mkdir()
    done = call("calibrate", *both(models), "-o", place / "p.json")
    assert done.status == 0, done.err
    assert sorted(file.name for file in place.iterdir()) == ["codes.bpe", "p.json", "p.parquet", "p.reverse.json"]
    assert file_hash(place / "codes.bpe") == file_hash(models / "codes.bpe")
    assert not list(models.glob("checkpoint*.align.*"))
    by_name = call(*both(models), "--profile", place / "p.json", pairs=8)
    exchanged = call(*both(models), "--profile", place / "p.reverse.json", pairs=8)
    assert (by_name.status, exchanged.status) == (0, 1)  # the second one is of the other model
    moved = place.rename(tmp_path / "moved")
    profiled = call("--profile", moved / "p.json", *both(models), pairs=8, codes=())
    assert (profiled.status, profiled.lines) == (0, by_name.lines), profiled.err
    assert call("calibrate", *both(models)).status == 0
    assert call(*both(models), pairs=8).lines == by_name.lines


def test_files_of_one_name_beside_a_profile(call, models, tmp_path):
    place = tmp_path / "own"
    place.mkdir()
    other = written(place / "codes.bpe", ["#version: 0.2", "a b"])
    done = call("calibrate", "-o", place / "p.json", pairs=30)
    assert (done.status, str(other) in done.err, str(models / "codes.bpe") in done.err) == (1, True, True)
    assert list(place.iterdir()) == [other]


def test_a_profile_of_one_direction_and_without_a_table(call, models):
    done = call("calibrate", "--table-pairs", 0, pairs=30)
    assert (done.status, "lexical table" in done.out) == (0, False)
    assert call("--profile", models / "checkpoint.pt.align.json", pairs=1).status == 0


def test_without_a_profile_the_text_decides(call, models):
    done = call(pairs=30)
    assert "reading head 0.0 (AWI) × layer 2 (AWO); profile: none, chosen on the text itself" in done.err
    few = call(pairs=29)
    assert "the text is too short to choose maps by" in few.err
    assert "|table:text|" in done.err
    assert "|table:none|" in few.err
    add_profiles(models)
    assert call("--profile", "none", pairs=30).lines == done.lines
    assert call("--profile", "none", pairs=29).lines == few.lines


def test_too_few_different_pairs(call, models, tmp_path):
    for count, times in ((29, 1), (1, 100)):  # the latter are all equal
        texts = [written(tmp_path / f"few.{lang}", lines(lang)[:count] * times) for lang in ("de", "en")]
        done = call("calibrate", texts=texts, pairs=100)
        said = f"{count} different sentence pairs that can be aligned, of {count * times}: expected 30 or more"
        assert (done.status, said in done.err) == (1, True)
    assert not (models / "checkpoint.pt.align.json").exists()
