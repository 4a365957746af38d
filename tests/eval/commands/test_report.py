import json
import re

import pytest

from alignment_eval.commands import report
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.profiles.profile import Profile
from tests.eval.figures.pages import Page
from tests.facts import says


@pytest.fixture
def inputs(tmp_path, make_sentence, make_records):
    sentences = [make_sentence(3), make_sentence(0), make_sentence(2), make_sentence(1, status="too long")]
    gold = tmp_path / "gold.talp"
    gold.write_text("1-1 2p2\n\n1-2\n3-3\n", encoding="utf-8")
    return make_records(tmp_path / "run", sentences, shards=2), gold


def test_report_end_to_end(inputs, tmp_path, align_eval):
    """What the page holds is compared in tests/eval/figures/test_report.py."""
    gold, maps = ("--gold", inputs[1], "--gold-base", 1), ("--kinds", "attn_n", "--rule", "shift-att")
    done = align_eval("report", inputs[0], *gold, *maps, "--max-sentences", 2, "-o", "-")
    assert done.returncode == 0, done.stderr
    few, skipped, signature = done.stderr.splitlines()
    assert says(few, "warning: only 4 sentences")
    assert says(skipped, "warning: 1 of 4 sentences … 1 too long")
    assert signature.startswith("records:9e5d467ff709ca60|gold:")
    assert (
        "|kinds:attn_n|settings:awo,awi|rule:shift-att|null:mask|level:0.95|interval:bootstrap-percentile|"
        "resamples:10000|seed:0|" in signature
    )
    assert signature in done.stdout
    page = Page(done.stdout)
    assert list(page.index["kinds"]) == ["attn_n"]
    assert [entry["id"] for entry in page.index["sentences"]] == [0, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.talp", "run"]


def test_the_first_map_without_a_gold_is_the_profiles(tmp_path, make_sentence, make_records, call):
    """Without a profile it is one of the last layer but one, as the pairs are too few to compare maps on."""
    maps = ExtractionOptions("attn_n", "0.1:awi,1")
    profile = Profile("0123456789abcdef", maps, chosen_by="agreement", figure=0.5, pairs=30, text="")
    opened = []
    for name, content in (("with", profile.to_json()), ("without", None)):
        run = make_records(tmp_path / name, [make_sentence(0), make_sentence(1)], profile=content)
        status, page, err = call("report", run, "-o", "-")
        assert status == 0, err
        index = Page(page).index
        opened.append([index["maps"][index["best"]][key] for key in ("kind", "setting", "layer", "head")])
    assert opened == [["attn_n", "awi", 0, 1], ["attn_n", "awo", 0, None]]


def table_rows(html, name):
    """The cells of each row of a table of alignments."""
    body = html.split(f'id="{name}-table"')[1].split("<tbody>")[1].split("</tbody>")[0]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("<tr>")[1:]]


TEXTS = ("--source", "source", "--target", "target")


def test_alignments_of_any_aligners_without_records(tmp_path, call, monkeypatch):
    """The figures are those of ``score`` and ``errors``."""
    monkeypatch.chdir(tmp_path)
    lines = {"gold": "1-1 2-2 3p3 4-4\n1-1\n", "a": "0-0 1-1 3-3\n0-1\n", "b": "0-0 2-1\n0-0\n", "c": "0-0 1-1\n\n"}
    for name, text in lines.items():
        (tmp_path / name).write_text(text * 12)
    (tmp_path / "source").write_text("das Haus ist klein\nja\n" * 12)
    (tmp_path / "target").write_text("the house is small\nyes indeed\n" * 12)
    gold, names = ("--gold", "gold", "--gold-base", 1), ("a", "b", "c")
    command = ("report", *gold, "--hyp", *names, *TEXTS)
    status, out, err = call(*command, "-o", "page", "--title", "Three <aligners>")
    assert (status, out) == (0, ""), err
    html = (tmp_path / "page").read_text()
    page = Page(html)
    assert "Three &lt;aligners&gt;" in html
    assert (page.index["systems"], page.index["maps"], sorted(page.blocks)) == (["a", "b", "c"], [], ["aers", "index"])
    assert page.index["sentences"][0]["source"]["words"] == ["das", "Haus", "ist", "klein"]
    assert [entry["aligned"][0] for entry in page.index["sentences"][:2]] == [[[0, 0], [1, 1], [3, 3]], [[0, 1]]]
    assert page.aers()[:, :2].tolist() == [[0, 1], [0.6, 0], [0.2, 1]]
    scored = call("score", *gold, *names, *TEXTS, "--format", "md")[1].splitlines()[4:7]
    shown = [[cell.strip("* ") for cell in line.strip("|").split("|")] for line in scored]
    assert table_rows(html, "scores") == shown
    told = call("errors", *gold, "b", *TEXTS, "--format", "json")[1]
    aers = [f"{100 * row['aer']:.2f}" for row in json.loads(told)["classes"]]
    assert [row[5] for row in table_rows(html, "classes")] == aers
    monkeypatch.setattr(report, "LARGE", len(html) / 2)
    status, _, err = call("report", *gold, "--hyp", "a", *TEXTS, "-o", "one")
    one = (tmp_path / "one").read_text()
    assert (status, "(p)" in one) == (0, False)
    assert says(err, f"--max-sentences {24 * len(html) // 2 // len(one)} makes a page")
