"""Why two words are linked or not: the maps that were read, their shares, the lexical table, the rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.extract import WordMap, WordMaps, ends_in_punctuation
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions
from alignment_eval.extraction.rules import SUPPORTED, rule_of
from alignment_eval.links.sets import Link
from alignment_eval.maps.sentence import PairWords
from alignment_eval.maps.words import balanced_shares, column_shares, row_shares, two_way_shares

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReadMaps:
    """The maps that an alignment was made of.

    Attributes:
        method: how it was made.
        pair: the word maps of both directions, with each map that was read.
        combined: the word map of the pair, before it is sharpened.
        weighed: its cells as a lexical table has reweighted them; None: the map is not sharpened.
        whole: the map that the rule reads.
    """

    method: AlignmentMethod
    pair: WordMaps
    combined: WordMap
    weighed: Floats | None
    whole: WordMap


@dataclass(frozen=True)
class Explanation:
    """Why two words are linked or not; printed, it says all of this in a few lines.

    Attributes:
        source: the source word.
        target: the target word.
        linked: whether they are linked.
        maps: each map that was read, and what it gives the source word of the target word's row, from 0 to 1; maps of
            the reverse model give the target word a share of the source word's row.
        share: the share of the combined map, before it is sharpened.
        table: what the lexical table multiplies the cell by, in proportion to the mean of the row; None: the map is
            not sharpened.
        neighbours: what the cells around it multiply the cell by.
        row: the share of its row as the rule sees it, null left out if it is masked.
        column: the share of its column, of the rows' shares.
        rule: the rule with its value.
        reason: why the rule, or what follows it, makes the link or refuses it.
    """

    source: str
    target: str
    linked: bool
    maps: dict[str, float]
    share: float
    table: float | None
    neighbours: float | None
    row: float
    column: float
    rule: str
    reason: str

    def __str__(self) -> str:
        made = "linked" if self.linked else "not linked"
        lines = [f"{self.source!r} and {self.target!r} are {made}: {self.reason}"]
        lines += [f"  {share:.3f}  {name}" for name, share in self.maps.items()]
        lines.append(f"  {self.share:.3f}  combined: share of the row")
        if self.table is not None:
            lines.append(f"  × {self.table:.3g}  lexical table, relative to the mean of the row")
            lines.append(f"  × {self.neighbours:.3g}  neighbours")
        return "\n".join([*lines, f"  {self.row:.3f}  of the row, {self.column:.3f} of the column: rule {self.rule}"])

    __repr__ = __str__


def explain(maps: ReadMaps, words: PairWords, link: Link, linked: bool) -> Explanation:
    """Explain a link (source word, target word), or that there is none.

    Args:
        maps: what the alignment was made of.
        words: the words of the pair.
        link: the two words, from 0.
        linked: whether they are linked.
    """
    (i, j), (forward, reverse), method = link, maps.pair, maps.method
    read = _shares_of(forward, method.forward, (j, i), "")
    if reverse is not None and method.reverse is not None:
        read |= _shares_of(reverse, method.reverse, (i, j), "reverse ")
    table = neighbours = None
    if maps.weighed is not None:
        factors = _quotient(maps.weighed[j], maps.combined.shares[j, :-1])
        table = float(factors[i] / factors.mean())
        assert maps.whole.scores is not None
        neighbours = float(_quotient(maps.whole.scores[j, :-1], maps.weighed[j])[i])
    rows, columns, _ = _rule_shares(maps.whole, method.forward)
    reason = _reason(maps.whole, method.forward, link, linked)
    if reverse is not None and method.reverse is not None and method.both and not method.both.joins_maps:
        ways = {
            "forward": forward.linked(method.forward)[i, j],
            "reverse": reverse.linked(method.reverse)[j, i],
        }
        found = ", ".join(f"{name} {'yes' if way else 'no'}" for name, way in ways.items())
        reason = f"{method.both.join or method.both.method} of the links of each direction ({found})"
    share, row, column = (float(array[j, i]) for array in (maps.combined.shares, rows, columns))
    source, target = words[0][i], words[1][j]
    return Explanation(source, target, linked, read, share, table, neighbours, row, column, method.forward.rule, reason)


def _quotient(after: Floats, before: Floats) -> Floats:
    return np.divide(after, before, out=np.ones_like(before), where=before > 0)


def _shares_of(word_map: WordMap, options: ExtractionOptions, cell: Link, prefix: str) -> dict[str, float]:
    assert word_map.maps is not None
    names = (f"{'layer' if n.head is None else 'head'} {replace(n, setting=None)}" for n in options.heads)
    settings = ((name.setting or options.setting).upper() for name in options.heads)
    titles = (f"{prefix}{options.kind} {name} ({setting})" for name, setting in zip(names, settings))
    return dict(zip(titles, word_map.maps[:, cell[0], cell[1]].tolist()))


def _rule_shares(whole: WordMap, options: ExtractionOptions) -> tuple[Floats, Floats, Floats]:
    """The shares of rows and of columns, and the shares that the rule compares, [target words, source words + 1]."""
    assert whole.scores is not None
    scores = whole.scores.copy()
    if options.null == "mask":
        scores[:, -1] = 0
    if options.final_punctuation and ends_in_punctuation(whole.sentence.source, whole.sentence.target):
        scores[:-1, -2] = 0
    rule = options.rule.partition("=")[0]
    rows = row_shares(column_shares(row_shares(scores)) if rule == "balanced" else scores)
    compared = {"balanced": balanced_shares, "two-way": two_way_shares, "grow": two_way_shares}.get(rule, row_shares)
    return rows, column_shares(rows), compared(scores)


def _reason(whole: WordMap, options: ExtractionOptions, link: Link, linked: bool) -> str:
    """Why a rule that reads the map ``whole`` makes a link or refuses it."""
    i, j = link
    rule, _, value = options.rule.partition("=")
    _, _, compared = _rule_shares(whole, options)
    targets, columns = compared.shape
    final = options.final_punctuation and ends_in_punctuation(whole.sentence.source, whole.sentence.target)
    if final and (j == targets - 1 or i == columns - 2):
        return "the final punctuation of both sides is linked to each other only"
    if rule_of(options.rule).units != "words":
        return (
            "a subword of the target word has its largest value on this source word"
            if linked
            else ("no subword of the target word has its largest value on this source word")
        )
    share = compared[j, i]
    if rule in ("kobayashi2020", "top-k"):
        place = int((compared[j] > share).sum()) + 1
        return f"the source word is number {place} of its row, and the rule takes {value or 1}"
    least, share_of = float(value), "share of the row" if rule == "threshold" else "two-way share"
    if rule in ("threshold", "two-way") or share < least:
        return f"their {share_of} {share:.3f} is {'at least' if share >= least else 'below'} {least}"
    large = least / SUPPORTED
    if share >= large:
        return f"their {share_of} {share:.3f} is at least {large:.3f} ({least} / {SUPPORTED})"
    support = "has support" if linked else "has no support"
    return f"their {share_of} {share:.3f} is at least {least}, below {large:.3f} ({least} / {SUPPORTED}), and {support}"
