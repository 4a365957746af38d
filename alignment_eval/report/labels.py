"""Distinct names of words for the axes of a table, and sentences shortened to one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from alignment_eval.figures.names import visible

#: The longest sentence in a ``repr``, in characters.
_LONGEST = 40


def distinct(words: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """Make words distinct by numbering repeated ones: ``the``, ``cat``, ``the#2``.

    Args:
        words: the words, in order.
        reserved: names that no word may get.
    """
    names: dict[str, None] = dict.fromkeys(reserved)
    found = []
    counts: dict[str, int] = {}
    for word in words:
        name = word
        counts.setdefault(word, 1)
        while name in names:
            counts[word] += 1
            name = f"{word}#{counts[word]}"
        names[name] = None
        found.append(name)
    return found


def shortened(words: Sequence[str], longest: int = _LONGEST) -> str:
    """A sentence on one line: cut if it is long, invisible characters shown as escapes."""
    text = visible(" ".join(words))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
