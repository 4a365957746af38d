"""Word alignments from maps, scored against gold: extraction, AER, sweeps (no torch, no fairseq).

The functions here are those of the commands, for scripts (docs/python.md).  What they need is imported when they are
called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from alignment_eval.links.formats import GoldSentence, Link, Links
    from alignment_eval.maps.sentence import SentenceMaps
    from alignment_eval.scoring.aer import Score
    from alignment_eval.scoring.significance import Difference

__version__ = "0.1.0"
__all__ = ["class_shares", "compare", "read_gold", "read_links", "score", "symmetrize"]

#: Index of the first word, or ``"auto"``: detected from the data.
Base = Union[int, str, None]


def read_gold(path: str | Path, base: Base = None, swap: bool = False) -> list[GoldSentence]:
    """Read gold alignments: for each sentence, the ``sure`` and the ``possible`` links, from 0.

    Args:
        path: a file in a format of docs/formats.md.
        base: the index of the first word, 0 or 1; default: detected, with a warning.
        swap: the file has target-source links.

    Raises:
        InputError: the file cannot be read, or its data contradict ``base``.
    """
    from alignment_eval.links import files

    return list(files.read_gold(path, files.ReadOptions(base if base is None else str(base), swap)))


def read_links(path: str | Path, base: Base = None, swap: bool = False, allow_possible: bool = False) -> list[Links]:
    """Read word alignments: for each sentence, the set of links (source word, target word), from 0.

    Args:
        path: a file in a format of docs/formats.md.
        base: the index of the first word, 0 (default) or 1.
        swap: the file has target-source links.
        allow_possible: read possible links as links; otherwise they are an error.

    Raises:
        InputError: the file cannot be read, or its data contradict ``base``.
    """
    from alignment_eval.links import files

    options = files.ReadOptions(base if base is None else str(base), swap, allow_possible)
    return list(files.read_hypothesis(path, options).each_links())


def class_shares(sentences: Iterable[SentenceMaps]) -> pd.DataFrame:
    """The share of each class of source token in the maps of a text, as ``norm-analyze`` has it in ``attention.csv``.

    Args:
        sentences: of one model: ``model.maps`` of two lists, or records; those without maps do not count.

    Returns:
        A row for each kind, layer and head (the layer's own map is that of head ``all``), a column for each class that
        the text has: the sum of the map at its tokens, over all rows and sentences, as a share of the whole sum.  The
        first row, of the kind ``tokens``, has the share of the source tokens themselves.

    Examples:
        >>> maps = model.maps(["Wir sind hier.", "Ja, gut."], ["We are here.", "Yes, well."])
        >>> shares = ae.class_shares(maps)
        >>> [f"{shares.loc[(kind, 2, 'all'), '</s>']:.2f}" for kind in ("attn_w", "attn_n")]
        ['0.35', '0.17']

    Raises:
        InputError: no sentence has maps.
    """
    from alignment_eval.scoring import classes

    return classes.class_shares(sentences)


def score(links: Iterable[Iterable[Link]], gold: Iterable[GoldSentence]) -> Score:
    """AER, precision and recall (fractions) of the links of each sentence, and the counts behind them.

    Examples:
        >>> gold = ae.read_gold("data/demo/demo.talp", base=1)
        >>> ae.score([sentence.sure for sentence in gold], gold).aer
        0.0

    Raises:
        InputError: the numbers of sentences differ.
    """
    from alignment_eval.scoring import aer

    return aer.score(links, gold)


def compare(
    baseline: Iterable[Iterable[Link]],
    system: Iterable[Iterable[Link]],
    gold: Iterable[GoldSentence],
    resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, Difference]:
    """Compare a system with a baseline by paired bootstrap and approximate randomisation.

    Returns:
        Difference, 95 % interval and p-values of ``aer``, ``precision`` and ``recall``.

    Raises:
        InputError: the numbers of sentences differ.
    """
    from alignment_eval.scoring import aer, significance

    sentences = list(gold)
    counts = [aer.count(links, sentences) for links in (baseline, system)]
    return significance.compare_all(counts, significance.Resampling(resamples, seed))[0, 1]


def symmetrize(
    forward: Iterable[Links], reverse: Iterable[Links], method: str = "grow-diag-final-and", variant: str = "moses"
) -> list[Links]:
    """Combine the source-target links of two directions, sentence by sentence.

    Args:
        forward: the links of each sentence in one direction.
        reverse: the links of the same sentences in the other direction; give both as source-target.
        method: ``intersection``, ``grow-diag``, ``grow-diag-final-and``, ``grow-diag-final`` or ``union``.
        variant: ``moses``, ``atools`` or ``lilt`` (docs/commands/symmetrize.md).

    Raises:
        InputError: the numbers of sentences differ.
        UsageError: method or variant is unknown.
    """
    from alignment_eval.links import symmetrize as growing
    from alignment_eval.reading import Size, check_sizes

    pairs = list(forward), list(reverse)
    check_sizes(Size("forward", len(pairs[0])), Size("reverse", len(pairs[1])))
    return [growing.symmetrize(*pair, method, variant) for pair in zip(*pairs)]
