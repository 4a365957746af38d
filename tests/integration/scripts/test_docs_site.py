"""The hooks of the docs site, which `make docs` builds: formulas, references, nothing from other servers."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs", reason="mkdocs is not installed (Python 3.11 or later)")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import docs_site
from mkdocs.exceptions import PluginError


@pytest.mark.parametrize(
    "markup",
    [
        '<script src="https://unpkg.com/x"></script>',
        '<link rel="stylesheet" href="//fonts.example/x">',
        '<img alt="" src="http://x/y.png">',
        "<style>@import 'x';</style>",
    ],
)
def test_a_page_that_needs_a_network_is_refused(markup):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="docs/x.md"))
    with pytest.raises(PluginError, match=r"docs/x\.md"):
        docs_site.on_post_page(f"<p></p>{markup}", page=page)
    kept = '<a href="https://x.org">x</a><script src="assets/x.js"></script><link href="assets/x.css">'
    assert docs_site.on_post_page(kept, page=page) == kept
