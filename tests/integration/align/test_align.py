"""``norm-align``: the links of the long way."""

import io
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from alignment_eval import commands as cli
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.profiles.profile import Profile
from alignment_eval.records import Records
from tests.demo import written
from tests.integration.align.conftest import PAPER


@pytest.mark.parametrize(
    "options",
    [
        PAPER,
        ("--kind", "attn_w", "--heads", 1.3, "--setting", "awi", "--rule", "shift-att"),
        ("--kind", "attn_n", "--heads", "1.2,0", "--combine", "product", "--setting", "awo", "--rule", "threshold=0.2"),
        ("--kind", "attn_n", "--heads", "1,0.2:awi", "--setting", "awo", "--rule", "two-way=0.2"),
        ("--kind", "attnresln_n", "--heads", 1, "--setting", "awi", "--rule", "top-k=2", "--null", "mask"),
        ("--kind", "alti", "--heads", "0,1", "--setting", "awo", "--rule", "kobayashi2020", "--final-punctuation"),
        ("--kind", "alti_rollout", "--heads", 1, "--setting", "awo", "--rule", "kobayashi2020", "--null", "mask"),
    ],
    ids=lambda options: options[1],
)
def test_links_are_those_of_the_long_way(run, extracted, options):
    done = run(*options)
    assert done.status == 0, done.err
    assert done.lines == extracted(*options)
    assert len(set(done.lines)) > 6  # says something


def test_defaults(run, extracted, default):
    done = run("--table", "text")
    assert done.lines == extracted(*default)
    assert re.search(
        r"^run:\w{16}\|sentences:12\|kind:attn_logit\|heads:0,1\|combine:mean\|setting:awo\|rule:two-way=0.4\|null:mask\|"
        r"final_punctuation:yes\|table:text\|profile:upper-layers\|",
        done.err,
        re.MULTILINE,
    )
    assert re.search(r"^norm-align: 12 sentences in .* sentences/s$", done.err, re.MULTILINE)
    alone = run("--overwrite")
    assert "|table:none|" in alone.err
    assert run("--overwrite", "--window", 1, "--max-tokens", 1).lines == alone.lines


def test_defaults_of_both_directions(run, extracted, default, records, backward):
    done = run("--reverse-path", backward, "--table", "text")
    assert done.lines == extracted(*default, "--reverse", records / "reverse")
    assert "|rule:two-way=0.4|" in done.err
    single, joined = "two-way=0.25", "two-way=0.4"
    for options, rule in (("--join mutual", single), ("--join average", joined), ("--join union", single)):
        assert f"|rule:{rule}|" in run("--reverse-path", backward, *options.split(), "--overwrite").err


def test_confidences(run, extracted, default):
    found = run("--table", "text", "--confidences").lines, extracted(*default, "--confidences")
    texts = ["\n".join(lines) for lines in found]
    assert re.sub(r":\S+", "", texts[0]) == re.sub(r":\S+", "", texts[1])
    confidences = [[float(number) for number in re.findall(r":(\S+)", text)] for text in texts]
    assert confidences[0] == pytest.approx(confidences[1], rel=1e-4)


def test_an_ensemble(run, extracted, norm, checkpoint, trained, tmp_path):
    both = f"{checkpoint}:{trained('second', seed=3)}"
    norm("--score-reference", "--norm-records", tmp_path / "ensemble", path=both)
    assert run(*PAPER, "--path", both).lines == extracted(*PAPER, records=tmp_path / "ensemble")


def test_both_directions_joined(run, extracted, records, backward):
    options = ("--join", "average", "--reverse-heads", "1")
    done = run(*PAPER, "--reverse-path", backward, *options, "--confidences")
    expected = extracted(*PAPER, "--reverse", records / "reverse", *options)
    assert [re.sub(r":\S+", "", line) for line in done.lines] == expected
    assert "|join:average|reverse_heads:1|" in done.err


def test_both_directions_symmetrized(run, extracted, records, backward, tmp_path):
    method = "grow-diag-final-and"
    for name, source in (("f", "forward"), ("r", "reverse")):
        written(tmp_path / name, extracted(*PAPER, records=records / source))
    how = ("--method", method, "--reverse-swap", "--output", str(tmp_path / "both"))
    assert cli.main(["symmetrize", str(tmp_path / "f"), str(tmp_path / "r"), *how]) == 0
    done = run(*PAPER, "--reverse-path", backward, "--join", method)
    assert done.lines == (tmp_path / "both").read_text().splitlines()
    assert f"|symmetrized:{method}|variant:moses|" in done.err


def test_a_profile_of_both_directions(run, extracted, records, backward, tmp_path):
    hashes = [Records(records / name).info.signature["model"] for name in ("forward", "reverse")]
    maps = ExtractionOptions("attn_n", "0.0:awi,1", "product", "awo")
    forward, reverse = (Profile(str(model), maps, "agreement", 0.5, 30, "t") for model in hashes)
    profile = written(tmp_path / "profile.json", [forward.with_reverse(reverse).to_json()])
    done = run("--profile", profile, "--reverse-path", backward, "--join", "mutual")
    assert done.lines == extracted("--profile", profile, "--reverse", records / "reverse", "--join", "mutual")
    assert "|profile:agreement|" in done.err
    assert "|lexical_table:" not in done.err


def test_one_file_and_standard_input(run, files, tmp_path, monkeypatch, capsys):
    expected = run().lines
    pairs = zip(*(file.read_text().splitlines() for file in files))
    joined = "".join(f"{source} ||| {target}\n" for source, target in pairs).encode()
    (tmp_path / "joined").write_bytes(joined)
    assert run("--overwrite", text=[tmp_path / "joined"]).lines == expected
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(joined))))
    assert run("--overwrite", text=["-"]).lines == expected
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(files[1].read_bytes()))))
    assert run("--overwrite", text=[files[0], "-"]).lines == expected


def test_a_reader_that_goes_away_is_no_error(data, checkpoint, files):
    """As with ``| head``: no traceback; and no lines of fairseq and torch, which a whole process would print."""
    words = ["--path", checkpoint, "--data", data, "--source-text", files[0], "--target-text", files[1]]
    words += ["--bpe", "none", "--cpu", "--force", "--confidences", "-o", "-"]
    command = [sys.executable, "-m", "fairseq_norm_plugin.align.cli", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    with process.stderr:
        messages = process.stderr.read()
    assert process.wait() == 141
    for strange in ("Traceback", "BrokenPipe", "dictionary:", "UserWarning", "key_padding_mask"):
        assert strange not in messages
