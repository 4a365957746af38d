"""``align-eval report``: alignments compared, and maps of all layers, heads and sentences, in one HTML page.

:func:`build` computes the content in one pass over the records, :func:`render` writes the page.  Its
Content-Security-Policy admits only its script and its style sheet, by their hashes.  Its data are blocks of deflate in
base64, which has no character that ends an HTML element; jinja2 escapes all other text.  ``report.js`` unpacks the
block of a sentence when it shows it.  The block ``index`` is JSON; ``aers`` has the AER of each map, then of each
system, uint16 [maps + systems, shown] in 1 / 10,000; ``s0``, ``s1``, … are the maps of the shown sentences.  These have
the following parts in this order, all little-endian:

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

import argparse
import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import jinja2
import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from alignment_eval import __version__, options
from alignment_eval.command_line import add_output, positive_integer
from alignment_eval.errors import UsageError, progress_bar, say, warn_skipped, warn_user
from alignment_eval.extraction.extract import stacked_maps
from alignment_eval.extraction.method import DEFAULTS, ExtractionOptions, MapName, MapNames
from alignment_eval.figures.style import kind_name, layer_label, visible
from alignment_eval.files import Value, check_new, signature, write_lines
from alignment_eval.links.files import AlignmentFile, Texts
from alignment_eval.links.formats import GoldSentence, Links
from alignment_eval.maps.sentence import DEFAULT_KINDS, PairWords, SentenceMaps, SentenceSide
from alignment_eval.maps.words import SETTINGS
from alignment_eval.profiles.profile import fit_profile, parse_profile
from alignment_eval.reading import Size
from alignment_eval.records import Records
from alignment_eval.scoring.aer import Counts, Score, aer, count
from alignment_eval.scoring.classes import TITLES, Rows, error_table
from alignment_eval.scoring.diagnosis import doubts
from alignment_eval.scoring.gold_corpus import check_links, linked_maps, with_gold
from alignment_eval.scoring.significance import Interval, Resampling, compare_all, confidence_each
from alignment_eval.scoring.tables import Table, interval_text, percent, score_table

EPILOG = """\
The page is one file that needs no network and a browser of 2024 or later.

Examples, the last after make demo:
  align-eval report --gold data/demo/demo.talp --gold-base 1 --hyp data/demo/hyp.pharaoh data/demo/both.pharaoh \\
      --source data/demo/demo.de --target data/demo/demo.en -o out/aligners.html
  align-eval report out/demo/forced --gold data/demo/demo.talp --gold-base 1 --output out/report.html
"""
#: Larger pages open slowly.
LARGE = 20e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_records(parser, optional=True)
    add_output(parser, "the page (-: standard output)", required=True)
    options.add_gold_arguments(parser, required=False, more="; without gold the page has no scores")
    options.add_text_arguments(parser)
    options.add_hypothesis_arguments(parser.add_argument_group("hypotheses", "the alignments to compare"), "--hyp")
    group = parser.add_argument_group("records")
    options.add_kinds(group)
    options.add_rule(group)
    group = parser.add_argument_group("page")
    group.add_argument("--title", metavar="TEXT", help="heading (default: what is compared)")
    help_ = "show at most N sentences, evenly spaced over the corpus, to keep the page small (default: all)"
    group.add_argument("--max-sentences", type=positive_integer, metavar="N", help=help_)


def run(args: argparse.Namespace) -> None:
    options.refuse_without_records(args, ("kinds", "rule"))
    if args.records is None and not args.hyp:
        raise UsageError("neither RECORDS nor --hyp: expected alignments to compare, or records of maps, or both")
    if args.records is None and None in (args.source, args.target):
        raise UsageError("--hyp without RECORDS: expected the texts too, by --source and --target")
    check_new(args.output, args.overwrite)
    systems = args.hyp or []
    records = options.read_records(args)
    words = options.words_of_texts(args)
    gold: AlignmentFile | None = None
    if args.gold is None:
        texts = options.texts_of(args)
        hypotheses = options.read_hypotheses(args, [system.path for system in systems], texts)
        size = records.size if records is not None else Size(args.source, len(words or ()), "lines")
    else:
        texts, gold, hypotheses = options.read_systems(args, systems)
        if records is not None:
            gold.fit(records.size)
        size = gold.size
    for read in hypotheses:
        read.fit(size)
    length = size.sentences
    if gold is not None:
        for read in hypotheses:
            if warning := doubts(read, gold):
                warn_user(warning)
        options.warn_of_few(length)
    names = options.distinct_names(systems)
    kinds: tuple[str, ...] = ()
    fields: dict[str, Value] = {}
    if records is None:
        sentences: Iterable[SentenceMaps] = (
            SentenceMaps(id_, SentenceSide.of_words(source), SentenceSide.of_words(target), layers=())
            for id_, (source, target) in enumerate(words or ())
        )
        title = f"Word alignments compared: {', '.join(names)}"
    else:
        kinds, sentences = tuple(args.kinds or records.info.kinds), records.best()
        title = f"Attention maps and word alignments: {visible(Path(args.records).resolve().name)}"
        fields["records"] = records.info.signature_hash
    report = build(
        progress_bar(sentences, length, "sentences"),
        length if gold is None else list(gold),
        kinds=kinds,
        rule=args.rule or DEFAULTS.map_rule,
        systems=[(name, list(read.each_links())) for name, read in zip(names, hypotheses)],
        texts=texts,
        words=words,
        max_sentences=args.max_sentences,
        opened=None if records is None or gold is not None else _telling_map(records),
    )
    warn_skipped(report.skipped, length, "they have no maps" if gold is None else "each counts as an empty hypothesis")
    if gold is not None:
        fields |= options.reading_fields("gold", gold)
    if (method := report.method) is not None:
        fields |= {"kinds": ",".join(kinds), "settings": ",".join(SETTINGS), "rule": method.rule, "null": method.null}
    if gold is not None:
        fields |= options.resampling_fields(report.resampling, interval="bootstrap-percentile")
    for number, read in enumerate(hypotheses, 1):
        fields |= {f"{name}_{number}": value for name, value in options.reading_fields("hyp", read).items()}
    signed = signature(**fields)
    provenance = {} if records is None else dict(records.info.signature)
    html = render(report, title if args.title is None else args.title, signed, provenance)
    write_lines(args.output, [html])
    if (bytes_ := len(html.encode())) > LARGE:
        fitting = max(1, int(len(report.shown) * LARGE / bytes_))
        warn_user(f"{args.output}: {bytes_ / 1e6:.0f} MB; --max-sentences {fitting} makes a page of about 20 MB")
    say(signed)


def _telling_map(records: Records) -> MapName:
    """The first map that the profile of a run reads; without a profile, that one of its first sentences would read."""
    if records.info.profile is not None:
        maps = parse_profile(records.info.profile, str(records.directory)).maps
    else:
        first = islice((sentence for sentence in records.best() if sentence.ok), DEFAULTS.profile_pairs)
        maps = fit_profile([*first] if DEFAULTS.kind in records.info.kinds else (), records.info.layers, "").maps
    name = maps.heads[0]
    return replace(name, setting=name.setting or maps.setting)


STEPS = 16
#: Bits of a scale after the first one: few, so that they compress.
_SCALE_BITS = 3
#: What a stored value is off by at most, as a share of the largest value of its row.
ERROR = (1 + 2**-_SCALE_BITS) / (2 * STEPS)
_RESAMPLING = Resampling()


@dataclass(frozen=True, eq=False)
class LinkScore:
    """The score of the links of a map or of a file, over the whole corpus; sentences without maps have no links.

    ``number`` counts all maps and then all files.  ``interval`` is of AER (95 %, bootstrap over sentences).  ``kind``
    and the following are a map's.
    """

    number: int
    name: str
    score: Score
    interval: Interval
    kind: str = ""
    setting: str = ""
    layer: int = 0
    head: int | None = None


@dataclass(frozen=True)
class Report:
    """The content of a page."""

    maps: tuple[LinkScore, ...]  #: by kind, setting, layer and head, the whole layer last, as in a sweep
    systems: tuple[LinkScore, ...]  #: the alignments of files
    scored: bool  #: whether there is a gold; without it scores say nothing
    method: ExtractionOptions | None  #: how links were made of maps; its map is the first one
    sentences: int  #: of the corpus
    skipped: Mapping[int, str]  #: why sentences cannot be aligned (id -> status)
    shown: Sequence[int]  #: the ids of the sentences in the page
    blocks: Mapping[str, str]  #: packed data by name (see above)
    tables: Mapping[str, Table]  #: ``scores``, AER by ``classes`` of words; those there are
    resampling: Resampling


def build(
    sentences: Iterable[SentenceMaps],
    gold: Sequence[GoldSentence] | int,
    *,
    kinds: Sequence[str] = DEFAULT_KINDS,
    rule: str = DEFAULTS.map_rule,
    systems: Sequence[tuple[str, Sequence[Links]]] = (),
    texts: Texts | None = None,
    words: Sequence[PairWords] | None = None,
    max_sentences: int | None = None,
    opened: MapName | None = None,
    resampling: Resampling = _RESAMPLING,
) -> Report:
    """Score all maps of ``sentences`` and all ``systems``, and keep what the page shows.

    ``sentences`` come in any order; id k belongs to ``gold[k]``.  Without a gold ``gold`` is their number.  If there
    are ``texts``, their lengths are checked.  Without ``words`` there are no classes of words.  Scores cover all
    sentences, also where the page shows at most ``max_sentences``, evenly spaced, with the first and the last.

    The page opens the map with the lowest AER; without a gold the map ``opened``, of norms where they are recorded.
    """
    scored = not isinstance(gold, int)
    truth = [GoldSentence(frozenset())] * gold if isinstance(gold, int) else gold
    options = [ExtractionOptions(kind, MapNames("0"), "mean", s, rule) for kind in kinds for s in SETTINGS]
    shown = np.rint(np.linspace(0, len(truth) - 1, min(len(truth), max_sentences or len(truth)))).astype(int).tolist()
    layers: tuple[int, ...] = ()
    heads: dict[str, int] = {}
    hits: dict[int, NDArray[np.int64]] = {}  # by sentence: |A|, |A∩S| and |A∩P| of each map
    entries: dict[int, dict[str, Any]] = {}
    blocks: dict[int, str] = {}
    skipped: dict[int, str] = {}
    for sentence, matrix in with_gold(sentences, truth, texts):
        if matrix is None:
            skipped[sentence.id] = sentence.status
            entries[sentence.id] = _entry(sentence, truth[sentence.id], [frozenset()] * len(systems))
            continue
        if not layers:  # they are the same for all sentences of a run
            layers = sentence.layers
            heads = {kind: sentence.head_maps(kind).shape[1] for kind in kinds}
        size = sentence.source.word_count, sentence.target.word_count
        linked = [of_kind.reshape(math.prod(of_kind.shape[:2]), *size) for of_kind in linked_maps(sentence, options)]
        links = np.concatenate([np.zeros((0, *size), dtype=np.bool_), *linked])  # [maps, source words, target words]
        beside = [aligned[sentence.id] for _, aligned in systems]
        for (name, _), chosen in zip(systems, beside):
            check_links(chosen, sentence, f"{name}:{sentence.id + 1}")
        if kinds:
            hits[sentence.id] = matrix.hits(links)
        if sentence.id in shown:
            entries[sentence.id] = _entry(sentence, truth[sentence.id], beside)
            if kinds:
                blocks[sentence.id] = pack(encode_sentence(sentence, kinds, links))
    places = [
        (option.kind, option.setting, layer, head)
        for option in options
        for layer in layers
        for head in (*range(heads[option.kind]), None)
    ]
    names = [
        f"{kind}, {setting.upper()}, {layer_label(layer)}, {'whole layer' if head is None else f'head {head}'}"
        for kind, setting, layer, head in places
    ]
    names += [name for name, _ in systems]
    nothing = np.zeros((len(places), 3), dtype=np.int64)
    found = np.stack([hits.get(id_, nothing) for id_ in range(len(truth))], axis=-1)  # [maps, 3, sentences]
    sure = np.array([len(sentence.sure) for sentence in truth])
    counted = [Counts(own[0], sure, own[1], own[2]) for own in found] + [count(own, truth) for _, own in systems]
    counts = Counts(*np.stack(counted, axis=1))  # [maps + systems, sentences]
    drawn = confidence_each(np.stack(counts), resampling)
    intervals = (cast(Interval, sampled["aer"]) for sampled in drawn)  # AER is always defined
    scores = zip(range(len(names)), names, map(Score.of, counted), intervals)
    maps = tuple(LinkScore(*score, *place) for place, score in zip(places, scores))
    files = tuple(LinkScore(*score) for score in scores)
    planes = np.cumsum([0, *(len(layers) * (number + 1) for number in heads.values())]).tolist()
    index = {
        "gold": scored,
        "layers": [layer_label(layer) for layer in layers],
        "kinds": {kind: {"heads": heads[kind], "plane": plane} for kind, plane in zip(heads, planes)},
        "settings": SETTINGS,
        "steps": STEPS,
        "maps": [  # the layer is its place among the layers
            {"name": m.name, "kind": m.kind, "setting": m.setting, "layer": layers.index(m.layer), "head": m.head}
            for m in maps
        ],
        "best": _first(maps, scored, opened),
        "systems": [name for name, _ in systems],
        "sentences": [entries[id_] for id_ in shown],
    }
    packed = {
        "index": pack(json.dumps(index, ensure_ascii=False, allow_nan=False).encode()),
        "aers": pack(np.rint(aer(counts)[:, shown] * 10_000).astype("<u2").tobytes()),
        **{f"s{place}": blocks[id_] for place, id_ in enumerate(shown) if id_ in blocks},
    }
    tables = _tables(files, truth, words, [aligned for _, aligned in systems], resampling) if scored else ()
    return Report(
        maps=maps,
        systems=files,
        scored=scored,
        method=options[0] if options else None,
        sentences=len(truth),
        skipped=skipped,
        shown=shown,
        blocks=packed,
        tables=dict(tables),
        resampling=resampling,
    )


def _first(maps: Sequence[LinkScore], scored: bool, opened: MapName | None) -> int | None:
    """The number of the map that the page opens."""
    if scored or not opened:
        return min(maps, key=attrgetter("score.aer")).number if maps else None
    named = [m for m in maps if (m.layer, m.head, m.setting) == (opened.layer, opened.head, opened.setting)]
    return max(named or maps, key=lambda m: m.kind == DEFAULTS.kind).number


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
    pairs = compare_all([score.per_sentence for score in scores], resampling) if len(systems) > 1 else {}
    yield (
        "scores",
        score_table("Alignments against the gold", names, scores, [system.interval for system in systems], pairs),
    )
    if words is not None:
        source, target = zip(*words)
        yield "classes", _class_table(names, [error_table(own, gold, source, target) for own in links])


def _class_table(names: Sequence[str], errors: Sequence[Rows]) -> Table:
    """AER of systems by class of word; ``errors`` has the :func:`error_table` of each."""
    heads = ("property", "class", "side", "words", *(f"{name}: AER %" for name in names))
    rows, best = list[tuple[str, ...]](), set[tuple[int, int]]()
    for systems in zip(*errors):
        row, aers = systems[0], [of_system["aer"] for of_system in systems]
        if row["null_gold"] == 1:  # any link of such words is wrong: their AER is 100 %
            continue
        best |= {(len(rows), 4 + k) for k, value in enumerate(aers) if value == min(aers) < max(aers)}
        rows.append((TITLES[row["by"]], row["class"], row["side"], str(row["words"]), *map(percent, aers)))
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
