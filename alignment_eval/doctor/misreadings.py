"""Misreadings of alignment files, taken back: another index base, direction, line, unit of the links.

A :data:`Change` is a small function from one :class:`Reading` of the files to another, with words for what was wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable

import numpy as np
from numpy.typing import NDArray

from alignment_eval.doctor.retokenise import TokenWords, words_of_tokens
from alignment_eval.formats.checks import CONTRADICTED, LOOKED_AT, sentences_with_one
from alignment_eval.links.table import GoldTable, LinkTable
from alignment_eval.scoring.aer import Counts, aer, count

IntArray = NDArray[np.int64]

#: Lines are moved by so many at most, and by the difference of the files' numbers of lines.
MAX_MOVED = 3
#: All indices are kept one higher than they are: an index 0 that is read as 1-based is -1.
MARGIN = 1


@dataclass(frozen=True, eq=False)
class Reading:
    """Gold and hypothesis as they are read: source-target links that count from :data:`MARGIN`.

    Attributes:
        gold: the gold.
        hypothesis: the hypothesis; what is scored is ``hypothesis.possible``.
        gold_base, hyp_base: the index bases that the files were read with.
        gold_swap, hyp_swap: whether source and target were exchanged.
    """

    gold: GoldTable
    hypothesis: GoldTable
    gold_base: int
    hyp_base: int
    gold_swap: bool = False
    hyp_swap: bool = False

    @classmethod
    def of(
        cls, gold: GoldTable, hypothesis: GoldTable, bases: tuple[int, int], swaps: tuple[bool, bool] = (False, False)
    ) -> Reading:
        """Read the indices of two files.

        Args:
            gold: links with the indices of the file; of both only the first ``LOOKED_AT`` sentences are taken, and
                the shorter one is filled up with sentences without links.
            hypothesis: the same.
            bases: how gold and hypothesis are read: index base …
            swaps: … and whether source and target are exchanged.
        """
        sentences = max(gold.sentences, hypothesis.sentences)

        def read(links: GoldTable, base: int, swap: bool) -> GoldTable:
            links = links.with_sentences(sentences).head(LOOKED_AT).shifted(MARGIN - base)
            return links.transposed() if swap else links

        return cls(read(gold, bases[0], swaps[0]), read(hypothesis, bases[1], swaps[1]), *bases, *swaps)

    def counts(self) -> Counts:
        """The four counts of each sentence."""
        return count(self.hypothesis.possible, self.gold)

    def options(self, before: Reading) -> dict[str, str | bool]:
        """The options of ``align-eval score`` that turn ``before`` into this: False means leave it out."""
        changed: dict[str, str | bool] = {}
        for role in ("gold", "hyp"):
            for what in ("base", "swap"):
                value = getattr(self, f"{role}_{what}")
                if value != getattr(before, f"{role}_{what}"):
                    changed[f"--{role}-{what}"] = value if what == "swap" else str(value)
        return changed


@dataclass(frozen=True, eq=False)
class Changed:
    """A change made.

    Attributes:
        name: of the change.
        fault: the misreading that it takes back, in words.
        remedy: what to do, in words.
        reading: the files read anew.
    """

    name: str
    fault: str
    remedy: str
    reading: Reading


#: None where the change cannot be made, or the data speak against it.
Change = Callable[[Reading], "Changed | None"]


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of the files beside their links.

    Attributes:
        gold_bases, hyp_bases: :func:`plausible_bases` of the two files.
        lengths: words of each line, [sentences] a side (source, target), if there are texts.
        words: for each side, the words of the tokens that the hypothesis may link, if they are not the words.
        moves: by how many lines the hypothesis may have moved.
    """

    gold_bases: frozenset[int] = frozenset({0, 1})
    hyp_bases: frozenset[int] = frozenset({0, 1})
    lengths: tuple[IntArray, IntArray] | None = None
    words: tuple[TokenWords, TokenWords] | None = None
    moves: tuple[int, ...] = tuple(by for by in range(-MAX_MOVED, MAX_MOVED + 1) if by)

    @classmethod
    def of(
        cls,
        gold: GoldTable,
        hypothesis: GoldTable,
        lengths: tuple[IntArray, IntArray] | None = None,
        words: tuple[TokenWords, TokenWords] | None = None,
    ) -> Facts:
        """The facts of two files, links with the files' own indices."""
        moves = dict.fromkeys((*cls.moves, gold.sentences - hypothesis.sentences))
        moves.pop(0, None)
        bases = plausible_bases(gold.possible), plausible_bases(hypothesis.possible)
        return cls(*bases, lengths, words, tuple(moves))


def plausible_bases(links: LinkTable) -> frozenset[int]:
    """The index bases that a file with these indices may have."""
    if ((links.source == 0) | (links.target == 0)).any():
        return frozenset({0})
    return frozenset({1} if sentences_with_one(links) >= CONTRADICTED else {0, 1})


def gold_base(facts: Facts) -> Change:
    """The gold's other index base."""

    def change(reading: Reading) -> Changed | None:
        base = 1 - reading.gold_base
        if base not in facts.gold_bases:
            return None
        gold = reading.gold.shifted(reading.gold_base - base)
        return Changed("gold-base", *_base_words("gold", base), replace(reading, gold=gold, gold_base=base))

    return change


def hyp_base(facts: Facts) -> Change:
    """The hypothesis's other index base."""

    def change(reading: Reading) -> Changed | None:
        base = 1 - reading.hyp_base
        if base not in facts.hyp_bases:
            return None
        hypothesis = reading.hypothesis.shifted(reading.hyp_base - base)
        words = _base_words("hyp", base)
        return Changed("hyp-base", *words, replace(reading, hypothesis=hypothesis, hyp_base=base))

    return change


def _base_words(role: str, base: int) -> tuple[str, str]:
    name = {"gold": "gold", "hyp": "hypothesis"}[role]
    return f"the {name} counts words from {base} and was read as if from {1 - base}", f"give --{role}-base {base}"


def hyp_swap(reading: Reading) -> Changed:
    """Source and target of the hypothesis exchanged."""
    changed = replace(reading, hypothesis=reading.hypothesis.transposed(), hyp_swap=not reading.hyp_swap)
    return Changed("hyp-swap", *_swap_words("hyp", reading.hyp_swap), changed)


def gold_swap(reading: Reading) -> Changed:
    """Source and target of the gold exchanged."""
    changed = replace(reading, gold=reading.gold.transposed(), gold_swap=not reading.gold_swap)
    return Changed("gold-swap", *_swap_words("gold", reading.gold_swap), changed)


def _swap_words(role: str, swap: bool) -> tuple[str, str]:
    name = {"gold": "gold", "hyp": "hypothesis"}[role]
    order = "source-target" if swap else "target-source"
    return f"the {name} has its links in {order} order", f"leave --{role}-swap out" if swap else f"give --{role}-swap"


def without_possible(reading: Reading) -> Changed | None:
    """The possible links of the hypothesis dropped."""
    sure = reading.hypothesis.sure
    if len(sure) == len(reading.hypothesis.possible):
        return None
    return Changed(
        "hyp-possible",
        "possible links (p, P) of the hypothesis were taken for links",
        "remove them from the hypothesis",
        replace(reading, hypothesis=GoldTable(sure, sure)),
    )


def words_of(facts: Facts) -> Change:
    """Links between words from links between the tokens of the hypothesis's texts."""

    def change(reading: Reading) -> Changed | None:
        if facts.words is None:
            return None
        sides = facts.words
        hypothesis = _each(reading.hypothesis, lambda links: words_of_tokens(links, *sides, MARGIN))
        return Changed(
            "tokens",
            "the hypothesis links the tokens of its texts (subwords, other tokens), not the gold's words",
            "score links between words, such as align-eval extract makes",
            replace(reading, hypothesis=hypothesis),
        )

    return change


def moved_lines(by: int) -> Change:
    """The sentences of the hypothesis moved by ``by`` lines, from the line on where that lowers AER most."""

    def change(reading: Reading) -> Changed | None:
        hypothesis = reading.hypothesis
        moved = _each(hypothesis, lambda links: move_lines(links, by, 0))
        start = best_start(reading.counts(), count(moved.possible, reading.gold), by)
        if start + abs(by) >= hypothesis.sentences:
            return None
        lines, are = (f"{abs(by)} lines", "are") if abs(by) > 1 else ("1 line", "is")
        fault, verb, sign = ("missing", "insert", "-") if by > 0 else ("too many", "remove", "+")
        return Changed(
            "lines",
            f"{lines} {are} {fault} in the hypothesis at about line {start + 1}: from there on, line n of the gold "
            f"belongs to line n {sign} {abs(by)} of the hypothesis",
            f"{verb} {lines} there (or mend the gold, if the fault is in it)",
            replace(reading, hypothesis=_each(hypothesis, lambda links: move_lines(links, by, start))),
        )

    return change


def move_lines(links: LinkTable, by: int, start: int) -> LinkTable:
    """Sentences from number ``start`` on moved by ``by``.

    ``by`` > 0 inserts sentences without links before sentence ``start``, ``by`` < 0 takes sentences out from there.
    The number of sentences stays the same: what goes beyond it is dropped.
    """
    sentence = links.sentence
    new = np.where(sentence < start, sentence, sentence + by)
    keep = (new < links.sentences) & ((sentence < start) | (new >= start))
    return LinkTable.build(new[keep], links.source[keep], links.target[keep], links.sentences)


def best_start(before: Counts, moved: Counts, by: int) -> int:
    """The number of the sentence from which on moving lines lowers the corpus's AER most.

    Args:
        before: counts of each sentence as it is.
        moved: the same with all sentences moved by ``by``.
        by: so many; sentences that are inserted have no links.
    """
    sentences = len(before.sure)
    rest = np.minimum(np.arange(sentences + 1) + max(by, 0), sentences)
    sums = []
    for as_is, then in zip(before.arrays(), moved.arrays()):
        until, after = (np.concatenate([[0], np.cumsum(values)]) for values in (as_is, then))
        sums.append(until + after[-1] - after[rest])
    links, _, sure, possible = sums
    gold = np.broadcast_to(before.sure.sum(), links.shape)
    return int(aer(Counts(links, gold, sure, possible)).argmin())


def _each(links: GoldTable, change: Callable[[LinkTable], LinkTable]) -> GoldTable:
    sure = change(links.sure)
    return GoldTable(sure, sure if links.possible is links.sure else change(links.possible))


def families(facts: Facts) -> list[list[Change]]:
    """All changes, in the order in which they are made; those of one family exclude each other."""
    return [
        [gold_base(facts)],
        [hyp_base(facts)],
        [hyp_swap, gold_swap],
        [without_possible],
        [words_of(facts)],
        [moved_lines(by) for by in facts.moves],
    ]
