"""The report in a real browser (headless Chromium, driven through Selenium): it loads, and everything in it works.

Skipped with a reason where there is no browser (fixture ``chromium``).
"""

import json
import time

import numpy as np
import pytest

from alignment_eval.commands.report import ERROR
from alignment_eval.extraction.extract import stacked_maps
from alignment_eval.maps.words import word_map
from alignment_eval.records import Records
from tests.eval.figures.pages import HOSTILE, Page

#: Id -> source and target; 3 was skipped, 4 has no words on its source side.
TEXTS = {
    0: ("wir@@ sind hier . </s>", "we are here . </s>"),
    1: (f"{HOSTILE} b </s>", f"x {HOSTILE} </s>"),
    2: ("das haus ist@@ t klein . </s>", "the hou@@ se is small . </s>"),
    4: ("</s>", "nothing </s>"),
    5: ("noch ein satz </s>", "one more sentence </s>"),
}
GOLD = "1-1 2p2 3-4\n1-1 2-2\n1-1 2-2 3p3 5-5\n1-1\n\n2-1 1-2 3-3\n"
LINKS = {"ours": "0-0 1-1\n0-0\n0-0 1-1 2-2\n\n\n0-1\n", "theirs": "0-0 1-3\n0-0 1-1\n0-0 1-1 4-2\n\n\n0-1 1-0 2-2\n"}


class Browser:
    """The page in the browser."""

    def __init__(self, driven):
        self.driven = driven

    def open(self, page):
        self.driven.get_log("browser")
        self.driven.get_log("performance")
        self.driven.get(page.as_uri())
        self.until(lambda: self.run("return document.body.dataset.ready") == "yes")

    def run(self, script, *args):
        return self.driven.execute_script(script, *args)

    def find(self, selector):
        return self.driven.find_element("css selector", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def text(self, selector):
        return self.texts(selector)[0]

    def until(self, true):
        end = time.monotonic() + 10
        while not true():
            assert time.monotonic() < end, self.text("#problem") or self.driven.get_log("browser")
            time.sleep(0.01)

    def until_title(self, *parts):
        """Until the map shown is one whose heading holds ``parts``."""
        self.until(lambda: all(part in self.text("#sentence-title") for part in parts))

    def press(self, keys):
        """As a keyboard does: to whatever has the focus now. An element held from before may have been drawn anew."""
        from selenium.webdriver import ActionChains  # only where there is a browser

        ActionChains(self.driven).send_keys(keys).perform()

    def choose_map(self, number):
        self.run("document.querySelector(`button.heat[data-map='${arguments[0]}']`).click()", number)

    def choose_sentence(self, place):
        script = "const s = document.getElementById('sentences'); s.value = arguments[0]; "
        self.run(script + "s.dispatchEvent(new Event('change'))", place)


@pytest.fixture(scope="module")
def report(tmp_path_factory, make_sentence, make_records, align_eval):
    """A page with maps and two alignments, and its records beside it."""
    directory = tmp_path_factory.mktemp("report")
    sentences = [make_sentence(id_, *texts) for id_, texts in TEXTS.items()]
    make_records(directory / "run", [*sentences, make_sentence(3, status="too long")])
    for name, text in {"gold": GOLD, **LINKS}.items():
        (directory / name).write_text(text)
    named = ("--gold", directory / "gold", "--gold-base", 1, "--hyp", *(directory / name for name in LINKS))
    done = align_eval("report", directory / "run", *named, "-o", directory / "report.html")
    assert done.returncode == 0, done.stderr
    return directory / "report.html"


@pytest.fixture
def browser(chromium, report):
    browser = Browser(chromium)
    browser.open(report)
    yield browser
    assert browser.driven.get_log("browser") == []


def test_a_link_opens_its_sentence_and_map(browser, report):
    browser.choose_map(5)
    browser.choose_sentence(2)
    browser.until_title("Sentence 2")
    title, link = browser.text("#sentence-title"), browser.run("return document.getElementById('link').href")
    assert link == f"{report.as_uri()}#sentence=2&map=5"
    browser.open(report)
    assert browser.text("#sentence-title") != title
    browser.driven.get("about:blank")
    browser.driven.get(link)
    browser.until(lambda: browser.text("#sentence-title") == title)
    assert browser.run("return document.getElementById('sentences').value") == "2"
    for strange in ("#sentence=99", "#sentence=2&map=999"):
        browser.run("location.hash = arguments[0]", strange)
        browser.until_title("Sentence 2")


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
            title = f"Sentence {place} (line {place + 1}): {chosen['name']}"
            browser.until(lambda title=title: browser.text("#sentence-title") == title)
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
                    assert ("aligned" in classes) == any([i, j] in system for system in entry["aligned"])
            aer = f"AER {100 * page.aers()[number, place]:.2f} %"
            assert browser.text("#summary").startswith(aer)


#: Each would run, or ask for a file, in a page that takes it as it is.
TOKENS = (
    "<script>window.ran=1</script>",
    "<img/src=http://localhost:9/x.png/onerror=window.ran=1>",
    "\"'><svg/onload=window.ran=1>",
    "</script></style></td></table><iframe/src=javascript:parent.ran=1>",
    "<link/rel=stylesheet/href=http://localhost:9/x.css>",
)


def test_nothing_of_a_hostile_page_runs_or_is_fetched(chromium, tmp_path, make_sentence, make_records, align_eval):
    """Tokens and names of files, from which titles are made."""
    sentences = [make_sentence(k, f"{token} b </s>", f"x {token} </s>") for k, token in enumerate(TOKENS)]
    hyps = [tmp_path / token.replace("/", "\N{DIVISION SLASH}") for token in TOKENS]
    for file in (tmp_path / "gold", *hyps):
        file.write_text("0-0 1-1\n" * len(TOKENS))
    make_records(tmp_path / f"run{hyps[0].name}", sentences)
    named = ("--gold", tmp_path / "gold", "--gold-base", 0, "--hyp", *hyps)
    done = align_eval("report", tmp_path / f"run{hyps[0].name}", *named, "-o", tmp_path / "report.html")
    assert done.returncode == 0, done.stderr
    browser, page = Browser(chromium), tmp_path / "report.html"
    browser.open(page)
    assert browser.run("return [window.ran, document.querySelectorAll('img, iframe, link').length]") == [None, 0]
    events = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    asked = {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}
    assert {url for url in asked if not url.startswith("data:")} == {page.as_uri()}


def test_filter_and_order(browser):
    for text, found in (("HAUS", 1), ("hou", 1), ("zebra", 0), (" \b", 6)):  # also of the target side
        browser.find("#filter").clear()
        browser.find("#filter").send_keys(text)
        assert browser.text("#found") == f"{found} of 6"
        if text == "HAUS":
            assert "das haus istt klein" in browser.text("#sentences option")
        assert browser.find("#sentences option").is_enabled() == (found > 0)
    for order, reverse in (("worst", True), ("best", False)):
        browser.find(f"#order option[value={order}]").click()
        aers = [float(text.split()[1]) for text in browser.texts("#sentences option")]
        assert aers == sorted(aers, reverse=reverse)
        assert len(set(aers)) > 1
    first = browser.find("#sentences option")
    first.click()
    browser.until_title(f"Sentence {first.text.split()[0]} (line")


def test_keys_in_the_map(browser):
    right, down, home, end = "\ue014", "\ue015", "\ue011", "\ue010"
    browser.choose_map(0)
    browser.choose_sentence(2)
    browser.until_title("Sentence 2", "head 0")
    assert len(browser.texts("#map [tabindex='0']")) == 1
    browser.run("document.querySelector('#map [tabindex=\"0\"]').focus()")
    for keys, words in (
        ("", "das – the"),
        (right + down, "haus – house"),
        (home, "das – house"),
        (end, "null – house"),
    ):
        browser.press(keys)
        assert browser.text("#readout").startswith(f"{words}: ")
        if words == "haus – house":
            assert browser.texts("#map .at") == browser.texts(".pair .at") == ["haus", "house"]
    assert len(browser.texts("#map [tabindex='0']")) == 1
    for keys, *parts in (
        ("h", "attn_w, AWO, layer 0 (1st), head 1"),
        ("HH", "layer 0 (1st), whole layer"),
        ("ll", "layer 1 (2nd)"),
        ("L", "layer 0 (1st)"),
        ("k", "attn_n"),
        ("s", "AWI"),
        ("p", "Sentence 1"),
        ("n", "Sentence 2", "attn_n, AWI, layer 0 (1st), whole layer"),
    ):
        for key in keys:
            browser.press(key)
            browser.until(lambda: browser.run("return document.activeElement.matches('#map td.cell')"))
        browser.until_title(*parts)
        browser.until(lambda: browser.run("return document.activeElement.matches('#map td.cell')"))


def test_alignments_side_by_side(browser, report):
    """Their differences in frames and in a table; the map joins them on request; a cell is read out."""
    entry = Page(report.read_text(encoding="utf-8")).index["sentences"][2]
    browser.choose_sentence(2)
    browser.until_title("Sentence 2")
    marked = """return [...document.querySelectorAll('#beside table')[arguments[0]].tBodies[0].rows].flatMap((row, j) =>
        [...row.querySelectorAll('td')].flatMap((cell, i) => cell.matches(arguments[1]) ? [[i, j]] : []))"""

    def shown(place, classes):
        return {tuple(place) for place in browser.run(marked, place, classes)}

    ours, theirs = ({tuple(link) for link in links} for links in entry["aligned"])
    assert browser.texts("#beside caption") == ["ours", "theirs"]
    for place, links, others in ((0, ours, theirs), (1, theirs, ours)):
        assert shown(place, ".right, .wrong") == links
        assert shown(place, ".only") == links - others
    assert "ours: 3 right, 0 wrong links. theirs: 2 right, 1 wrong links." in browser.text("#summary")
    counts = "2 links in all, 2 in some: 1 only in ours, 1 only in theirs."
    assert browser.text("#difference") == counts
    assert browser.texts("#differences tr td:last-child") == ["ours", "theirs"]
    browser.run("document.querySelectorAll('#beside table')[1].querySelector('.only').click()")
    assert browser.text("#readout") == "theirs: . – is: wrong link, not in all"
    assert browser.texts(".pair .at") == browser.texts("#beside .at") == [".", "is"]
    browser.run("[...document.querySelectorAll('#shown input')].at(-1).click()")
    browser.until(lambda: browser.texts("#beside caption") == ["ours", "theirs", "the map above"])


def test_without_gold_there_are_links_and_no_verdicts(chromium, report, align_eval):
    directory = report.parent
    done = align_eval("report", directory / "run", "--hyp", directory / "ours", "-o", directory / "links.html")
    assert done.returncode == 0, done.stderr
    browser = Browser(chromium)
    browser.open(directory / "links.html")
    browser.choose_sentence(2)
    browser.until_title("Sentence 2 (line 3): ")
    assert browser.text("#summary").endswith("ours: 3 links. ")
    assert len(browser.texts("#beside .linked")) == 3
    assert len(browser.texts("#map .linked")) == int(browser.text("#summary").split()[0]) > 0
    assert browser.texts(".right:not(.legend *), .wrong, .missed, .sure, .possible") == []
    assert browser.driven.get_log("browser") == []


NAMES = ["one", "a-long-name-of-an-aligner.pharaoh", "another-long-name-of-yet-another-aligner"]
WORDS = ("wort", "nächste", "verkehrsunfall", "und", "sehr", "langes")


@pytest.fixture(scope="module")
def aligners(tmp_path_factory, align_eval):
    """A page of three aligners, without records."""
    directory = tmp_path_factory.mktemp("aligners")
    texts = [" ".join(WORDS[(k + n) % 6] for n in range(4 + 7 * (k % 5))) for k in range(30)]
    (directory / "text").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    (directory / "gold").write_text("0-0 1p1\n" * 30)
    hyps = [directory / name for name in NAMES]
    for shift, hyp in enumerate(hyps):
        hyp.write_text("".join(f"0-0 {(k * shift) % 4}-1 2-{shift}\n" for k in range(30)))
    gold, text = ("--gold", directory / "gold", "--gold-base", 0), directory / "text"
    given = (*gold, "--source", text, "--target", text, "--hyp", *hyps)
    done = align_eval("report", *given, "-o", directory / "page.html")
    assert done.returncode == 0, done.stderr
    return directory / "page.html"


def test_aligners_without_records(chromium, aligners):
    """Sentences are ordered by difference and found by link; nothing is wider than a narrow screen."""
    browser, page = Browser(chromium), Page(aligners.read_text(encoding="utf-8"))
    browser.open(aligners)
    assert browser.texts("#beside caption") == NAMES
    sets = [[{tuple(link) for link in links} for links in entry["aligned"]] for entry in page.index["sentences"]]
    differing = [len(set.union(*links) - set.intersection(*links)) for links in sets]
    browser.find("#scored option[value='2']").click()
    shown = {int(text.split()[0]): text.split()[1] for text in browser.texts("#sentences option")}
    assert shown == {place: f"{100 * aer:.2f}" for place, aer in enumerate(page.aers()[2])}
    assert [differing[place] for place in shown] == sorted(differing, reverse=True)
    assert len(set(differing)) > 1
    browser.choose_sentence(2)
    browser.until_title("Sentence 2")
    assert browser.run("return document.getElementById('link').href") == f"{aligners.as_uri()}#sentence=2"
    browser.find("#order option[value=worst]").click()
    assert browser.run("return document.getElementById('sentences').scrollTop") == 0
    browser.find("#shown input").click()
    browser.until(lambda: browser.texts("#beside caption") == NAMES[1:])
    cut = "return [...document.querySelectorAll('.scroll')].filter((r) => r.scrollWidth > r.clientWidth + 1).length"
    for width, some in ((400, True), (1280, False)):
        browser.driven.set_window_size(width, 900)
        inner, wide = browser.run("return [window.innerWidth, document.documentElement.scrollWidth]")
        assert wide <= inner
        assert (browser.run(cut) > 0) == some
        browser.until(lambda: len(browser.texts(".scroll.more")) == browser.run(cut))
    browser.driven.set_window_size(1400, 1000)
    assert browser.driven.get_log("browser") == []


def test_print_hides_controls_and_keeps_shades(browser):
    styles = """return arguments[0].map((name) => {
        const { display, position, printColorAdjust } = getComputedStyle(document.querySelector(name));
        return [display === "none", position === "sticky", printColorAdjust === "exact"]; })"""
    browser.driven.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    controls, cells = ["nav", ".controls", "#readout", ".list"], ["#map thead th", "#map .cell", "button.heat"]
    printed = browser.run(styles, [*controls, *cells])
    browser.driven.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert [hidden for hidden, _, _ in printed] == [True] * 4 + [False] * 3
    assert [(sticky, exact) for _, sticky, exact in printed[4:]] == [(False, True)] * 3


def test_the_focus_shows_on_a_ringed_cell(browser):
    browser.choose_sentence(2)
    browser.until_title("Sentence 2")
    look = "return getComputedStyle(document.querySelector(arguments[0])).outline"
    for ringed in ("button[aria-current=true]", "#beside .only"):
        before = browser.run(look, ringed)
        browser.press("\ue004")  # by keys, as focus that a script moves after a click is not shown
        browser.run("document.querySelector(arguments[0]).focus()", ringed)
        assert browser.run(look, ringed) != before
