"""Saves figures to files, atomically; the same figure gives the same bytes."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from alignment_eval.errors import UsageError
from alignment_eval.figures.style import DPI, styled
from alignment_eval.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Ending of a figure's file -> the metadata key for a description, and the metadata that suppresses dates.
_METADATA: dict[str, tuple[str, dict[str, None]]] = {
    "png": ("Description", {}),
    "svg": ("Description", {"Date": None}),
    "pdf": ("Subject", {"CreationDate": None}),
}
ENDINGS = tuple(_METADATA)
#: Longest side of a bitmap; a larger one gets a lower resolution (vector formats have no such limit).
_MAX_PIXELS = 12_000
_NO_GLYPH = re.compile(r"Glyph ([0-9]+) .*missing from")


def figure_ending(path: str | Path) -> str:
    """The ending of ``path`` in lower case, without its dot.

    Raises:
        UsageError: it is not one of :data:`ENDINGS`.
    """
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in ENDINGS:
        raise UsageError(f"{path}: the ending {ending!r} is not one of .{', .'.join(ENDINGS)}; choose one of them")
    return ending


@styled
def save_figure(figure: Figure, path: str | Path, description: str | None = None, dpi: int = DPI) -> str:
    """Write ``figure`` to ``path`` in its own size; the ending decides the format.

    The file has no date and no random ids.  In SVG text stays text; in PDF fonts are embedded as TrueType.

    Args:
        figure: the figure.
        path: the file; an existing one is replaced.
        description: is stored in the file's metadata.
        dpi: dots per inch of a bitmap, also of one within a vector file.

    Returns:
        The characters that are in none of their fonts and are drawn as boxes; for SVG, whose text the viewer draws,
        none.

    Raises:
        UsageError: the ending is unknown.
        InputError: the file cannot be written.
    """
    ending = figure_ending(path)
    key, metadata = _METADATA[ending]
    content = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(
            content,
            format=ending,
            dpi=min(dpi, _MAX_PIXELS / max(figure.get_size_inches())),
            metadata={**metadata, **({key: description} if description else {})},
        )
    write_bytes(path, content.getvalue())
    missing = _missing_characters(caught)
    return "" if ending == "svg" else missing


def _missing_characters(caught: Iterable[warnings.WarningMessage]) -> str:
    """The characters without a glyph, from Matplotlib's warnings for each label; other warnings are raised again."""
    found = set()
    for warning in caught:
        if match := _NO_GLYPH.match(text := str(warning.message)):
            found.add(int(match[1]))
        elif not text.startswith("Matplotlib currently does not support"):  # comes with the warning above
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return "".join(map(chr, sorted(found)))
