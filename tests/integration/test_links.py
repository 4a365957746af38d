"""The links between the pages of the documentation lead somewhere, and the modules that its examples import exist."""

from __future__ import annotations

import ast
import importlib
import re
from importlib.util import find_spec

import pytest

from tests.integration.test_docs import FENCE, ROOT

PAGES = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("data/**/*.md")))
LINK = re.compile(r"\]\(([^()\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:")
#: Packages of examples that need not be installed.
ENGINES = ("dask", "datasets", "pyspark")


def prose(text):
    """A page without its code, in which brackets mean other things."""
    return re.sub(r"`[^`]*`", "", FENCE.sub("", text))


def anchors(text):
    """What GitHub calls the headings of a page: lower case, words joined with hyphens, other punctuation dropped."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page):
    """The links of ``page`` to a file that does not exist, or to a heading that it lacks."""
    for link in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if ELSEWHERE.match(link):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert list(dead_links(page)) == []


def imported(name):
    """A module that a page imports; None for one of an engine that is not installed."""
    if name.split(".")[0] in ENGINES and find_spec(name.split(".")[0]) is None:
        return None
    return importlib.import_module(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_imported_names_exist(page):
    for kind, block in FENCE.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(block)) if kind == "python" else ():
            if isinstance(node, ast.Import):
                [imported(alias.name) for alias in node.names]
            if isinstance(node, ast.ImportFrom) and (module := imported(node.module)):
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def test_lines_of_prose_fit_a_screen():
    """At most 120 characters; tables, headings, pictures and code may be longer."""
    pages = [page for page in PAGES if page.name != "CHANGELOG.md"]
    lines = [(page.name, line) for page in pages for line in FENCE.sub("", page.read_text("utf-8")).splitlines()]
    assert [both for both in lines if len(both[1]) > 120 and not re.match(r" *([|#]|!\[)", both[1])] == []
