"""What a report holds, against the other commands' routines; and how its page is closed."""

import base64
import hashlib
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from alignment_eval.commands.report import ERROR, STEPS, quantise, render
from alignment_eval.commands.report import build as build_report
from alignment_eval.commands.sweep import sweep
from alignment_eval.extraction.extract import extract, stacked_maps
from alignment_eval.extraction.method import ExtractionOptions, MapName
from alignment_eval.maps.words import SETTINGS
from alignment_eval.scoring.aer import score
from alignment_eval.scoring.significance import confidence
from tests.eval.figures.pages import FAST, GOLD, HOSTILE, Page

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
