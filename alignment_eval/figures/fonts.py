"""Text in pictures: what is shown of it, and the fonts that have its characters.  Matplotlib is imported only to draw.

Matplotlib takes each character from the first font of a list that has it; here is only which fonts go on the list.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Set
from dataclasses import replace
from pathlib import Path

from alignment_eval.errors import InputError

#: The font of all text; characters that it lacks are looked for in others.
FONT = "DejaVu Sans"
#: Longest label, in characters.
_LONGEST = 30


def label_of(token: str) -> str:
    """``token`` as it is shown (:func:`visible`), cut if it is long."""
    text = visible(token)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def visible(text: str) -> str:
    r"""``text`` with the characters that show nothing, turn text around or break files as ``\u200b``, as in Python."""
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    # Of the format characters only joiners shape letters; bidirectional overrides would turn a label around.
    if character in " \u200c\u200d" or unicodedata.category(character)[0] not in "CZ":
        return character
    return character.encode("unicode_escape").decode()


def font_families(texts: Iterable[str], file: str | Path | None = None) -> tuple[str, ...]:
    """Font families for ``texts``: that of ``file`` if one is given, :data:`FONT`, and installed ones if these lack
    characters.

    Raises:
        InputError: ``file`` is not a font.
    """
    from matplotlib import font_manager

    families = [FONT] if file is None else [_add_font(file), FONT]
    missing = {ord(character) for text in texts for character in text if not character.isspace()}
    for name in families:
        missing -= _characters(font_manager.findfont(name))
    for name, path in sorted((e.name, e.fname) for e in font_manager.fontManager.ttflist if missing):
        # not one that has a box for everything
        if not name.startswith("Last Resort") and (found := missing & _characters(path)):
            families.append(name)
            missing -= found
    return tuple(dict.fromkeys(families))


def _add_font(file: str | Path) -> str:
    """Make a font file known, and give its family."""
    from matplotlib import font_manager

    entries = font_manager.fontManager.ttflist
    place = len(entries)
    try:
        font_manager.get_font(str(file))  # addfont goes by the ending, this by the content
        font_manager.fontManager.addfont(str(file))
    except (OSError, RuntimeError) as error:
        raise InputError(f"{file}: cannot be read as a font: expected a TrueType or OpenType file") from error
    # First, and as if upright and regular: whoever asks for its family gets this file and no other of the family.
    entry = replace(entries.pop(place), style="normal", variant="normal", weight=400, stretch="normal")
    entries.insert(0, entry)
    return entry.name


def _characters(font: str) -> Set[int]:
    from matplotlib import font_manager

    try:
        return font_manager.get_font(font).get_charmap().keys()
    except (OSError, RuntimeError):  # removed or broken since the list was made
        return frozenset()


def set_in_disorder(texts: Iterable[str]) -> bool:
    """Whether this Matplotlib sets letters of ``texts`` one by one from left to right that are written otherwise.

    Before 3.11 it neither orders right-to-left text nor shapes vowel signs with a place of their own and conjuncts.
    """
    import matplotlib

    letters = (character for text in texts for character in text)
    return matplotlib.__version_info__ < (3, 11) and any(
        unicodedata.bidirectional(c) in ("R", "AL") or unicodedata.category(c) == "Mc" or unicodedata.combining(c) == 9
        for c in letters
    )
