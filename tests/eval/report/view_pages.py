"""What a notebook cell may hold, checked with Python's own parser of HTML."""

from html.parser import HTMLParser

#: Tokens that would break a page which takes them as they are.
HOSTILE = (
    "</td></table><script>alert(1)</script>",
    "<img/src=x/onerror=alert(1)>",
    "\"'onmouseover='alert(1)",
    "\u202eevil\u2066",
    "&lt;b&gt;",
    "<!--",
)
_TAGS = {"p", "div", "table", "tr", "th", "td"}
_ATTRIBUTES = {"style", "dir", "scope"}


class _Reader(HTMLParser):
    """Collects tables, and complains of everything that a cell may not hold."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tables = []
        self.open = []

    def handle_starttag(self, tag, attrs):
        assert tag in _TAGS, tag
        assert {name for name, _ in attrs} <= _ATTRIBUTES, attrs
        assert all("url(" not in (value or "") and "expression" not in (value or "") for _, value in attrs)
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        assert data.isprintable()
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data

    def handle_comment(self, data):
        raise AssertionError(data)


def _read(page):
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open
    return reader


def check_page(page):
    """Check that a page is well-formed, and has nothing but texts and tables with inline styles."""
    _read(page)


def tables(page):
    """The texts of all tables: of each row, of each cell."""
    return _read(page).tables
