"""The hooks of the docs site, which `make docs` builds: formulas, references, nothing from other servers."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs", reason="mkdocs is not installed (Python 3.11 or later)")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import docs_site
from mkdocs.exceptions import PluginError


def test_a_formula_is_mathml():
    inline = docs_site.on_page_content(r'<p><span class="arithmatex">\(\alpha &lt; 1\)</span> and text</p>')
    assert inline.startswith('<p><math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">')
    assert inline.endswith("</math> and text</p>")
    assert "&#x0003C;" in inline
    block = docs_site.on_page_content('<div class="arithmatex">\\[\na\n+ b\\]</div>')
    assert 'display="block"' in block
    assert "arithmatex" not in block


def test_an_option_is_not_broken_at_its_hyphens():
    long = "<code>align-eval convert --to pharaoh --from-base 1 FILE</code>"
    assert docs_site.on_page_content("<code>--gold-base 1</code>") == '<code class="short">--gold-base 1</code>'
    assert docs_site.on_page_content(long) == long


def test_a_page_is_found_by_what_it_defines():
    page = SimpleNamespace(meta={})
    text = "`--gold-base` and `--hyp-base` take\n\n- `--norm-map M`: a\n  map, `--other`\n\n| `attn_n` | `head_w` |\n"
    docs_site.on_page_markdown(text, page=page)
    assert page.meta["tags"] == ["--gold-base", "--hyp-base", "--norm-map", "attn_n"]


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
