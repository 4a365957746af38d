"""How the page is closed: nothing breaks out of its data, nothing is asked of a network."""

import base64
import hashlib
import re

import numpy as np

from alignment_eval.report.build import ReportOptions, build
from alignment_eval.report.page import render
from tests.eval.report.pages import FAST, GOLD, HOSTILE, Page


def test_nothing_breaks_out(corpus):
    """Hostile tokens are in the data alone, a hostile title and provenance are text."""
    report = build(corpus, GOLD, ReportOptions(resampling=FAST))
    html = render(report, HOSTILE, f"a:{HOSTILE}", {HOSTILE: HOSTILE})
    page = Page(html)
    assert page.index["sentences"][4]["source"]["words"] == [HOSTILE, "a'\"&amp;"]
    assert "img" not in {tag for tag, _ in page.tags}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on") or name == "style"]
    assert HOSTILE not in html
    assert HOSTILE in page.contents["h1"][0]


def test_policy_admits_the_pages_own_script_and_style_alone(corpus):
    html = render(build(corpus, GOLD, ReportOptions(resampling=FAST)), "t", "s", {})
    page = Page(html)
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


def test_undefined_precision(make_sentence):
    """Where null wins everywhere."""
    sentence = make_sentence(0)
    weights = np.zeros_like(sentence.arrays["head_attn_w"])
    weights[..., -1] = 1
    sentence = make_sentence(0, arrays={**sentence.arrays, "head_attn_w": weights})
    report = build([sentence], GOLD[:1], ReportOptions(kinds=("attn_w",), resampling=FAST))
    assert {(m.score.aer, m.score.precision, m.unaligned) for m in report.maps} == {(1.0, None, 3)}
    assert "<td>100.00</td><td>[100.00, 100.00]</td><td>–</td><td>0.00</td>" in render(report, "t", "s", {})
