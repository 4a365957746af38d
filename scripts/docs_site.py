"""Hooks of mkdocs: pages are the Markdown files of the repository at their own paths, complete without a network.

Because paths stay, a link that works in a file viewer works on the site, and the other way round.
"""

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

#: Pages outside of docs/, and files that pages link to.
BEYOND = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE"),
    *("data/README.md", "data/demo/README.md", "data/demo/GUIDELINES.md"),
    *("scripts/train.sh", "alignment_eval/files.py"),
)
#: Markup that loads something from another server; links to follow are not meant.
_REMOTE = re.compile(r'<(?:script|img|iframe)\b[^>]*\bsrc="(?:https?:)?//|<link\b[^>]*\bhref="(?:https?:)?//|@import')
#: Cross-references of docstrings, :func:`name`, whose name is code already.
_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):(?=<code>)")
#: Short inline code, such as an option with its value: a line must not break at its hyphens.
_SHORT = re.compile(r"<code>(?=[^<]{1,36}</code>)")
#: Code at the beginning of a paragraph, an entry of a list or a row of a table; the options and keys in it.
_DEFINED = re.compile(r"^(?:- |\| )?((?:`[^`\n]+`(?:, | and | or )?)+)", re.MULTILINE)
_NAME = re.compile(r"`(--[\w-]+|[a-z]+_\w+)")
#: What the extension arithmatex makes of ``$…$`` and ``$$…$$``.
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


@event_priority(100)  # before the notebooks are looked for
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Give every file the path that it has in the repository."""
    root = Path(config.config_file_path or "").parent
    prefix = Path(config.docs_dir).relative_to(root).as_posix()
    own = {file.src_uri: f"{prefix}/{file.src_uri}" for file in files if file.src_dir == config.docs_dir}
    placed = [File(path, str(root), config.site_dir, config.use_directory_urls) for path in (*BEYOND, *own.values())]
    return Files([*placed, *(file for file in files if file.src_uri not in own)])


def on_page_markdown(markdown: str, page: Page, **_: Any) -> None:
    """Let the search put a page first that says what an option or a key is; others have it in examples."""
    page.meta["tags"] = sorted({name for defined in _DEFINED.findall(markdown) for name in _NAME.findall(defined)})


def on_page_content(content: str, **_: Any) -> str:
    """Write formulas as MathML, which needs no script, references of docstrings as plain code, and options unbroken."""
    return _SHORT.sub('<code class="short">', _ROLE.sub("", _FORMULA.sub(_mathml, content)))


def _mathml(match: re.Match[str]) -> str:
    return convert(html.unescape(match[3]), display="inline" if match[2] == "(" else "block")


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Check that the page is complete without a network."""
    if remote := _REMOTE.search(output):
        raise PluginError(f"{page.file.src_uri}: loads from another server: {output[remote.start() :][:200]}")
    return output
