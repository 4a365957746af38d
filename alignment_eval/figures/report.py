"""The report: alignments scored and compared, and recorded maps, in one HTML page that needs no network.

:func:`build` computes the content in one pass over the records, :func:`render` writes the page.  Its
Content-Security-Policy admits only its script and its style sheet, by their hashes.  Its data are blocks of deflate in
base64, which has no character that ends an HTML element; jinja2 escapes all other text.  ``report.js`` unpacks the
block of a sentence when it shows it.  A block has these parts in this order, all little-endian:

======= =================== ==================================================================================
dtype   shape               meaning
======= =================== ==================================================================================
uint16  [planes, T]         scale of each row of each plane: its largest value or a little more, as the upper half
                            of a float32
uint8   [planes, T, S]      value / scale, in steps of 1 / :data:`STEPS`
uint8   [maps, …]           predicted links [source words, target words] of each map, eight per byte, high bit first
======= =================== ==================================================================================

Planes are the maps of tokens: of each kind, of each layer, those of the heads and then the layer's own.  T and S are
target and source tokens.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from typing import Any, cast

import jinja2
import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from alignment_eval import __version__
from alignment_eval.errors import UsageError
from alignment_eval.extraction.defaults import DEFAULTS
from alignment_eval.extraction.extract import stacked_maps
from alignment_eval.extraction.method import ExtractionOptions, MapNames
from alignment_eval.figures.names import kind_name, layer_label
from alignment_eval.links.read import Texts
from alignment_eval.links.sets import GoldSentence, Links
from alignment_eval.maps.kinds import DEFAULT_KINDS
from alignment_eval.maps.sentence import PairWords, SentenceMaps
from alignment_eval.maps.words import SETTINGS
from alignment_eval.scoring.aer import Counts, Score, aer, count
from alignment_eval.scoring.error_classes import TITLES, Rows, error_table
from alignment_eval.scoring.gold_corpus import GoldCorpus, check_links, linked_maps
from alignment_eval.scoring.significance import Interval, Resampling, compare_all, confidence_each
from alignment_eval.scoring.tables import Table, difference_table, interval_text, percent, score_table

STEPS = 16
#: Bits of a scale after the first one: few, so that they compress.
_SCALE_BITS = 3
#: What a stored value is off by at most, as a share of the largest value of its row.
ERROR = (1 + 2**-_SCALE_BITS) / (2 * STEPS)
_AER = attrgetter("score.aer")
_RESAMPLING = Resampling()


@dataclass(frozen=True, eq=False)
class LinkScore:
    """The score of the links of a map or of a file.

    Attributes:
        name: what the page calls the map or the file.
        score: over the whole corpus; sentences without maps count as empty hypotheses.
        interval: of AER (95 %, bootstrap over sentences).
        unaligned: target words without a link, of the sentences that have maps.
    """

    name: str
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
    """The score of a map: its ``number`` among all, and its place; ``head`` None: the map of the whole layer."""

    number: int
    kind: str
    setting: str
    layer: int
    head: int | None


@dataclass(frozen=True)
class Report:
    """The content of a page.

    Attributes:
        maps: every map, by kind, setting, layer and head, the whole layer last: in the order of
            :func:`alignment_eval.commands.sweep.sweep`.
        systems: the alignments of files.
        method: how links were made of maps (its kind, setting and layer are those of the first map); None: no maps.
        sentences: number of sentences of the corpus.
        skipped: why sentences cannot be aligned (id -> status).
        shown: the ids of the sentences in the page.
        blocks: name -> packed data: ``index`` is JSON; ``aers`` the AER of each map, then of each system, uint16
            [maps + systems, shown] in 1 / 10,000; ``s0``, ``s1``, … the maps of the shown sentences.
        tables: for people: ``scores`` of the systems, paired ``tests``, AER by ``classes`` of words; those there are.
        resampling: how intervals are computed.
    """

    maps: tuple[MapScore, ...]
    systems: tuple[LinkScore, ...]
    method: ExtractionOptions | None
    sentences: int
    skipped: Mapping[int, str]
    shown: Sequence[int]
    blocks: Mapping[str, str]
    tables: Mapping[str, Table]
    resampling: Resampling

    @property
    def best(self) -> MapScore:
        """The map with the lowest AER, the first of equals; raises ValueError if there are no maps."""
        return min(self.maps, key=_AER)


def build(
    sentences: Iterable[SentenceMaps],
    gold: Sequence[GoldSentence],
    *,
    kinds: Sequence[str] = DEFAULT_KINDS,
    rule: str = DEFAULTS.map_rule,
    systems: Sequence[tuple[str, Sequence[Links]]] = (),
    texts: Texts | None = None,
    words: Sequence[PairWords] | None = None,
    max_sentences: int | None = None,
    resampling: Resampling = _RESAMPLING,
) -> Report:
    """Score all maps of ``sentences`` and all ``systems``, and keep what the page shows.

    Args:
        sentences: the best hypotheses, in any order; id k belongs to ``gold[k]``.
        gold: the gold, one entry per sentence.
        kinds: map kinds; none: the page has no maps.
        rule: see :class:`alignment_eval.extraction.method.ExtractionOptions`.
        systems: alignments of the corpus: a name, and the links of each sentence in the order of the gold.
        texts: the lengths of the texts; if given, every sentence must have the same number of words as its text.
        words: those of all sentences; without them there are no classes of words.
        max_sentences: the page shows at most this number of sentences, evenly spaced over the corpus, with the first
            and the last; None: all.  Scores always cover all sentences.
        resampling: how intervals are computed.
    """
    if max_sentences is not None and max_sentences < 1:
        raise UsageError(f"max sentences {max_sentences}: the page must have 1 or more")
    options = [ExtractionOptions(kind, MapNames("0"), "mean", s, rule) for kind in kinds for s in SETTINGS]
    shown = np.rint(np.linspace(0, len(gold) - 1, min(len(gold), max_sentences or len(gold)))).astype(int).tolist()
    corpus = GoldCorpus(sentences, gold, texts)
    layers: tuple[int, ...] = ()
    heads: dict[str, int] = {}
    hits: dict[int, NDArray[np.int64]] = {}  # by sentence: |A|, |A∩S| and |A∩P| of each map
    unaligned: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    entries: dict[int, dict[str, Any]] = {}
    blocks: dict[int, str] = {}
    for sentence, matrix in corpus:
        if not layers:  # they are the same for all sentences of a run
            layers = sentence.layers
            heads = {kind: sentence.head_maps(kind).shape[1] for kind in kinds}
        links = _linked(sentence, options)
        if kinds:
            hits[sentence.id] = matrix.hits(links)
        beside = [aligned[sentence.id] for _, aligned in systems]
        for (name, _), chosen in zip(systems, beside):
            check_links(chosen, sentence, f"{name}:{sentence.id + 1}")
        linked = [len({j for _, j in chosen}) for chosen in beside]
        unaligned = unaligned + sentence.target.word_count - np.append(links.any(axis=1).sum(axis=-1), linked)
        if sentence.id in shown:
            entries[sentence.id] = _entry(sentence, gold[sentence.id], beside)
            if kinds:
                blocks[sentence.id] = pack(encode_sentence(sentence, kinds, links))
    for id_, stub in corpus.stubs.items():
        entries[id_] = _entry(stub, gold[id_], [frozenset()] * len(systems))
    places = [
        (option.kind, option.setting, layer, head)
        for option in options
        for layer in layers
        for head in (*range(heads[option.kind]), None)
    ]
    names = [*(map_name(*place) for place in places), *(name for name, _ in systems)]
    counts = _counts(hits, len(places), gold, [aligned for _, aligned in systems])
    scores = (Score.of(Counts(*(values[number] for values in counts))) for number in range(len(names)))
    drawn = confidence_each(np.stack(counts), resampling)
    intervals = (cast(Interval, sampled["aer"]) for sampled in drawn)  # AER is always defined
    every = list(zip(names, scores, intervals, unaligned.tolist()))
    maps = tuple(MapScore(*own, number, *place) for number, (own, place) in enumerate(zip(every, places)))
    scored = tuple(LinkScore(*own) for own in every[len(places) :])
    planes = np.cumsum([0, *(len(layers) * (count_ + 1) for count_ in heads.values())]).tolist()
    index = {
        "layers": [layer_label(layer) for layer in layers],
        "kinds": {kind: {"heads": heads[kind], "plane": plane} for kind, plane in zip(heads, planes)},
        "settings": SETTINGS,
        "steps": STEPS,
        "maps": [  # the layer is its place among the layers
            {"name": m.name, "kind": m.kind, "setting": m.setting, "layer": layers.index(m.layer), "head": m.head}
            for m in maps
        ],
        "best": min(maps, key=_AER).number if maps else None,
        "systems": [name for name, _ in systems],
        "sentences": [entries[id_] for id_ in shown],
    }
    packed = {
        "index": pack(json.dumps(index, ensure_ascii=False, allow_nan=False).encode()),
        "aers": pack(np.rint(aer(counts)[:, shown] * 10_000).astype("<u2").tobytes()),
        **{f"s{place}": blocks[id_] for place, id_ in enumerate(shown) if id_ in blocks},
    }
    return Report(
        maps=maps,
        systems=scored,
        method=options[0] if options else None,
        sentences=len(gold),
        skipped=corpus.skipped,
        shown=shown,
        blocks=packed,
        tables=dict(_tables(scored, gold, words, [aligned for _, aligned in systems], resampling)),
        resampling=resampling,
    )


def map_name(kind: str, setting: str, layer: int, head: int | None) -> str:
    """``attn_n, AWO, layer 1 (2nd), head 0``."""
    return f"{kind}, {setting.upper()}, {layer_label(layer)}, {'whole layer' if head is None else f'head {head}'}"


def _linked(sentence: SentenceMaps, options: Sequence[ExtractionOptions]) -> NDArray[np.bool_]:
    """The links of every map: [maps, source words, target words]."""
    size = sentence.source.word_count, sentence.target.word_count
    linked = [kind.reshape(math.prod(kind.shape[:2]), *size) for kind in linked_maps(sentence, options)]
    return np.concatenate([np.zeros((0, *size), dtype=np.bool_), *linked])


def _counts(
    hits: Mapping[int, NDArray[np.int64]],
    maps: int,
    gold: Sequence[GoldSentence],
    systems: Sequence[Sequence[Links]],
) -> Counts:
    """The counts of every map and then of every system, [maps + systems, sentences]."""
    table = np.zeros((3, maps, len(gold)), dtype=np.int64)
    for id_, counted in hits.items():
        table[:, :, id_] = counted.T
    sure = np.broadcast_to([len(sentence.sure) for sentence in gold], table.shape[1:])
    of_maps = Counts(table[0], sure, table[1], table[2])
    return Counts(*map(np.vstack, zip(of_maps, *(count(links, gold) for links in systems))))


def _entry(sentence: SentenceMaps, gold: GoldSentence, aligned: Sequence[Links]) -> dict[str, Any]:
    """A sentence in the index: words of each side with the word of each token (-1: none), gold, links of systems."""
    source, target = (
        {"words": side.word_strings(), "pieces": side.words.tolist()} for side in (sentence.source, sentence.target)
    )
    links = {"sure": sorted(gold.sure), "possible": sorted(gold.possible - gold.sure)}
    words = {"source": source, "target": target}
    return {"id": sentence.id, "status": sentence.status, **words, **links, "aligned": [*map(sorted, aligned)]}


def _tables(
    systems: Sequence[LinkScore],
    gold: Sequence[GoldSentence],
    words: Sequence[PairWords] | None,
    links: Sequence[Sequence[Links]],
    resampling: Resampling,
) -> Iterator[tuple[str, Table]]:
    """The tables of :class:`Report`, by name."""
    if not systems:
        return
    names, scores = [system.name for system in systems], [system.score for system in systems]
    title = "Missed: sure links that are not there. Wrong: not even possible. Unaligned: target words without a link."
    table = score_table(title, names, scores, [system.interval for system in systems])
    errors = [(str(system.missed), str(system.wrong), str(system.unaligned)) for system in systems]
    rows = [(*row, *own) for row, own in zip(table.rows, errors)]
    yield "scores", replace(table, heads=(*table.heads, "missed", "wrong", "unaligned"), rows=rows)
    if len(systems) > 1:
        pairs = compare_all([score.per_sentence for score in scores], resampling)
        title = "AER of a row minus AER of a row above it, with p (approximate randomisation over sentences)."
        yield "tests", difference_table(title, names, scores, pairs)
    if words is not None:
        source, target = zip(*words)
        yield "classes", _class_table(names, [error_table(own, gold, source, target) for own in links])


def _class_table(names: Sequence[str], errors: Sequence[Rows]) -> Table:
    """AER of systems by class of word; ``errors`` has the :func:`error_table` of each."""
    heads = ("property", "class", "side", "words", *(f"{name}: AER %" for name in names))
    rows, best = [], set()
    for number, systems in enumerate(zip(*errors)):
        row, aers = systems[0], [of_system["aer"] for of_system in systems]
        rows.append((TITLES[row["by"]], row["class"], row["side"], str(row["words"]), *map(percent, aers)))
        best |= {(number, 4 + k) for k, value in enumerate(aers) if value == min(aers) and len(aers) > 1}
    title = "AER of the links of words, by what the words are. Frequencies are those in the texts."
    return Table(title, heads, rows, best, names=3)


def encode_sentence(sentence: SentenceMaps, kinds: Sequence[str], links: NDArray[np.bool_]) -> bytes:
    """The block of a sentence (see above); ``links`` are [maps, source words, target words]."""
    of_kinds = (stacked_maps(sentence, kind) for kind in kinds)
    steps, scales = quantise(np.concatenate([maps.reshape(-1, *maps.shape[-2:]) for maps in of_kinds]))
    bits = np.packbits(links.reshape(len(links), -1), axis=-1)
    return (scales.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes() + steps.tobytes() + bits.tobytes()


def quantise(planes: NDArray[np.float64]) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Steps [planes, T, S] and scales [planes, T] of ``planes`` [planes, T, S], which have no negative values."""
    mantissa, exponent = np.frexp(planes.max(axis=-1))
    scales = np.ldexp(np.ceil(mantissa * 2 ** (_SCALE_BITS + 1)) / 2 ** (_SCALE_BITS + 1), exponent)
    factors = np.divide(STEPS, scales, out=np.zeros(scales.shape), where=scales > 0)
    return np.rint(planes * factors[..., np.newaxis]).astype(np.uint8), scales


def pack(content: bytes) -> str:
    """Compress with deflate (in zlib's form) and encode in base64."""
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


def render(report: Report, title: str, signature: str, provenance: Mapping[str, Any]) -> str:
    """The HTML of a report; ``provenance`` is other information on the records, shown as JSON."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(percent=percent, interval=interval_text, layer=layer_label, kind=kind_name)
    script, style = _asset("report.js"), _asset("report.css")
    grouped = groupby(report.maps, key=attrgetter("kind", "setting"))
    return environment.get_template("report.html").render(
        report=report,
        # kind, setting, and the maps of each layer, the whole layer last
        groups=[(*key, [list(row) for _, row in groupby(maps, key=attrgetter("layer"))]) for key, maps in grouped],
        title=title,
        signature=signature,
        provenance=json.dumps(provenance, indent=1, ensure_ascii=False, default=str),
        version=__version__,
        error=f"{math.ceil(1000 * ERROR) / 10:.1f}",  # in %, not less than it is
        script=Markup(script),  # safe: the script and the style sheet are our own files
        style=Markup(style),
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        f"base-uri 'none'; form-action 'none'",
    )


def _asset(name: str) -> str:
    return files("alignment_eval.figures").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The hash as a source in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
