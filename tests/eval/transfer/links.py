"""Links of words."""


def links_of(text):
    """``links_of("0-1:.5 2-2")``."""
    found = {}
    for link in text.split():
        pair, _, weight = link.partition(":")
        i, j = pair.split("-")
        found[int(i), int(j)] = float(weight or 1)
    return found
