"""Alignments beside the maps and beside each other, in a real browser; sizes and themes of the page."""

import pytest

from tests.eval.report.driving import Browser
from tests.eval.report.pages import Page

WORDS = ("wort", "nächste", "verkehrsunfall", "und", "sehr", "langes")


@pytest.fixture(scope="module")
def page(tmp_path_factory, make_sentence, make_records, align_eval):
    """A page of 30 sentences, some of them long, with the links of two files."""
    directory = tmp_path_factory.mktemp("systems")
    lengths = [3 + 9 * (k % 5) for k in range(30)]
    texts = [" ".join(WORDS[(k + n) % 6] for n in range(length)) + " </s>" for k, length in enumerate(lengths)]
    make_records(directory / "run", [make_sentence(k, text, text) for k, text in enumerate(texts)])
    (directory / "gold").write_text("0-0 1p1\n" * 30, encoding="utf-8")
    (directory / "hyp").write_text("".join(f"0-0 {k % 3}-1 2-2\n" for k in range(30)), encoding="utf-8")
    (directory / "ours").write_text("0-0 1-1 2-2\n" * 30, encoding="utf-8")
    systems = ("--hyp", directory / "ours", directory / "hyp")
    gold = ("--gold", directory / "gold", "--gold-base", 0)
    done = align_eval("report", directory / "run", *gold, *systems, "-o", directory / "page.html")
    assert done.returncode == 0, done.stderr
    return directory / "page.html"


@pytest.fixture
def browser(chromium, page):
    browser = Browser(chromium)
    browser.open(page)
    return browser


def test_alignments_stand_beside_every_map(browser, page):
    entry = Page(page.read_text(encoding="utf-8")).index["sentences"][0]
    aligned, hyp = entry["aligned"]
    assert aligned
    browser.choose_sentence(0)
    browser.until_title("Sentence 0")
    script = """return [...document.querySelectorAll('#map tbody tr')].map((row) => [...row.querySelectorAll('td')].map(
        (cell) => [cell.classList.contains('aligned'), cell.getAttribute('aria-label').includes('by ours')]))"""
    for number in (0, 5):
        browser.choose_map(number)
        browser.until(lambda: bool(browser.texts("#map tbody td")))
        shown = [
            [i, j] for j, row in enumerate(browser.run(script)) for i, cell in enumerate(row) if cell == [True, True]
        ]
        assert sorted(shown) == aligned
        gold = [*entry["sure"], *entry["possible"]]
        right = sum(link in gold for link in aligned)
        wrong = len(aligned) - right
        assert f". ours: {right} right, {wrong} wrong links. hyp: " in browser.text("#summary")
        rows = browser.run(
            "return [...document.querySelectorAll('#links tbody tr')].map((r) => r.cells[5].textContent)"
        )
        assert rows.count("yes") == len(aligned)
    check_side_by_side(browser, {tuple(link) for link in aligned}, {tuple(link) for link in hyp})
    browser.find("#order option[value=differ]").click()
    check_order_by_difference(browser, page)
    assert browser.driven.get_log("browser") == []


def check_side_by_side(browser, ours, theirs):
    """Alignments side by side, their differences in frames and in a table; the map joins them on request."""
    marked = """return [...document.querySelectorAll('#beside table')[arguments[0]].tBodies[0].rows].flatMap((row, j) =>
        [...row.querySelectorAll('td')].flatMap((cell, i) => cell.matches(arguments[1]) ? [[i, j]] : []))"""

    def shown(place, classes):
        return {tuple(place) for place in browser.run(marked, place, classes)}

    assert browser.texts("#beside caption") == ["ours", "hyp"]
    for place, links, others in ((0, ours, theirs), (1, theirs, ours)):
        assert shown(place, ".right, .wrong") == links
        assert shown(place, ".only") == links - others
    only = [len(ours - theirs), len(theirs - ours)]
    counts = f"{len(ours & theirs)} links in all, {sum(only)} in some: {only[0]} only in ours, {only[1]} only in hyp."
    assert browser.text("#difference") == counts
    assert len(browser.texts("#differences tbody tr")) == sum(only)
    boxes = "#shown input"
    for _ in range(2):  # the map, on and off
        browser.run("[...document.querySelectorAll(arguments[0])].at(-1).click()", boxes)
        browser.until(lambda: browser.text("#difference") != "")
    browser.until(lambda: browser.text("#difference") == counts)
    browser.run("[...document.querySelectorAll(arguments[0])].at(-1).click()", boxes)
    browser.until(lambda: browser.texts("#beside caption") == ["ours", "hyp", "the map above"])
    browser.run("[...document.querySelectorAll(arguments[0])].at(-1).click()", boxes)
    browser.until(lambda: browser.text("#difference") == counts)


def check_order_by_difference(browser, page):
    entries = Page(page.read_text(encoding="utf-8")).index["sentences"]
    sets = [[{tuple(link) for link in links} for links in entry["aligned"]] for entry in entries]
    differing = [len(set.union(*links) - set.intersection(*links)) for links in sets]
    places = [int(text.split()[0]) for text in browser.texts("#sentences option")]
    assert [differing[place] for place in places] == sorted(differing, reverse=True)
    assert len(set(differing)) > 1


@pytest.fixture(scope="module")
def aligners(tmp_path_factory, align_eval):
    """A page of three aligners, without records."""
    directory = tmp_path_factory.mktemp("aligners")
    texts = [" ".join(WORDS[(k + n) % 6] for n in range(4 + 7 * (k % 5))) for k in range(30)]
    (directory / "text").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    (directory / "gold").write_text("0-0 1p1\n" * 30)
    hyps = [directory / name for name in ("one", "a-long-name-of-an-aligner.pharaoh", "three")]
    for shift, hyp in enumerate(hyps):
        hyp.write_text("".join(f"0-0 {(k * shift) % 4}-1 2-{shift}\n" for k in range(30)))
    gold, text = ("--gold", directory / "gold", "--gold-base", 0), directory / "text"
    given = (*gold, "--source", text, "--target", text, "--hyp", *hyps)
    done = align_eval("report", *given, "-o", directory / "page.html")
    assert done.returncode == 0, done.stderr
    return directory / "page.html"


def test_aligners_without_records(chromium, aligners):
    """Sentences are ordered by difference and found by link; nothing is wider than a narrow screen."""
    browser = Browser(chromium)
    browser.open(aligners)
    names = ["one", "a-long-name-of-an-aligner.pharaoh", "three"]
    assert browser.texts("#beside caption") == names
    check_order_by_difference(browser, aligners)
    browser.choose_sentence(2)
    browser.until_title("Sentence 2")
    assert browser.run("return document.getElementById('link').href") == f"{aligners.as_uri()}#sentence=2"
    browser.find("#shown input").click()
    browser.until(lambda: browser.texts("#beside caption") == names[1:])
    browser.driven.set_window_size(400, 900)
    inner, wide = browser.run("return [window.innerWidth, document.documentElement.scrollWidth]")
    browser.driven.set_window_size(1400, 1000)
    assert wide <= inner
    assert browser.driven.get_log("browser") == []
