"""Choosing maps: by AER on a development gold (ranking, greedy forward selection), or by agreement without gold.

A choice is the best of many candidates on its sentences, so its AER there is optimistic.  Report AER on others.

Everything is float64, in the order of operations of :func:`alignment_eval.extraction.extract.word_links`, so the links
of a choice are exactly those that ``extract`` draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.bidirectional import check_same_size, check_same_text, words_of
from alignment_eval.extraction.extract import choose_units, stacked_maps, unit_maps
from alignment_eval.extraction.options import ExtractionOptions, MapName
from alignment_eval.extraction.rules import rule_of
from alignment_eval.formats.checks import Texts
from alignment_eval.links.table import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import COMBINATIONS, SETTINGS, UnitMap, combined, require_known, terms
from alignment_eval.progress import Progress, no_progress
from alignment_eval.scoring.gold_corpus import GoldCorpus, GoldMatrix, aer_of

#: What may be chosen among: single heads, whole layers.
LEVELS = ("head", "layer")

#: How many candidates a ranking holds at most.
RANKED = 1000

#: With how many sets of maps of each direction joins and lexicons are tried (:mod:`alignment_eval.selection.methods`).
FINALISTS = 3


@dataclass(frozen=True)
class SelectionOptions:
    """What to choose among.

    Attributes:
        configurations: kinds, settings and rules (:func:`alignment_eval.scoring.sweep.configurations`).
        levels: some of :data:`LEVELS`.
        combinations: ways to combine maps, some of :data:`alignment_eval.maps.words.COMBINATIONS`.
        max_maps: how many maps a choice may combine.
        mix_settings: whether a set may hold maps of both settings.

    Raises:
        UsageError: an unknown name, nothing to choose among, or no map allowed.
    """

    configurations: Sequence[ExtractionOptions]
    levels: Sequence[str] = LEVELS
    combinations: Sequence[str] = COMBINATIONS
    max_maps: int = 8
    mix_settings: bool = False

    def __post_init__(self) -> None:
        for what, names, known in (
            ("level", self.levels, LEVELS),
            ("combination", self.combinations, COMBINATIONS),
        ):
            for name in names:
                require_known(what, name, known)
        if not (self.configurations and self.levels and self.combinations):
            raise UsageError("nothing to choose among: expected kinds, settings, rules, levels and combinations")
        if self.max_maps < 1:
            raise UsageError(f"at most {self.max_maps} maps: expected 1 or more")


@dataclass(frozen=True)
class Candidate:
    """An extraction and its figure: AER on the gold, or the Dice coefficient of two directions (fractions).

    ``reverse_heads`` names the maps of the other direction, as :func:`extraction.extract.parse_maps` reads them.
    """

    extraction: ExtractionOptions
    figure: float
    reverse_heads: str | None = None


@dataclass(frozen=True)
class Selection:
    """What a selection found.

    Attributes:
        ranking: the best :data:`RANKED` single maps (pairs of maps in two directions), best first.
        steps: from the best single map to the choice, one map more each.
        candidates: how many figures were compared in all.
        skipped: id -> why the sentence has no maps; with gold it counts as an empty hypothesis.
        finalists: the :data:`FINALISTS` best sets of maps, each with its best rule, best first (with gold only).
    """

    ranking: tuple[Candidate, ...]
    steps: tuple[Candidate, ...]
    candidates: int
    skipped: Mapping[int, str]
    finalists: tuple[Candidate, ...] = ()

    @property
    def choice(self) -> Candidate:
        """The best of all."""
        return self.steps[-1]


@dataclass(frozen=True, eq=False)
class _Item:
    """A sentence with all candidate maps [C, K, N] between the units of a rule, and its gold."""

    sentence: SentenceMaps
    units: UnitMap
    gold: GoldMatrix

    def hits(self, scores: NDArray[np.float64], options: ExtractionOptions) -> NDArray[np.int64]:
        """|A|, |A∩S| and |A∩P| of each of ``scores`` [C, K, N]: [C, 3]."""
        chosen = choose_units(replace(self.units, scores=scores), self.sentence, options)
        return self.gold.hits(chosen.linked(*self.gold.sure.shape))


def select(
    sentences: Iterable[SentenceMaps],
    gold: Sequence[GoldSentence],
    options: SelectionOptions,
    texts: Texts | None = None,
    progress: Progress = no_progress,
) -> Selection:
    """Rank all maps by AER on a development gold, and combine them greedily.

    For every configuration and combination: begin with the map of the lowest AER, and add the map that lowers AER most
    as long as one does.  The choice has the lowest AER of all; of equal ones it has fewer maps, then it comes first.

    Args:
        sentences: the best hypothesis of each sentence, in any order; id k belongs to ``gold[k]``.
        gold: the development gold, one entry a sentence; report AER on another gold.
        options: what to choose among.
        texts: the lengths of the texts; with them every sentence must have the same number of words.
        progress: goes through the configurations.

    Raises:
        InputError: as :func:`alignment_eval.scoring.sweep.sweep`, or the records have no maps of the levels asked for.
    """
    corpus = GoldCorpus(sentences, gold, texts)
    beside_gold, sure = list(corpus), corpus.sure
    ranking: list[Candidate] = []
    best: list[Candidate] = []
    reached: list[Candidate] = []
    count = 0
    items: list[_Item] = []
    names: list[MapName] = []
    grouped = [(option, group[0] is option) for group in _groups(options.configurations) for option in group]
    for configuration, of_other_maps in progress(grouped, len(grouped), "configurations"):
        if of_other_maps:
            items, names = _items(beside_gold, configuration, options)
        alone = aer_of(_total(item.hits(item.units.scores, configuration) for item in items), sure)
        ranking += [Candidate(configuration.with_maps([name]), float(value)) for name, value in zip(names, alone)]
        count += len(names)
        for how in options.combinations:
            steps, tried = _greedy(items, names, alone, replace(configuration, combine=how), sure, options.max_maps)
            count += tried
            reached += steps
            if not best or _key(steps[-1]) < _key(best[-1]):
                best = steps
    ranking.sort(key=lambda candidate: candidate.figure)
    return Selection(tuple(ranking[:RANKED]), tuple(best), count, corpus.skipped, _finalists(reached))


def _finalists(reached: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The best different sets of maps, whatever the rule, among all steps of all greedy searches."""
    found: dict[tuple[str, ...], Candidate] = {}
    for candidate in sorted(reached, key=_key):
        option = candidate.extraction
        combine = option.combine if len(option.maps) > 1 else ""
        found.setdefault((option.kind, option.setting, option.map_names, combine), candidate)
    return tuple(found.values())[:FINALISTS]


def _total(hits: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    return reduce(np.add, hits)


def _key(candidate: Candidate) -> tuple[float, int]:
    return candidate.figure, len(candidate.extraction.maps)


def _groups(configurations: Sequence[ExtractionOptions]) -> list[list[ExtractionOptions]]:
    """Groups of configurations that read the same maps between the same units."""
    groups: dict[tuple[str, str, str], list[ExtractionOptions]] = {}
    for option in configurations:
        groups.setdefault((option.kind, option.setting, rule_of(option.rule).units), []).append(option)
    return list(groups.values())


def _items(
    corpus: Sequence[tuple[SentenceMaps, GoldMatrix]],
    configuration: ExtractionOptions,
    options: SelectionOptions,
) -> tuple[list[_Item], list[MapName]]:
    """The sentences with their candidate maps, and the names of those."""
    items = []
    names: list[MapName] = []
    for sentence, matrix in corpus:
        names, units = _candidates(sentence, configuration, options)
        items.append(_Item(sentence, units, matrix))
    return items, names


def _candidates(
    sentence: SentenceMaps, configuration: ExtractionOptions, options: SelectionOptions
) -> tuple[list[MapName], UnitMap]:
    """The names of all C candidate maps of a sentence, and those maps [C, K, N].

    Raises:
        InputError: there are none, or an error of the maps.
    """
    maps = stacked_maps(sentence, configuration.kind)
    heads = maps.shape[1] - 1
    wanted = [h for h in range(heads + 1) if ("layer" if h == heads else "head") in options.levels]
    if not wanted:
        raise InputError(
            f"kind {configuration.kind!r} has maps of whole layers only: expected level layer among the levels, or "
            f"kinds with heads"
        )
    names = [MapName(layer, None if h == heads else h) for layer in sentence.layers for h in wanted]
    picked = maps[:, wanted].reshape(-1, *maps.shape[2:])
    read = rule_of(configuration.rule).units
    units = unit_maps(picked, sentence, configuration.setting, read)
    if not options.mix_settings:
        return names, units
    others = [setting for setting in SETTINGS if setting != configuration.setting]
    scores = [units.scores, *(unit_maps(picked, sentence, setting, read).scores for setting in others)]
    names += [replace(name, setting=setting) for setting in others for name in names]
    return names, replace(units, scores=np.concatenate(scores))


def _greedy(
    items: Sequence[_Item],
    names: Sequence[MapName],
    alone: NDArray[np.float64],
    configuration: ExtractionOptions,
    sure: int,
    max_maps: int,
) -> tuple[list[Candidate], int]:
    """Forward selection: its steps, and how many combinations were tried."""
    chosen = [int(alone.argmin())]
    steps = [Candidate(configuration.with_maps([names[chosen[0]]]), float(alone[chosen[0]]))]
    tried = 0
    added = [terms(item.units.scores, configuration.combine) for item in items] if max_maps > 1 else []
    totals = [each[chosen[0]] for each in added]
    while len(chosen) < min(max_maps, len(names)):
        rest = [k for k in range(len(names)) if k not in chosen]
        hits = _total(
            item.hits(combined(total + each[rest], len(chosen) + 1, configuration.combine), configuration)
            for item, total, each in zip(items, totals, added)
        )
        values = aer_of(hits, sure)
        tried += len(rest)
        if not values.min() < steps[-1].figure:
            break
        chosen.append(rest[int(values.argmin())])
        steps.append(Candidate(configuration.with_maps([names[k] for k in chosen]), float(values.min())))
        totals = [total + each[chosen[-1]] for total, each in zip(totals, added)]
    return steps, tried


def select_by_agreement(
    sentences: Iterable[SentenceMaps],
    reverse: Iterable[SentenceMaps],
    options: SelectionOptions,
    progress: Progress = no_progress,
) -> Selection:
    """Rank pairs of maps, one of each direction, by how well their links agree: a choice without gold.

    The figure is the Dice coefficient of the links over the corpus, 2 |A ∩ B| / (|A| + |B|), and 0 without links.  Both
    directions have the same kind, setting and rule; maps are not combined.  Of equal pairs the first.

    Args:
        sentences: the best hypothesis of each sentence, in any order.
        reverse: the same of a model of the other direction.
        options: what to choose among; combinations and the number of maps are not read.
        progress: goes through the configurations.

    Raises:
        UsageError: settings are to be mixed, though maps are not combined.
        InputError: the two are not of the same sentence pairs, no sentence has maps in both, or an error of the maps.
    """
    if options.mix_settings:
        raise UsageError("--mix-settings in a choice by agreement: expected --dev-gold too, or no --mix-settings")
    skipped: dict[int, str] = {}
    pairs = list(_paired(sentences, reverse, skipped))
    check_same_text((words_of(sentence), words_of(back)) for sentence, back in pairs)
    found: list[tuple[float, ExtractionOptions, MapName, MapName]] = []
    count = 0
    for configuration in progress(options.configurations, len(options.configurations), "configurations"):
        names, dice = _dice(pairs, configuration, options)
        count += dice.size
        for k in np.argsort(-dice, axis=None, kind="stable")[:RANKED].tolist():
            i, j = divmod(k, len(names[1]))
            found.append((float(dice[i, j]), configuration, names[0][i], names[1][j]))
    found.sort(key=lambda entry: -entry[0])
    ranking = tuple(Candidate(option.with_maps([a]), value, str(b)) for value, option, a, b in found[:RANKED])
    return Selection(ranking, ranking[:1], count, skipped)


def _paired(
    sentences: Iterable[SentenceMaps], reverse: Iterable[SentenceMaps], skipped: dict[int, str]
) -> Iterator[tuple[SentenceMaps, SentenceMaps]]:
    """The sentences that have maps in both directions, once they are checked; the others go to ``skipped``."""
    other = {sentence.id: sentence for sentence in reverse}
    count = found = 0
    for sentence in sentences:
        count += 1
        if sentence.id not in other:
            raise InputError(
                f"sentence {sentence.id} has no counterpart among the {len(other)} of the other direction: expected "
                f"records of the same sentence pairs, source and target exchanged"
            )
        back = other[sentence.id]
        if not (sentence.ok and back.ok):
            skipped[sentence.id] = back.status if sentence.ok else sentence.status
            continue
        check_same_size(sentence, (back.source.word_count, back.target.word_count))
        found += 1
        yield sentence, back
    if count != len(other):
        raise InputError(
            f"{count} sentences, but {len(other)} in the other direction: expected records of the same sentence pairs, "
            f"source and target exchanged"
        )
    if not found:
        raise InputError("no sentence has maps in both directions: expected some to compare")


def _dice(
    pairs: Sequence[tuple[SentenceMaps, SentenceMaps]], configuration: ExtractionOptions, options: SelectionOptions
) -> tuple[tuple[list[MapName], list[MapName]], NDArray[np.float64]]:
    """The names of the C and D maps of the two directions, and how well each pair agrees, [C, D]."""
    both: NDArray[np.float64] = np.zeros((1, 1))
    sizes: NDArray[np.float64] = np.zeros((1, 1))
    names: tuple[list[MapName], list[MapName]] = [], []
    for pair in pairs:
        matrices = []
        names = [], []
        for side, sentence in enumerate(pair):
            found, units = _candidates(sentence, configuration, options)
            names[side].extend(found)
            words = sentence.source.word_count, sentence.target.word_count
            linked = choose_units(units, sentence, configuration).linked(*words)
            linked = linked if side == 0 else linked.swapaxes(-1, -2)
            matrices.append(linked.reshape(len(found), -1).astype(np.float64))  # counts are exact in float64
        both = both + matrices[0] @ matrices[1].T
        sizes = sizes + matrices[0].sum(axis=1)[:, None] + matrices[1].sum(axis=1)
    return names, np.divide(2 * both, sizes, out=np.zeros(both.shape), where=sizes > 0)
