"""Computes the content of a report: of alignments, and of recorded maps in one pass over the records."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alignment_eval.errors import UsageError
from alignment_eval.extraction.defaults import DEFAULTS
from alignment_eval.extraction.method import ExtractionOptions, MapNames
from alignment_eval.figures.names import layer_label
from alignment_eval.links.read import Texts
from alignment_eval.links.sets import GoldSentence, Links
from alignment_eval.maps.kinds import DEFAULT_KINDS
from alignment_eval.maps.sentence import PairWords, SentenceMaps, SentenceSide
from alignment_eval.maps.words import SETTINGS
from alignment_eval.report.encoding import STEPS, encode_sentence, pack
from alignment_eval.scoring.aer import Counts, Score, aer, count
from alignment_eval.scoring.error_classes import TITLES, error_table
from alignment_eval.scoring.gold_corpus import GoldCorpus, check_links, linked_maps
from alignment_eval.scoring.significance import Interval, Resampling, compare_all, confidence_each
from alignment_eval.scoring.tables import Table, difference_table, percent, score_table


@dataclass(frozen=True)
class ReportOptions:
    """The options of a report.

    Attributes:
        kinds: map kinds; none: the page has no maps.
        rule: see :class:`alignment_eval.extraction.method.ExtractionOptions`.
        max_sentences: the page holds the maps of at most this number of sentences, evenly spaced over the corpus
            (:func:`shown_ids`); None: all.  Scores always cover all sentences.
        resampling: how intervals are computed.
    """

    kinds: tuple[str, ...] = DEFAULT_KINDS
    rule: str = DEFAULTS.map_rule
    max_sentences: int | None = None
    resampling: Resampling = field(default_factory=Resampling)

    def __post_init__(self) -> None:
        if self.max_sentences is not None and self.max_sentences < 1:
            raise UsageError(f"max sentences {self.max_sentences}: the page must have 1 or more")
        self.extraction()

    def extraction(self) -> list[ExtractionOptions]:
        """Each kind in each setting; the layer is a placeholder."""
        every = ((kind, setting) for kind in self.kinds for setting in SETTINGS)
        return [ExtractionOptions(kind, MapNames("0"), "mean", setting, self.rule) for kind, setting in every]


@dataclass(frozen=True, eq=False)
class LinkScore:
    """The score of the links of a corpus.

    Attributes:
        score: over the whole corpus; sentences without maps count as empty hypotheses.
        interval: of AER (95 %, bootstrap over sentences).
        unaligned: target words without a link, of the sentences that have maps.
    """

    score: Score
    interval: Interval
    unaligned: int

    @property
    def missed(self) -> int:
        """Sure links that are not predicted."""
        return int(self.score.counts.sure - self.score.counts.hypothesis_sure)

    @property
    def wrong(self) -> int:
        """Predicted links that are not even possible."""
        return int(self.score.counts.hypothesis - self.score.counts.hypothesis_possible)


@dataclass(frozen=True, eq=False)
class MapScore(LinkScore):
    """One map with the score of its links.

    Attributes:
        number: its place among all maps.
        kind, setting: as in :class:`ReportOptions`.
        layer: the layer's number, from 0.
        head: the head's number, from 0; None: the map of the whole layer.
    """

    number: int
    kind: str
    setting: str
    layer: int
    head: int | None


@dataclass(frozen=True, eq=False)
class System:
    """An alignment of the corpus: what the page calls it, and the links of each sentence, in the order of the gold."""

    name: str
    links: Sequence[Links]


@dataclass(frozen=True, eq=False)
class SystemScore(LinkScore):
    """The score of a :class:`System`, with its name."""

    name: str


@dataclass(frozen=True)
class Report:
    """The content of a page.

    Attributes:
        options: what was asked for.
        layers: the layers' numbers, from 0.
        maps: every map, by kind, setting, layer and head, the whole layer last: in the order of
            :func:`alignment_eval.scoring.sweep.sweep`.
        sentences: number of sentences of the corpus.
        skipped: why sentences cannot be aligned (id -> status).
        shown: the ids of the sentences whose maps are in the page.
        blocks: name -> packed data (:mod:`alignment_eval.report.encoding`): ``index`` is JSON; ``aers`` the AER of
            each map, then of each system, uint16 [maps + systems, shown] in 1 / 10,000; ``s0``, ``s1``, … the maps of
            the shown sentences.
        systems: the scores of the alignments.
        tables: for people: scores of the systems, paired tests, AER by class of word; those that there are.
    """

    options: ReportOptions
    layers: tuple[int, ...]
    maps: tuple[MapScore, ...]
    sentences: int
    skipped: Mapping[int, str]
    shown: tuple[int, ...]
    blocks: Mapping[str, str]
    systems: tuple[SystemScore, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)

    @property
    def best(self) -> MapScore:
        """The map with the lowest AER, the first of equals; raises ValueError if there are no maps."""
        return lowest(self.maps)


def lowest(maps: Iterable[MapScore]) -> MapScore:
    """The map with the lowest AER, the first of equals."""
    return min(maps, key=lambda entry: entry.score.aer)


def shown_ids(sentences: int, limit: int | None) -> tuple[int, ...]:
    """At most ``limit`` of the ids 0 … ``sentences`` - 1, evenly spaced, with the first and the last."""
    ids = np.linspace(0, sentences - 1, min(sentences, limit or sentences))
    return tuple(np.rint(ids).astype(int).tolist())


def build(
    sentences: Iterable[SentenceMaps],
    gold: Sequence[GoldSentence],
    options: ReportOptions,
    texts: Texts | None = None,
    systems: Sequence[System] = (),
    words: Sequence[PairWords] | None = None,
) -> Report:
    """Score all maps of ``sentences`` and all systems, and keep what the page shows.

    ``sentences`` are the best hypotheses, in any order; id k belongs to ``gold[k]``.  They have maps, unless
    ``options`` name no kinds.  With ``texts`` every sentence must have the same number of words as its text.
    ``words`` are those of all sentences; without them there are no classes of words.
    """
    shown = {id_: place for place, id_ in enumerate(shown_ids(len(gold), options.max_sentences))}
    corpus = GoldCorpus(sentences, gold, texts)
    layers: tuple[int, ...] = ()
    heads: dict[str, int] = {}
    hits: dict[int, NDArray[np.int64]] = {}
    unaligned: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    entries: list[dict[str, object]] = [{} for _ in shown]
    blocks: dict[int, str] = {}
    for sentence, matrix in corpus:
        if not layers:  # they are the same for all sentences of a run
            layers = sentence.layers
            heads = {kind: sentence.head_maps(kind).shape[1] for kind in options.kinds}
        links = _linked(sentence, options)
        if options.kinds:
            hits[sentence.id] = matrix.hits(links).T
        beside = [system.links[sentence.id] for system in systems]
        for system, chosen in zip(systems, beside):
            check_links(chosen, sentence, f"{system.name}:{sentence.id + 1}")
        linked = [len({j for _, j in chosen}) for chosen in beside]
        unaligned = unaligned + sentence.target.word_count - np.append(links.any(axis=1).sum(axis=-1), linked)
        if (place := shown.get(sentence.id)) is not None:
            entries[place] = _entry(sentence, gold[sentence.id], beside)
            if options.kinds:
                blocks[place] = pack(encode_sentence(sentence, options.kinds, links))
    for id_ in corpus.stubs.keys() & shown.keys():
        entries[shown[id_]] = _entry(corpus.stubs[id_], gold[id_], [frozenset()] * len(systems))
    places = [
        (option.kind, option.setting, layer, head)
        for option in options.extraction()
        for layer in layers
        for head in (*range(heads[option.kind]), None)
    ]
    counts = _counts(hits, len(places), gold, systems)
    figures = list(link_scores(counts, unaligned.tolist(), options.resampling))
    maps = tuple(
        MapScore(*own, number, kind, setting, layer, head)
        for number, (own, (kind, setting, layer, head)) in enumerate(zip(figures, places))
    )
    scored = tuple(SystemScore(*own, system.name) for own, system in zip(figures[len(places) :], systems))
    planes = np.cumsum([0, *(len(layers) * (count_ + 1) for count_ in heads.values())]).tolist()
    index = {
        "layers": [layer_label(layer) for layer in layers],
        "kinds": {kind: {"heads": heads[kind], "plane": plane} for kind, plane in zip(heads, planes)},
        "settings": SETTINGS,
        "steps": STEPS,
        "maps": [  # the layer is its place among the layers
            {"kind": m.kind, "setting": m.setting, "layer": layers.index(m.layer), "head": m.head} for m in maps
        ],
        "best": lowest(maps).number if maps else None,
        "systems": [system.name for system in systems],
        "sentences": entries,
    }
    return Report(
        options=options,
        layers=layers,
        maps=maps,
        sentences=len(gold),
        skipped=corpus.skipped,
        shown=tuple(shown),
        blocks={
            "index": pack(json.dumps(index, ensure_ascii=False, allow_nan=False).encode()),
            "aers": pack(np.rint(aer(counts)[:, list(shown)] * 10_000).astype("<u2").tobytes()),
            **{f"s{place}": blocks[place] for place in sorted(blocks)},
        },
        systems=scored,
        tables=dict(tables(scored, gold, words, systems, options.resampling)),
    )


def tables(
    scored: Sequence[SystemScore],
    gold: Sequence[GoldSentence],
    words: Sequence[PairWords] | None,
    systems: Sequence[System],
    resampling: Resampling,
) -> Iterator[tuple[str, Table]]:
    """The tables of alignments, by name: ``scores``; ``tests`` of two and more; ``classes`` if the words are known."""
    if not systems:
        return
    names, scores = [system.name for system in scored], [system.score for system in scored]
    title = "Missed: sure links that are not there. Wrong: not even possible. Unaligned: target words without a link."
    of_scores = score_table(title, names, scores, [system.interval for system in scored])
    counts = [tuple(map(str, (system.missed, system.wrong, system.unaligned))) for system in scored]
    rows = [(*row, *more) for row, more in zip(of_scores.rows, counts)]
    yield "scores", replace(of_scores, heads=(*of_scores.heads, "missed", "wrong", "unaligned"), rows=rows)
    if len(systems) > 1:
        pairs = compare_all([score.per_sentence for score in scores], resampling)
        title = "AER of a row minus AER of a row above it, with p (approximate randomisation over sentences)."
        yield "tests", difference_table(title, names, scores, pairs)
    if words is not None:
        source, target = zip(*words)
        yield "classes", class_table(names, [error_table(own.links, gold, source, target) for own in systems])


def class_table(names: Sequence[str], errors: Sequence[pd.DataFrame]) -> Table:
    """AER of systems by class of word; ``errors`` has the :func:`error_table` of each."""
    heads = ("property", "class", "side", "words", *(f"{name}: AER %" for name in names))
    rows = list(zip(*(table.to_dict("records") for table in errors)))
    cells = [
        (TITLES[one["by"]], one["class"], one["side"], str(one["words"]), *(percent(r["aer"]) for r in (one, *others)))
        for one, *others in rows
    ]
    aers = [[row["aer"] for row in systems] for systems in rows]
    best = {(r, 4 + c) for r, own in enumerate(aers) for c, aer in enumerate(own) if aer == min(own) and len(own) > 1}
    return Table(
        "AER of the links of words, by what the words are. Frequencies are those in the texts.", heads, cells, best, 3
    )


def link_scores(
    counts: Counts, unaligned: Sequence[int], resampling: Resampling
) -> Iterator[tuple[Score, Interval, int]]:
    """The fields of a :class:`LinkScore` for each of the ``counts`` [maps, sentences]."""
    for number, sampled in enumerate(confidence_each(counts, resampling)):
        interval = sampled["aer"]
        assert interval is not None  # AER is always defined
        score = Score.of(Counts(*(values[number] for values in counts.arrays())))
        yield score, interval, int(unaligned[number])


def _linked(sentence: SentenceMaps, options: ReportOptions) -> NDArray[np.bool_]:
    """The links of every map: [maps, source words, target words]."""
    size = sentence.source.word_count, sentence.target.word_count
    linked = [kind.reshape(math.prod(kind.shape[:2]), *size) for kind in linked_maps(sentence, options.extraction())]
    return np.concatenate([np.zeros((0, *size), dtype=np.bool_), *linked])


def _counts(
    hits: Mapping[int, NDArray[np.int64]], maps: int, gold: Sequence[GoldSentence], systems: Sequence[System]
) -> Counts:
    """The counts of every map and then of every system, [maps + systems, sentences].

    ``hits``: |A|, |A∩S| and |A∩P|, [3, maps], of the sentences that have maps, by their ids.
    """
    table = np.zeros((3, maps, len(gold)), dtype=np.int64)
    for id_, counted in hits.items():
        table[:, :, id_] = counted
    sure = np.broadcast_to([len(sentence.sure) for sentence in gold], table.shape[1:])
    of_maps = Counts(table[0], sure, table[1], table[2])
    return of_maps.map(lambda *rows: np.vstack(rows), *(count(system.links, gold) for system in systems))


def _entry(sentence: SentenceMaps, gold: GoldSentence, systems: Sequence[Links]) -> dict[str, object]:
    return {
        "id": sentence.id,
        "status": sentence.status,
        "source": _side(sentence.source),
        "target": _side(sentence.target),
        "sure": sorted(gold.sure),
        "possible": sorted(gold.possible - gold.sure),
        "aligned": [sorted(links) for links in systems],
    }


def _side(side: SentenceSide) -> dict[str, object]:
    """The words of a side, and the word of each token (-1: none)."""
    return {"words": side.word_strings(), "pieces": side.words.tolist()}
