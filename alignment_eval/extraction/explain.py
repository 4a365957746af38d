"""Why two words are linked or not: the maps that were read, their shares, the lexical table, the rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.extract import WordMap, WordMaps, ends_in_punctuation
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions
from alignment_eval.extraction.rules import SUPPORTED, Rule, barred_cells, rule_of, word_numbers
from alignment_eval.links.sets import Link
from alignment_eval.maps.sentence import PairWords
from alignment_eval.maps.words import balanced_shares, column_shares, row_shares

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
    """Explain a link (source word, target word) that is ``linked`` or not, in a pair of these ``words``."""
    (i, j), (forward, reverse), method, whole = link, maps.pair, maps.method, maps.whole
    assert whole.scores is not None
    read = _shares_of(forward, method.forward, (j, i), "")
    if reverse is not None and method.reverse is not None:
        read |= _shares_of(reverse, method.reverse, (i, j), "reverse ")
    table = neighbours = None
    if maps.weighed is not None:
        factors = _quotient(maps.weighed[j], maps.combined.shares[j, :-1])
        table = float(factors[i] / factors.mean())
        neighbours = float(_quotient(whole.scores[j, :-1], maps.weighed[j])[i])
    rule, final = rule_of(method.forward.rule), ends_in_punctuation(whole.sentence.source, whole.sentence.target)
    final = final and method.forward.final_punctuation
    scores = np.where(barred_cells(*word_numbers(whole.scores), method.forward.null, final), 0, whole.scores)
    rows = row_shares(column_shares(row_shares(scores)) if rule.shares is balanced_shares else scores)
    if reverse is not None and method.reverse is not None and not method.joins_maps:
        ways = forward.linked(method.forward)[i, j], reverse.linked(method.reverse)[j, i]
        said = (f"{name} {'yes' if way else 'no'}" for name, way in zip(("forward", "reverse"), ways))
        reason = f"{method.join} of the links of each direction ({', '.join(said)})"
    elif final and (i == len(words[0]) - 1 or j == len(words[1]) - 1):
        reason = "the final punctuation of both sides is linked to each other only"
    else:
        reason = _reason(rule, scores, (j, i), linked)
    share, row, column = (float(array[j, i]) for array in (maps.combined.shares, rows, column_shares(rows)))
    return Explanation(words[0][i], words[1][j], linked, read, share, table, neighbours, row, column, rule.name, reason)


def _quotient(after: Floats, before: Floats) -> Floats:
    return np.divide(after, before, out=np.ones_like(before), where=before > 0)


def _shares_of(word_map: WordMap, options: ExtractionOptions, cell: Link, prefix: str) -> dict[str, float]:
    """The share of a cell in each map that was read, by the map's title."""
    assert word_map.maps is not None
    titles = (f"{prefix}{options.kind} {title}" for title in options.titles)
    return dict(zip(titles, word_map.maps[:, cell[0], cell[1]].tolist()))


def _reason(rule: Rule, scores: Floats, cell: Link, linked: bool) -> str:
    """Why a rule that reads these ``scores`` links a cell or refuses it."""
    if rule.units != "words":
        return f"{'a' if linked else 'no'} subword of the target word has its largest value on this source word"
    if rule.count:
        place = int((scores[cell[0]] > scores[cell]).sum()) + 1
        return f"the source word is number {place} of its row, and the rule takes {rule.count}"
    share, least = rule.compared(scores)[cell], rule.least
    said = f"their {'two-way share' if rule.two_way else 'share of the row'} {share:.3f} is"
    if share < least or not rule.grows:
        return f"{said} {'at least' if share >= least else 'below'} {least}"
    large = f"{least / SUPPORTED:.3f} ({least} / {SUPPORTED})"
    if share >= least / SUPPORTED:
        return f"{said} at least {large}"
    return f"{said} at least {least}, below {large}, and has {'support' if linked else 'no support'}"
