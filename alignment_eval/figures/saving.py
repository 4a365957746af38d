"""Figures become files in one way: the same figure gives the same bytes, whole or not at all."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from alignment_eval.errors import UsageError
from alignment_eval.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Ending of a figure's file -> the key of its metadata that holds a description, and what keeps dates out.
_METADATA: dict[str, tuple[str, dict[str, None]]] = {
    "png": ("Description", {}),
    "svg": ("Description", {"Date": None}),
    "pdf": ("Subject", {"CreationDate": None}),
}
ENDINGS = tuple(_METADATA)
_DPI = 150
#: Inches around what is drawn.
_MARGIN = 0.1
#: Longest side of a bitmap: beyond it the resolution is lowered (vector formats have no such limit).
_MAX_PIXELS = 12_000
_NO_GLYPH = re.compile(r"Glyph ([0-9]+) .*missing from")


def figure_ending(path: str | Path) -> str:
    """The ending of ``path`` in small letters, without its dot.

    Raises:
        UsageError: it is not one of :data:`ENDINGS`.
    """
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in ENDINGS:
        raise UsageError(f"{path}: ends in {ending or 'nothing'!r}: expected a file name in .{', .'.join(ENDINGS)}")
    return ending


def save_figure(figure: Figure, path: str | Path, description: str | None = None) -> str:
    """Write ``figure`` to ``path``, cut to what is drawn; its ending tells the format.

    Neither a date nor a random id gets in.  In SVG text stays text, in PDF fonts are embedded as TrueType.

    Args:
        figure: what to save.
        path: where; a file there is replaced.
        description: goes into the file's metadata.

    Returns:
        The characters that none of their fonts has, drawn as boxes; none of SVG, whose text the viewer draws.

    Raises:
        UsageError: an unknown ending.
        InputError: the file cannot be written.
    """
    import matplotlib

    ending = figure_ending(path)
    key, metadata = _METADATA[ending]
    content = io.BytesIO()
    fixed = matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "align-eval", "pdf.fonttype": 42})
    with fixed, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # "tight" draws everything once more to place it first, which only a figure that lays itself out needs.
        box = "tight" if figure.get_layout_engine() else figure.get_tightbbox().padded(_MARGIN)
        figure.savefig(
            content,
            format=ending,
            dpi=min(_DPI, _MAX_PIXELS / max(figure.get_size_inches())),
            bbox_inches=box,
            metadata={**metadata, **({key: description} if description else {})},
        )
    write_bytes(path, content.getvalue())
    missing = _missing_characters(caught)
    return "" if ending == "svg" else missing


def _missing_characters(caught: Iterable[warnings.WarningMessage]) -> str:
    """The characters that Matplotlib, which warns for each label, found no glyph of; other warnings are given anew."""
    found = set()
    for warning in caught:
        if match := _NO_GLYPH.match(text := str(warning.message)):
            found.add(int(match[1]))
        elif not text.startswith("Matplotlib currently does not support"):  # of a script, beside the one above
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return "".join(map(chr, sorted(found)))
