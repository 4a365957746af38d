"""Text in pictures: how it is shown, and the fonts that have its characters.  Matplotlib is imported only when needed.

Matplotlib takes each character from the first font of a list that has it; this module makes the list.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError

#: The font of all text; missing characters come from other fonts.
FONT = "DejaVu Sans"
#: Points of an inch.
POINTS = 72
#: Longest label, in characters.
_LONGEST = 30


def label_of(token: str) -> str:
    """``token`` as it is shown (:func:`visible`), shortened if it is long."""
    text = visible(token)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def visible(text: str) -> str:
    r"""``text`` with characters that are invisible, reorder text or break files written like ``\u200b`` in Python."""
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    # Of the format characters only joiners shape letters; bidirectional overrides would reorder a label.
    if character in " \u200c\u200d" or unicodedata.category(character)[0] not in "CZ":
        return character
    return character.encode("unicode_escape").decode()


def font_families(texts: Iterable[str], file: str | Path | None = None) -> tuple[str, ...]:
    """Font families for ``texts``: that of ``file`` if given, :data:`FONT`, and installed ones for missing characters.

    Raises:
        InputError: ``file`` is not a font.
    """
    from matplotlib import font_manager

    families = [FONT] if file is None else [_add_font(file), FONT]
    missing = {ord(character) for text in texts for character in text if not character.isspace()}
    for name in families:
        missing -= _characters(font_manager.findfont(name))
    for name, path in sorted((e.name, e.fname) for e in font_manager.fontManager.ttflist if missing):
        # Last Resort has a box for every character
        if not name.startswith("Last Resort") and (found := missing & _characters(path)):
            families.append(name)
            missing -= found
    return tuple(dict.fromkeys(families))


def _add_font(file: str | Path) -> str:
    """Register a font file, and return its family."""
    from matplotlib import font_manager

    entries = font_manager.fontManager.ttflist
    place = len(entries)
    try:
        font_manager.get_font(str(file))  # addfont reads the ending, this the content
        font_manager.fontManager.addfont(str(file))
    except (OSError, RuntimeError) as error:
        raise InputError(f"{file}: cannot read a font; give a TrueType or OpenType file") from error
    # First in the list, as upright and regular, so that its family always means this file.
    entry = replace(entries.pop(place), style="normal", variant="normal", weight=400, stretch="normal")
    entries.insert(0, entry)
    return entry.name


def _characters(font: str) -> Set[int]:
    from matplotlib import font_manager

    try:
        return font_manager.get_font(font).get_charmap().keys()
    except (OSError, RuntimeError):  # the font was removed or damaged after the list was made
        return frozenset()


def text_width(texts: Iterable[str], size: float, families: Sequence[str] = (FONT,)) -> float:
    """The width in inches of the longest of ``texts`` at ``size`` points, in the fonts of :func:`font_families`."""
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties

    renderer: Any = RendererAgg(1, 1, POINTS)  # type: ignore[no-untyped-call]
    font = FontProperties(family=list(families), size=size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a character without a glyph: save_figure tells of it
        return max((renderer.get_text_width_height_descent(text, font, False)[0] for text in texts), default=0) / POINTS


def wrapped(text: str, width: float, size: float, families: Sequence[str] = (FONT,)) -> str:
    """``text`` with line breaks at spaces, so that it is at most ``width`` inches wide where its words are."""
    lines: list[str] = []
    for line in text.split("\n"):
        current = ""
        for word in line.split(" "):
            longer = f"{current} {word}" if current else word
            if current and text_width([longer], size, families) > width:
                lines.append(current)
                longer = word
            current = longer
        lines.append(current)
    return "\n".join(lines)


def set_in_disorder(texts: Iterable[str]) -> bool:
    """Whether this Matplotlib draws ``texts`` wrongly, because it sets letters one by one from left to right.

    Before 3.11 it neither reorders right-to-left text nor shapes spacing vowel signs and conjuncts.
    """
    import matplotlib

    letters = (character for text in texts for character in text)
    return matplotlib.__version_info__ < (3, 11) and any(
        unicodedata.bidirectional(c) in ("R", "AL") or unicodedata.category(c) == "Mc" or unicodedata.combining(c) == 9
        for c in letters
    )
