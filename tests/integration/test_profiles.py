"""The profile beside a checkpoint, in fairseq-generate and in what is made of its records."""

import json
import re

import pytest

from alignment_eval import commands as cli
from alignment_eval.errors import InputError
from alignment_eval.records import Records
from fairseq_norm_plugin.align import cli as norm_align
from tests.demo import DEMO, MODEL, in_pieces, lines
from tests.integration.conftest import ROOT, demo_binarised

PROFILE = str(DEMO / "checkpoint.pt.align.json")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A directory with the demo's text, binarised."""
    directory = tmp_path_factory.mktemp("demo")
    demo_binarised(directory, *(in_pieces(lines(language)) for language in ("de", "en")))
    return directory


def scoring(demo, *options):
    words = [demo / "bin", *MODEL, "--user-dir", ROOT / "fairseq_norm_plugin", "--task", "translation_norm"]
    return [*words, "--score-reference", *options]


@pytest.fixture(scope="module")
def forced(program, demo):
    """A run with records and alignments; its standard error."""
    options = ["--norm-records", demo / "records", "--norm-alignments", demo / "alignments"]
    return program("fairseq-generate", *scoring(demo, *options), "--cpu").stderr


@pytest.fixture
def generate(demo, run_generate, capsys):
    """A run in this process; its standard error."""

    def run(*options):
        run_generate(*scoring(demo, *options))
        return capsys.readouterr().err

    return run


def aligned(out, *options):
    words = [*MODEL, "--bpe-codes", DEMO / "codes.bpe", "--cpu", *options]
    words += ["--source-text", DEMO / "demo.de", "--target-text", DEMO / "demo.en", "-o", out]
    assert norm_align.main([str(word) for word in words]) == 0
    return out.read_text()


def test_alignments_are_those_of_norm_align(demo, forced, tmp_path):
    (line,) = [
        line
        for line in forced.splitlines()
        if line.startswith("--norm-alignments: reading head 0.0 (AWI) × layer 2 (AWO)")
    ]
    assert PROFILE in line
    assert (demo / "alignments").read_text() == aligned(tmp_path / "out")


def test_extract_gives_what_norm_align_gives(demo, forced, tmp_path, capsys):
    """Records carry the profile, so that they can be read anywhere."""
    info = Records(demo / "records").info
    assert json.loads(info.profile)["model"] == info.signature["model"]
    assert cli.main(["extract", str(demo / "records"), "--output", str(tmp_path / "out")]) == 0
    messages = capsys.readouterr().err
    assert f"profile: the one in {demo / 'records'}" in messages
    assert (tmp_path / "out").read_text() == aligned(tmp_path / "mine")


def test_no_profile(demo, forced, generate, tmp_path):
    said = generate("--norm-alignments", tmp_path / "named", "--norm-profile", "none")
    assert "reading head 0.0" not in said
    words = ["extract", demo / "records", "--kind", "attn_n", "--heads", 1, "--setting", "awo"]
    assert cli.main([str(word) for word in (*words, "--rule", "kobayashi2020", "--output", tmp_path / "same")]) == 0
    assert (tmp_path / "named").read_text() == (tmp_path / "same").read_text()


def test_a_profile_of_another_model_stops_the_run(generate, tmp_path):
    other = DEMO / "checkpoint.en-de.pt.align.json"
    with pytest.raises(InputError, match=re.escape(f"{other}: is the profile of model")):
        generate("--norm-alignments", tmp_path / "a", "--norm-profile", other)
    assert not (tmp_path / "a").exists()
