"""Files and gold of tests of formats."""

from alignment_eval.links.formats import GoldSentence


def gold(sure="", possible=""):
    """``gold("0-1 2-2", "3-3")``."""
    sets = (frozenset(tuple(map(int, pair.split("-"))) for pair in text.split()) for text in (sure, possible))
    return GoldSentence(*sets)


def written(folder, text, name="x.talp"):
    """Write a file."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def links_of(text):
    """``links_of("0-1:.5 2-2")``."""
    found = {}
    for link in text.split():
        pair, _, weight = link.partition(":")
        i, j = pair.split("-")
        found[int(i), int(j)] = float(weight or 1)
    return found
