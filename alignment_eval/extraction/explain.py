"""Why two words are linked or not: each number on the way from the maps to the choice of the rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alignment_eval.extraction.extract import WordMap, WordMaps, ends_in_punctuation
from alignment_eval.extraction.method import (
    AlignmentMethod,
    ExtractionOptions,
    Rule,
    barred_cells,
    rule_of,
    word_numbers,
)
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import PairWords
from alignment_eval.maps.words import FERTILITY, Floats, Reweighted, ordered_shares, two_way_shares


@dataclass(frozen=True, eq=False)
class ReadMaps:
    """The maps that an alignment was made of."""

    method: AlignmentMethod  #: how it was made
    pair: WordMaps  #: the word maps of both directions, with each map that was read
    combined: WordMap  #: that of the pair, before it is sharpened
    weighed: Reweighted | None  #: as a lexical table has reweighted it; None: the map is not sharpened
    whole: WordMap  #: the map that the rule reads


@dataclass(frozen=True)
class Explanation:
    """Why two words are linked or not; printed, it says all of this in a few lines.

    Attributes:
        source: the source word.
        target: the target word.
        linked: whether they are linked.
        maps: each map that was read, and what it gives the source word of the target word's row, from 0 to 1; maps of
            the reverse model give the target word a share of the source word's row.
        share: the share that the combined map gives the cell of its row, before it is sharpened.
        table: what the lexical table multiplies the cell by, in proportion to the mean of the row; None: the map is
            not sharpened.
        beginnings: the part of the table's weight that is by the first letters of the words, from 0 to 1.
        two_way: the cell's two-way share, of the map as the table has left it.
        order: how likely the words are linked by the order of the words around them.
        weight: λ, what the order counts; the two-way share counts the rest.
        fertility: of two models, what S is multiplied by: words that get much may belong to several.
        compared: the share that the rule compares.
        rule: the rule with its value.
        reason: why the rule, or what follows it, makes the link or refuses it.
    """

    source: str
    target: str
    linked: bool
    maps: dict[str, float]
    share: float
    table: float | None
    beginnings: float | None
    two_way: float
    order: float | None
    weight: float | None
    fertility: float | None
    compared: float
    rule: str
    reason: str

    def __str__(self) -> str:
        made = "linked" if self.linked else "not linked"
        lines = [f"{self.source!r} and {self.target!r} are {made}: {self.reason}"]
        lines += [f"  {share:.3f}  {name}" for name, share in self.maps.items()]
        lines.append(f"  {self.share:.3f}  combined: share of the row")
        if self.table is not None:
            letters = f", {self.beginnings:.0%} by the first letters" if self.beginnings else ""
            lines.append(f"  × {self.table:.3g}  evidence for both words, relative to the mean of the row{letters}")
        lines.append(f"  {self.two_way:.3f}  two-way share")
        if self.order is not None:
            lines.append(f"  {self.order:.3f}  by the order of the words, which weighs {self.weight}")
        if self.fertility is not None:
            lines.append(f"  × {self.fertility:.3g}  what both words get in all")
        return "\n".join([*lines, f"  {self.compared:.3f}  compared by rule {self.rule}"])

    __repr__ = __str__


def explain(maps: ReadMaps, words: PairWords, link: Link, linked: bool) -> Explanation:
    """Explain a link (source word, target word) that is ``linked`` or not, in a pair of these ``words``."""
    (i, j), (forward, reverse), method, whole = link, maps.pair, maps.method, maps.whole
    assert whole.scores is not None
    read = _shares_of(forward, method.forward, (j, i), "")
    if reverse is not None and method.reverse is not None:
        read |= _shares_of(reverse, method.reverse, (i, j), "reverse ")
    rule, final = rule_of(method.forward.rule), ends_in_punctuation(whole.sentence.source, whole.sentence.target)
    final = final and method.forward.final_punctuation
    scores = np.where(barred_cells(*word_numbers(whole.scores), rule, method.forward.null, final), 0, whole.scores)
    table = beginnings = order = weight = fertility = None
    two_way = two_way_shares(scores)
    if maps.weighed is not None and method.sharpening is not None:
        weighed, combined, weight = maps.weighed, maps.combined, method.sharpening.of_order
        before = combined.shares[j, :-1]
        factors = np.divide(weighed.cells[j], before, out=np.ones_like(before), where=before > 0)
        table = float(factors[i] / factors.mean())
        beginnings = float(weighed.beginnings[j, i] / (weighed.words[j, i] + weighed.beginnings[j, i]))
        two_way, order = two_way_shares(weighed.cells), float(ordered_shares([weighed.cells])[0][j, i])
        fertility = None if combined.fertility is None else float(combined.fertility[j, i] ** FERTILITY)
    if reverse is not None and method.reverse is not None and not method.joins_maps:
        made = {"forward": forward.linked(method.forward)[i, j], "reverse": reverse.linked(method.reverse)[j, i]}
        said = (f"{direction} {'yes' if has_link else 'no'}" for direction, has_link in made.items())
        reason = f"{method.join} of the links of each direction ({', '.join(said)})"
    elif final and (i == len(words[0]) - 1 or j == len(words[1]) - 1):
        reason = "the final punctuation of both sides is linked to each other only"
    else:
        reason = _reason(rule, scores, (j, i), linked, whole.sharp)
    share = float(maps.combined.shares[j, i])
    compared = float(rule.compared(scores, whole.sharp)[j, i])
    parts = share, table, beginnings, float(two_way[j, i]), order, weight, fertility, compared
    return Explanation(words[0][i], words[1][j], linked, read, *parts, rule.name, reason)


def _shares_of(word_map: WordMap, options: ExtractionOptions, cell: Link, prefix: str) -> dict[str, float]:
    """The share of a cell in each map that was read, by the map's title."""
    assert word_map.maps is not None
    titles = (f"{prefix}{options.kind} {title}" for title in options.titles)
    return dict(zip(titles, word_map.maps[:, cell[0], cell[1]].tolist()))


def _reason(rule: Rule, scores: Floats, cell: Link, linked: bool, sharp: bool) -> str:
    """Why a rule that reads these ``scores`` links a cell or refuses it."""
    if rule.units != "words":
        return f"{'a' if linked else 'no'} subword of the target word has its largest value on this source word"
    if rule.count:
        if not scores[cell]:
            return "the source word has nothing of its row"
        place = int((scores[cell[0]] > scores[cell]).sum()) + 1
        return f"the source word is number {place} of its row, and the rule takes {rule.count}"
    said = f"their {'share' if rule.two_way else 'share of the row'} {rule.compared(scores, sharp)[cell]:.3f} is"
    return f"{said} {'at least' if linked else 'below'} {rule.least}"
