"""The hooks of the docs site, which `make docs` builds: formulas, references, nothing from other servers."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.eval.conftest import chromium as chromium
from tests.eval.figures.driving import requested

pytest.importorskip("mkdocs", reason="mkdocs is not installed (Python 3.11 or later)")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import docs_site
from mkdocs.exceptions import PluginError

ROOT = Path(docs_site.__file__).parents[1]


def test_a_formula_is_mathml():
    inline = docs_site.on_page_content(r'<p><span class="arithmatex">\(\alpha &lt; 1\)</span> and text</p>')
    assert inline.startswith('<p><math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">')
    assert inline.endswith("</math> and text</p>")
    assert "&#x0003C;" in inline
    block = docs_site.on_page_content('<div class="arithmatex">\\[\na\n+ b\\]</div>')
    assert 'display="block"' in block
    assert "arithmatex" not in block


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


@pytest.mark.slow
def test_the_built_folder_is_searched_without_a_server(tmp_path, chromium):
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", tmp_path / "site"]
    subprocess.run(build, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    requested(chromium)
    chromium.get((tmp_path / "site/docs/maps.html").as_uri())
    assert chromium.execute_script("return document.querySelectorAll('math').length") > 20
    search = chromium.find_element("css selector", ".md-search__input")
    chromium.execute_script("arguments[0].focus()", search)
    search.send_keys("rollout")
    for _ in range(100):
        links = chromium.find_elements("css selector", ".md-search-result__link")
        found = [link.get_attribute("href") for link in links]
        if found:
            break
        time.sleep(0.1)
    assert any("docs/maps.html" in link for link in found)
    assert {address.split(":")[0] for address in requested(chromium)} <= {"file", "data", "about", "blob"}
