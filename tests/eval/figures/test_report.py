"""What a report holds, against the other commands' routines; how its page is closed; the command."""

import base64
import hashlib
import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from alignment_eval.commands import report
from alignment_eval.commands.report import ERROR, STEPS, quantise, render
from alignment_eval.commands.report import build as build_report
from alignment_eval.commands.sweep import sweep
from alignment_eval.extraction.extract import extract, stacked_maps
from alignment_eval.extraction.method import ExtractionOptions, MapName
from alignment_eval.maps.words import SETTINGS
from alignment_eval.profiles.profile import Profile
from alignment_eval.scoring.aer import score
from alignment_eval.scoring.significance import confidence
from tests.eval.figures.pages import FAST, GOLD, HOSTILE, Page
from tests.facts import says

build = partial(build_report, resampling=FAST)


def page_of(report):
    return Page(render(report, "title", "a:b", {"model": "m"}))


@pytest.mark.parametrize(
    ("kinds", "rule"), [(("attn_w", "attn_n"), "kobayashi2020"), (("attn_w", "attnres_w", "attnres_n"), "shift-att")]
)
def test_page_holds_what_extract_and_sweep_find(corpus, kinds, rule):
    report = build(corpus, GOLD, kinds=kinds, rule=rule)
    page = page_of(report)
    options = [ExtractionOptions(kind, "0", "mean", setting, rule) for kind in kinds for setting in SETTINGS]
    table = sweep(corpus, GOLD, options)[0]
    found = pd.DataFrame([(m.kind, m.setting, m.layer, m.head, m.score.aer) for m in report.maps])
    expected = table[["kind", "setting", "layer", "head", "aer"]]
    assert found.astype(object).where(found.notna(), None).to_numpy().tolist() == (
        expected.astype(object).where(expected.notna(), None).to_numpy().tolist()
    )
    by_id = {sentence.id: sentence for sentence in corpus}
    assert [entry["id"] for entry in page.index["sentences"]] == [0, 1, 2, 3, 4]
    assert page.index["sentences"][1]["status"] == "too long"
    assert "s1" not in page.blocks
    links_of = [[frozenset()] * len(GOLD) for _ in report.maps]
    for place in (0, 2, 3, 4):
        entry, maps, links = page.sentence(place)
        sentence = by_id[place]
        exact = {kind: stacked_maps(sentence, kind) for kind in kinds}
        for number, m in enumerate(report.maps):
            pairs = extract(sentence, ExtractionOptions(m.kind, [MapName(m.layer, m.head)], "mean", m.setting, rule))
            assert {(int(i), int(j)) for i, j in np.argwhere(links[number])} == pairs
            links_of[number][place] = pairs
            want = exact[m.kind][sentence.layers.index(m.layer), -1 if m.head is None else m.head]
            assert np.abs(maps[number] - want).max() <= 2 * ERROR * want.max(initial=1)
        assert {tuple(pair) for pair in entry["sure"]} == GOLD[place].sure
        assert {tuple(pair) for pair in entry["sure"] + entry["possible"]} == GOLD[place].possible
        assert entry["target"]["pieces"] == sentence.target.words.tolist()
    for number, m in enumerate(report.maps):
        scored = score(links_of[number], GOLD)
        sentence_aer = [score([links_of[number][k]], [GOLD[k]]).aer for k in range(len(GOLD))]
        np.testing.assert_allclose(page.aers()[number], sentence_aer, atol=0.5e-4)
        assert m.interval == confidence(scored.per_sentence, FAST)["aer"]


VALUES = st.floats(1e-30, 1e6) | st.just(0.0)


@given(arrays.arrays(np.float64, (2, 3, 4), elements=VALUES))
def test_a_value_is_off_by_a_share_of_the_largest_of_its_row(planes):
    steps, scales = quantise(planes)
    stored = steps / STEPS * scales[..., np.newaxis]
    assert (np.abs(stored - planes) <= ERROR * planes.max(axis=-1, keepdims=True) * (1 + 1e-9)).all()
    assert not steps[planes == 0].any()
    # as the page has it, in half of a float32
    assert ((scales.astype("<f4").view("<u4") & 0xFFFF) == 0).all()


def test_nothing_breaks_out_and_the_policy_admits_the_pages_own_script_and_style_alone(corpus):
    """Hostile tokens are in the data alone, a hostile title and provenance are text."""
    html = render(build(corpus, GOLD), HOSTILE, f"a:{HOSTILE}", {HOSTILE: HOSTILE})
    page = Page(html)
    assert page.index["sentences"][4]["source"]["words"] == [HOSTILE, "a'\"&amp;"]
    assert "img" not in {tag for tag, _ in page.tags}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on") or name == "style"]
    assert HOSTILE not in html
    assert HOSTILE in page.contents["h1"][0]
    (policy,) = (a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")

    def hashed(tag):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashed('script')}'; style-src 'sha256-{hashed('style')}'; "
        f"base-uri 'none'; form-action 'none'"
    )
    assert {str(a["href"])[0] for _, a in page.tags if "href" in a} == {"#"}
    assert not [tag for tag, attributes in page.tags if "src" in attributes]
    assert not re.search(r"https?:|url\(|@import|innerHTML|outerHTML|insertAdjacentHTML|eval\(|Function\(", html)


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
    aers = [f"{100 * row['aer']:.2f}" for row in json.loads(told)["classes"] if row["class"] != "0"]
    assert [row[5] for row in table_rows(html, "classes")] == aers
    monkeypatch.setattr(report, "LARGE", len(html) / 2)
    status, _, err = call("report", *gold, "--hyp", "a", *TEXTS, "-o", "one")
    one = (tmp_path / "one").read_text()
    assert (status, "(p)" in one) == (0, False)
    assert says(err, f"--max-sentences {24 * len(html) // 2 // len(one)} makes a page")
