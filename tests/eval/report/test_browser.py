"""The report in a real browser (headless Chromium, driven through Selenium): it loads, and everything in it works.

Skipped with a reason where there is no browser (fixture ``chromium``).
"""

import time

import numpy as np
import pytest

from alignment_eval.alignment import Alignment, Alignments
from alignment_eval.extraction.extract import stacked_maps
from alignment_eval.maps.words import word_map
from alignment_eval.records.store import Records
from alignment_eval.report.encoding import ERROR
from alignment_eval.report.map_view import DisplayMaps
from tests.eval.report.driving import Browser, requested
from tests.eval.report.pages import HOSTILE, Page

#: Id -> source and target; 3 was skipped, 4 has no words on its source side.
TEXTS = {
    0: ("wir@@ sind hier . </s>", "we are here . </s>"),
    1: (f"{HOSTILE} b </s>", f"x {HOSTILE} </s>"),
    2: ("das haus ist@@ t klein . </s>", "the hou@@ se is small . </s>"),
    4: ("</s>", "nothing </s>"),
    5: ("noch ein satz </s>", "one more sentence </s>"),
}
GOLD = "1-1 2p2 3-4\n1-1 2-2\n1-1 2-2 3p3 5-5\n1-1\n\n2-1 1-2 3-3\n"


@pytest.fixture(scope="module")
def report(tmp_path_factory, make_sentence, make_records, align_eval):
    """A page, with its records beside it."""
    directory = tmp_path_factory.mktemp("report")
    sentences = [make_sentence(id_, *texts) for id_, texts in TEXTS.items()]
    make_records(directory / "run", [*sentences, make_sentence(3, status="too long")])
    (directory / "gold").write_text(GOLD, encoding="utf-8")
    page = directory / "report.html"
    done = align_eval("report", directory / "run", "--gold", directory / "gold", "--gold-base", 1, "-o", page)
    assert done.returncode == 0, done.stderr
    return page


@pytest.fixture
def browser(chromium, report):
    browser = Browser(chromium)
    browser.open(report)
    return browser


def test_a_link_opens_its_sentence_and_map(browser, report):
    browser.choose_map(5)
    browser.choose_sentence(2)
    browser.until_title("Sentence 2")
    title, link = browser.text("#sentence-title"), browser.run("return document.getElementById('link').href")
    assert link == f"{report.as_uri()}#sentence=2&map=5"
    browser.open(report)
    assert browser.text("#sentence-title") != title
    browser.run("location.href = arguments[0]", link)
    browser.until(lambda: browser.text("#sentence-title") == title)
    browser.driven.get("about:blank")
    browser.driven.get(link)
    browser.until(lambda: browser.text("#sentence-title") == title)
    assert browser.run("return document.getElementById('sentences').value") == "2"
    for strange in ("#sentence=99", "#overview", "#sentence=2&map=999"):
        browser.run("location.hash = arguments[0]", strange)
        browser.until_title("Sentence 2")
    assert browser.driven.get_log("browser") == []


def test_every_map_shows_its_links_and_values(browser, report):
    page = Page(report.read_text(encoding="utf-8"))
    records = {sentence.id: sentence for sentence in Records(report.parent / "run")}
    script = """return [...document.querySelectorAll('#map tbody tr')].map((row) => [...row.querySelectorAll('td')].map(
        (cell) => [cell.getAttribute('aria-label'), cell.className]))"""
    for place in (0, 2):
        browser.choose_sentence(place)
        entry, _, links = page.sentence(place)
        sure, possible = ({tuple(pair) for pair in entry[name]} for name in ("sure", "possible"))
        for number, chosen in enumerate(page.index["maps"]):
            if number % 3:
                continue
            browser.choose_map(number)
            head = "whole layer" if chosen["head"] is None else f"head {chosen['head']}"
            layer = page.index["layers"][chosen["layer"]]
            title = f"Sentence {place}: {chosen['kind']}, {chosen['setting'].upper()}, {layer}, {head}"
            browser.until(lambda title=title: browser.text("#sentence-title") == title)
            browser.until(lambda: bool(browser.texts("#map tbody td")))
            maps = stacked_maps(records[place], chosen["kind"])[chosen["layer"]][
                -1 if chosen["head"] is None else chosen["head"]
            ]
            exact = word_map(maps, records[place].source, records[place].target, chosen["setting"])
            cells = browser.run(script)
            assert np.shape(cells)[:2] == exact.shape
            for j, row in enumerate(cells):
                for i, (label, classes) in enumerate(row):
                    value = float(label.rpartition(": ")[2].partition(",")[0])
                    assert abs(value - exact[j, i]) <= 2 * ERROR * exact[j].max(), label
                    if i == len(row) - 1:
                        assert ("null" in classes) == (not links[number][:, j].any())
                        continue
                    linked, gold = links[number][i, j], (i, j) in sure | possible
                    assert ("right" in classes) == (linked and gold)
                    assert ("wrong" in classes) == (linked and not gold)
                    assert ("missed" in classes) == ((i, j) in sure and not linked)
                    assert ("sure" in classes, "possible" in classes) == ((i, j) in sure, (i, j) in possible)
            aer = f"AER {100 * page.aers()[number, place]:.2f} %"
            assert browser.text("#summary").startswith(aer)


def test_hostile_words_stay_text(browser):
    browser.choose_sentence(1)
    browser.until_title("Sentence 1")
    assert browser.texts("#map thead th") == [HOSTILE, "b", "null"]
    assert browser.texts("#map tbody th") == ["x", HOSTILE]
    assert HOSTILE in browser.texts("#sentences option")[1]
    assert any(HOSTILE in text for text in browser.texts("#links td"))
    browser.run("document.querySelector('#map tbody td').dispatchEvent(new Event('pointerover', {bubbles: true}))")
    assert browser.text("#readout").startswith(f"{HOSTILE} – x: ")
    assert browser.run("return document.images.length") == 0
    assert browser.run("return document.scripts.length") == len(browser.texts("script"))
    assert browser.driven.get_log("browser") == []


def check_inert(driven, page):
    """Open a page: no script of a token has run, and nothing but the page itself was asked for."""
    requested(driven)
    driven.get(page.as_uri())
    time.sleep(0.3)
    assert driven.execute_script("return window.ran") is None
    assert driven.execute_script("return document.querySelectorAll('img, iframe, link').length") == 0
    assert {url for url in requested(driven) if not url.startswith("data:")} == {page.as_uri()}


#: Each would run, or ask for a file, in a page that takes it as it is.
TOKENS = (
    "<script>window.ran=1</script>",
    "<img/src=http://localhost:9/x.png/onerror=window.ran=1>",
    "\"'><svg/onload=window.ran=1>",
    "</script></style></td></table><iframe/src=javascript:parent.ran=1>",
    "<link/rel=stylesheet/href=http://localhost:9/x.css>",
)


@pytest.mark.parametrize("token", TOKENS)
def test_nothing_of_a_hostile_page_runs_or_is_fetched(
    chromium, tmp_path, make_sentence, make_records, align_eval, token
):
    """Tokens and names of files, from which titles are made, in the report and in the cells of a notebook."""
    name = token.replace("/", "\N{DIVISION SLASH}")
    sentence = make_sentence(0, f"{token} b </s>", f"x {token} </s>")
    make_records(tmp_path / name, [sentence])
    for file in ("gold", "hyp"):
        (tmp_path / f"{file}{name}").write_text("0-0 1-1\n")
    named = ("--gold", tmp_path / f"gold{name}", "--gold-base", 0, "--hyp", tmp_path / f"hyp{name}")
    done = align_eval("report", tmp_path / name, *named, "-o", tmp_path / "report.html")
    assert done.returncode == 0, done.stderr
    check_inert(chromium, tmp_path / "report.html")
    spans = ((0, len(token)),)
    alignment = Alignment(token, token, spans, spans, [(0, 0)], {(0, 0): 0.5}, status=token)
    shown = (DisplayMaps.of(sentence), alignment, Alignments([alignment]))
    cells = "".join(type(cell)._repr_html_(cell) for cell in shown)
    (tmp_path / "cells.html").write_text(f"<!doctype html><meta charset=utf-8>{cells}", encoding="utf-8")
    check_inert(chromium, tmp_path / "cells.html")


def test_filter_and_order(browser):
    assert browser.text("#found") == "6 of 6"
    browser.find("#filter").send_keys("HAUS")
    assert browser.text("#found") == "1 of 6"
    assert "das haus istt klein" in browser.text("#sentences option")
    browser.find("#filter").clear()
    browser.find("#filter").send_keys("hou")  # of the target side
    assert browser.text("#found") == "1 of 6"
    browser.find("#filter").clear()
    browser.find("#filter").send_keys(" \b")
    assert browser.text("#found") == "6 of 6"
    for order, reverse in (("worst", True), ("best", False)):
        browser.find(f"#order option[value={order}]").click()
        aers = [float(text.split()[1]) for text in browser.texts("#sentences option")]
        assert aers == sorted(aers, reverse=reverse)
        assert len(set(aers)) > 1
    first = browser.find("#sentences option")
    first.click()
    browser.until_title(f"Sentence {first.text.split()[0]}:")


def test_keys_in_the_map(browser):
    right, down, home, end = "\ue014", "\ue015", "\ue011", "\ue010"
    browser.choose_map(0)
    browser.choose_sentence(2)
    browser.until_title("Sentence 2", "head 0")
    assert len(browser.texts("#map [tabindex='0']")) == 1
    browser.run("document.querySelector('#map [tabindex=\"0\"]').focus()")
    assert browser.text("#readout").startswith("das – the: ")
    browser.press(right)
    browser.press(down)
    assert browser.text("#readout").startswith("haus – house: ")
    assert browser.texts("#map .at") == ["haus", "house"]
    browser.press(home)
    assert browser.text("#readout").startswith("das – house: ")
    browser.press(end)
    assert browser.text("#readout").startswith("null – house: ")
    browser.press(right)  # at the edge
    assert browser.text("#readout").startswith("null – house: ")
    assert len(browser.texts("#map [tabindex='0']")) == 1
    for keys, title in (
        ("h", "Sentence 2: attn_w, AWO, layer 0 (1st), head 1"),
        ("H", "Sentence 2: attn_w, AWO, layer 0 (1st), head 0"),
        ("H", "Sentence 2: attn_w, AWO, layer 0 (1st), whole layer"),
        ("l", "Sentence 2: attn_w, AWO, layer 1 (2nd), whole layer"),
        ("l", "Sentence 2: attn_w, AWO, layer 1 (2nd), whole layer"),
        ("L", "Sentence 2: attn_w, AWO, layer 0 (1st), whole layer"),
        ("k", "Sentence 2: attn_n, AWO, layer 0 (1st), whole layer"),
        ("s", "Sentence 2: attn_n, AWI, layer 0 (1st), whole layer"),
        ("p", "Sentence 1: attn_n, AWI, layer 0 (1st), whole layer"),
        ("n", "Sentence 2: attn_n, AWI, layer 0 (1st), whole layer"),
    ):
        browser.press(keys)
        browser.until(lambda title=title: browser.text("#sentence-title") == title)
        browser.until(lambda: browser.run("return document.activeElement.matches('#map td.cell')"))
