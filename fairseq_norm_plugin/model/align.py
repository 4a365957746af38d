"""Aligns sentence pairs: batches of similar length, maps of one direction or both, links, and the signature."""

from __future__ import annotations

import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from alignment_eval.alignment import Alignment, Alignments, align_pairs, join_sentences
from alignment_eval.errors import InputError, UsageError, say, warn_on_stderr
from alignment_eval.extraction.extract import WordMap, WordMaps, read_word_map
from alignment_eval.extraction.lexical_table import LexicalTable, count_lexical_table
from alignment_eval.extraction.method import AlignmentMethod, MapName
from alignment_eval.extraction.pair_scores import PairScores
from alignment_eval.extraction.rules import rule_of
from alignment_eval.files import ContentHash, json_hash
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import SentenceMaps, words_of
from alignment_eval.profiles.chosen import AlignmentOptions
from alignment_eval.progress import progress_meter
from alignment_eval.signature import Value, signature
from fairseq_norm_plugin.installed import versions
from fairseq_norm_plugin.model.calibrate import choose
from fairseq_norm_plugin.model.direction import Direction, length_batches
from fairseq_norm_plugin.model.text_check import FEWEST, check_parallel, sampled
from fairseq_norm_plugin.process import executors
from fairseq_norm_plugin.text.tokenise import (
    Line,
    SentencePair,
    TextPipeline,
    linked_copies,
    splitter_name,
    with_copies,
)
from fairseq_norm_plugin.text.tokens import UnknownTokens

#: The words of each line of one side, if they are given.
GivenWords = Iterable[Sequence[str]] | None
#: Names of the sides in counts of subwords: of the first direction, and of the other.
_SIDES = ("source", "target", "reverse source", "reverse target")
#: The kind whose rows say how much of a prediction comes from the source.
_ALTI = "alti_rollout"
#: Tokens of a batch on a CPU: the numbers of larger ones do not stay in its caches.
_CPU_TOKENS = 2000
#: The fewest words on both sides of pairs that are checked for links of none or all of them, and the fewest pairs.
_LONG, _FEWEST = 3, 10
#: Batches that are read, or wait to be, while links are made of another.
_AHEAD = 2
#: Pairs that are sorted by length together.
WINDOW = 10_000
#: The maps of so many pairs, the first of a list, are kept (``Alignment.word_map``): some 50 KB each.
KEPT = 1000


@dataclass
class _Sentences:
    """The sentences of a pair while they are aligned: how many there are, and by place what is known of each."""

    id: int
    count: int
    tokens: dict[int, list[int]] = field(default_factory=dict)
    aligned: dict[int, Alignment] = field(default_factory=dict)


def _ignore(news: int) -> None:
    """Take no notice."""


class Aligner:
    """Aligns sentence pairs with the models of one direction or of both.

    Args:
        method: how links are made from maps.
        directions: the source-target model, and the target-source model if ``method`` reads one.
        max_tokens: tokens of a batch, pads included; on a CPU, batches have 2,000 at most, because these are faster.
        table: the lexical table of all pairs; None: ``method`` counts one, or uses none.
        scores: score the pairs as well (alignment_eval.extraction.pair_scores).
        contribution: with the contribution of the source, for which the maps of all layers are computed.
        check_table: check that ``table`` matches the first pairs; not if they are not the first of the text.
        kept: alignments of pairs of lower numbers keep their word maps.

    Attributes:
        method, directions: as given.
        counted_pairs: how many pairs, from the first on, a lexical table is counted on; 0: none is counted.
        unknown: the subwords so far that the models do not know.
        linked: number of aligned pairs so far of :data:`_LONG` or more words on both sides (``pairs``), and how many of
            them have one link at most (``none``) or all (``all``).
        uneven: pairs so far that are aligned whole since their lines have different numbers of sentences.
    """

    def __init__(
        self,
        method: AlignmentMethod,
        directions: Sequence[Direction],
        max_tokens: int = 4000,
        table: LexicalTable | None = None,
        check_table: bool = True,
        scores: bool = False,
        contribution: bool = False,
        kept: int = 0,
    ) -> None:
        self._options = [method.forward, *([] if method.reverse is None else [method.reverse])]
        if len(directions) != len(self._options):
            raise UsageError(
                f"models of {len(directions)} directions, but the method reads {len(self._options)}: give a model "
                f"(or an ensemble) for each direction that it reads"
            )
        for direction, options in zip(directions, self._options):
            direction.check(options)
        self.method, self.directions = method, directions
        self.counted_pairs = method.table_pairs if table is None else 0
        self._table, self._check_table = table, check_table
        self._scores, self._contribution, self._kept = scores, contribution, kept
        self._on_cpu = all(direction.device.type == "cpu" for direction in directions)
        self._max_tokens = min(max_tokens, _CPU_TOKENS) if self._on_cpu else max_tokens
        self.unknown = UnknownTokens()
        self.linked: Counter[str] = Counter()
        self.uneven = 0
        self._copies: dict[int, tuple[set[int], set[int], set[Link]]] = {}
        self._numbers = itertools.count(-1, -1)
        self._places: dict[int, tuple[_Sentences, int]] = {}

    def align(
        self, windows: Iterable[Iterable[tuple[int, SentencePair]]], progress: Callable[[int], object] = _ignore
    ) -> Iterator[Alignment]:
        """Align the pairs of ``windows``, window by window; within a window in the order of the batches.

        Pairs that cannot be aligned (empty or too long) come first, with the reason as status.  Lines that are cut
        into sentences are aligned sentence by sentence.

        Args:
            windows: pairs with their ids; the pairs of a window are sorted by length.  If a lexical table is counted,
                one window must end with the last of the :attr:`counted_pairs`.
            progress: called with the number of pairs that were read; if a table is counted, that is long before the
                first alignment is yielded.
        """
        sentences = (maps for window in windows for maps in self._word_maps(self._cut(window)))
        maps = (self._seen(pair, progress) for pair in sentences)
        for sentence in align_pairs(maps, self.method, self._table, check=self._check_table):
            whole, place = self._places.pop(sentence.id)
            whole.aligned[place] = sentence
            if len(whole.aligned) == whole.count:
                aligned = [whole.aligned[place] for place in range(whole.count)]
                tokens = [whole.tokens[place] for place in range(whole.count)]
                yield self._noted(join_sentences(aligned, whole.id, tokens))

    def count(self, pairs: Iterable[SentencePair], progress: Callable[[int], object] = _ignore) -> LexicalTable:
        """Count the lexical table of sentence pairs, of the maps of one direction; progress as for :meth:`align`."""
        numbered, maps = enumerate(pairs), []
        while window := list(itertools.islice(numbered, WINDOW)):
            for word_map, _ in self._word_maps(window):
                progress(1)
                if word_map.scores is not None:
                    maps.append((words_of(word_map.sentence), word_map.shares[:, :-1].astype(np.float32)))
        return count_lexical_table(maps, rule_of(self.method.forward.rule).shares)[0]

    def _cut(self, pairs: Iterable[tuple[int, SentencePair]]) -> Iterator[tuple[int, SentencePair]]:
        """The sentences of pairs: the first has the number of its pair, those after it have negative ones."""
        for id_, pair in pairs:
            whole = _Sentences(id_, len(pair.sentences))
            self.uneven += len({len(line.sentences) for line in pair if line}) > 1
            if pair.source.copies:
                self._copies[id_] = linked_copies(pair)
            for place, sentence in enumerate(pair.sentences):
                number = next(self._numbers) if place else id_
                self._places[number] = whole, place
                yield number, sentence

    def _seen(self, maps: WordMaps, progress: Callable[[int], object]) -> WordMaps:
        """Note the tokens of the sentence that ``maps`` are of; the first sentence of a pair is progress."""
        whole, place = self._places[maps[0].sentence.id]
        whole.tokens[place] = [len(way.sentence.target.tokens) for way in maps if way is not None]
        progress(int(place == 0))
        return maps

    def _noted(self, alignment: Alignment) -> Alignment:
        """Count the links; gives them with copies linked, and with scores, which are unknown without maps."""
        if (copies := self._copies.pop(alignment.id, None)) is not None and alignment.ok:
            alignment = _with_linked_copies(alignment, *copies)
        sizes = len(alignment.source_spans), len(alignment.target_spans)
        if alignment.ok and min(sizes) >= _LONG:
            self.linked["pairs"] += 1
            self.linked["none"] += len(alignment.links) <= 1  # one may be of the final punctuation
            self.linked["all"] += len(alignment.links) == sizes[0] * sizes[1]
        return replace(alignment, scores=PairScores()) if self._scores and alignment.scores is None else alignment

    def _word_maps(self, pairs: Iterable[tuple[int, SentencePair]]) -> Iterator[WordMaps]:
        """The word maps of each pair of a window, in one direction or in both, batch by batch."""
        encoded: dict[int, list[SentencePair]] = {}
        for id_, pair in pairs:
            both = [direction.encode(way) for direction, way in zip(self.directions, (pair, pair.exchanged))]
            refusals = [direction.refusal(way) for direction, way in zip(self.directions, both)]
            if reason := next(filter(None, refusals), ""):
                source, target = (line.side for line in both[0])
                yield WordMap(SentenceMaps(id_, source, target, (), status=reason), None), None
                continue
            encoded[id_] = both
            for name, line in zip(_SIDES, itertools.chain.from_iterable(both)):
                self.unknown.add(name, len(line.ids) - 1, line.unknown)
        for read in self._read_batches(length_batches(encoded, self._max_tokens, _lengths)):
            yield from read

    def _read_batches(self, batches: Iterable[Mapping[int, list[SentencePair]]]) -> Iterator[list[WordMaps]]:
        """Read the maps of batches; while one is read, links are made of the one before it."""
        waiting: deque[list[Future[dict[int, WordMap]]]] = deque()
        with executors(len(self.directions), self._on_cpu) as threads:
            for batch in batches:
                waiting.append([thread.submit(self._read_batch, which, batch) for which, thread in enumerate(threads)])
                if len(waiting) > _AHEAD:
                    yield _pairs(waiting.popleft())
            yield from map(_pairs, waiting)

    def _read_batch(self, which: int, pairs: Mapping[int, list[SentencePair]]) -> dict[int, WordMap]:
        options = self._options[which]
        encoded = {id_: both[which] for id_, both in pairs.items()}
        direction = self.directions[which]
        kinds, names = [options.kind], list(options.heads)
        contributes = self._contribution and which == 0
        if contributes:
            kinds, names = [*kinds, _ALTI], [*names, MapName(direction.layers - 1)]
        maps = direction.maps(encoded, kinds, names, self._scores)
        read = {id_: read_word_map(sentence, options, 0 <= id_ < self._kept) for id_, sentence in maps.items()}
        if not contributes:
            return read
        return {id_: replace(one, contribution=_contribution(maps[id_])) for id_, one in read.items()}

    def sentences_warning(self) -> str | None:
        """A warning if pairs so far were not cut into sentences since their lines have different numbers of them."""
        if not self.uneven:
            return None
        return f"pairs of which source and target have different numbers of sentences: {self.uneven}, aligned whole"

    def links_warning(self) -> str | None:
        """A warning if most pairs so far have no links, or all their words linked to all."""
        total, none, every = (self.linked[name] for name in ("pairs", "none", "all"))
        if total < _FEWEST or none + every <= total / 2:
            return None
        return (
            f"{none} of {total} sentence pairs of {_LONG} or more words have one link or none, and in {every} each "
            f"word is linked to all: the maps show no alignment; check that the model is trained, or name other maps "
            f"and another rule"
        )


def _with_linked_copies(alignment: Alignment, sources: set[int], targets: set[int], links: set[Link]) -> Alignment:
    """An alignment in which words of copies are linked to each other only."""
    kept = {link for link in alignment.links if link[0] not in sources and link[1] not in targets}
    confidences = {}
    if alignment.confidences:
        confidences = {**{link: alignment.confidences[link] for link in kept}, **dict.fromkeys(links, 1.0)}
    return replace(alignment, links=sorted(kept | links), confidences=confidences)


def _contribution(sentence: SentenceMaps) -> float:
    """The share of the source in the prediction of a target token, the mean over tokens (Ferrando et al. 2022b)."""
    return float(sentence.layer_maps(_ALTI)[-1].sum(axis=-1, dtype=np.float64).mean())


def _pairs(read: Sequence[Future[dict[int, WordMap]]]) -> list[WordMaps]:
    """The pairs of a batch, when all its directions are read."""
    forward, *reverse = [direction.result() for direction in read]
    return [(word_map, reverse[0][id_] if reverse else None) for id_, word_map in forward.items()]


def _lengths(directions: Sequence[SentencePair]) -> list[int]:
    """The tokens of every side of a pair that is encoded for each direction."""
    return [length for pair in directions for length in pair.lengths]


def text_lines(lines: object, name: str) -> list[str]:
    """The lines of a list, which is called ``name`` in messages."""
    if isinstance(lines, (str, bytes)) or not isinstance(lines, Iterable):
        raise InputError(f"{name}: {lines!r:.40} ({type(lines).__name__}): expected a list of lines")
    given = list(lines)
    for number, line in enumerate(given):
        if not isinstance(line, str):
            raise InputError(f"{name}[{number}]: {line!r:.40}: expected text")
        try:
            line.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{name}[{number}]: character {error.start} is a surrogate, {line[error.start]!r}: expected Unicode "
                f"text; read the text as UTF-8"
            ) from error
    return given


def align_lists(
    models: Sequence[Any],
    sources: Sequence[str],
    targets: Sequence[str | Sequence[str]],
    options: AlignmentOptions,
    words: tuple[GivenWords, GivenWords] = (None, None),
    strings: re.Pattern[str] | None = None,
    quiet: bool = False,
) -> Alignments:
    """Align two lists of lines, in their order, with the :class:`NormModel` of one direction, or of both.

    A target may be given as its sentences.  ``words`` are those of each source and of each target, if they are given.
    Copies of ``strings`` are linked.
    ``quiet``: without progress, and without messages about text and method.
    """
    if not sources:
        raise InputError("source: an empty list: expected at least one sentence")
    if len(sources) != len(targets):
        raise InputError(
            f"{len(sources)} sources, but {len(targets)} targets: expected as many, with the sentences of a pair at "
            f"the same place"
        )
    directions = [model.direction for model in models]
    pipelines = models[0].pipelines(options.split_sentences)
    given = [None if side is None else [list(line) for line in side] for side in words]
    read = map(_lines, pipelines, (sources, targets), given, ("source", "target"))
    pairs = list(map(SentencePair, *read))
    if strings is not None and all(pipeline.reads_raw for pipeline in pipelines):
        pairs = [with_copies(pair, strings) for pair in pairs]
    if not quiet and len(pairs) >= FEWEST:
        check_parallel(sampled(pairs, len(pairs)), directions, options.force)
    chosen = choose(options, directions, [model.identity for model in models], pairs, len(pairs))
    if not quiet and chosen.reason and chosen.reason not in models[0].said:
        models[0].said.add(chosen.reason)
        say(f"align: {chosen.reason}")
    scores = options.scores or options.source_contribution
    aligner = Aligner(
        *(chosen.method, directions, options.max_tokens, chosen.table, chosen.given),
        *(scores, options.source_contribution, KEPT),
    )
    size = aligner.counted_pairs or WINDOW
    windows = (enumerate(pairs[start : start + size], start) for start in range(0, len(pairs), size))
    with nullcontext(_ignore) if quiet or len(pairs) == 1 else progress_meter(len(pairs), "pairs") as progress:
        aligned = sorted(aligner.align(windows, progress), key=lambda alignment: alignment.id)
    warnings = [] if quiet else [aligner.sentences_warning()]
    if not quiet and len(pairs) > 1:
        warnings += [*_left_out(aligned), aligner.unknown.warning(), aligner.links_warning()]
    for warning in filter(None, warnings):
        warn_on_stderr(warning)
    texts = [lines_hash(map("".join, side)) for side in (sources, targets)]
    fields = {**chosen.fields, **({"split": splitter_name()} if options.split_sentences else {})}
    texts += [lines_hash(map(" ".join, side)) for side in given if side is not None]
    return Alignments(aligned, signed([model.facts for model in models], texts, len(pairs), fields))


def _lines(pipeline: TextPipeline, side: Sequence[str | Sequence[str]], given: GivenWords, name: str) -> Iterator[Line]:
    """The lines of a side, called ``name`` in messages, with their words if they are ``given``."""
    words: list[Sequence[str] | None] = [None] * len(side) if given is None else list(given)
    if len(words) != len(side):
        raise InputError(f"{name}_words: words of {len(words)} sentences, but {len(side)} pairs: expected as many")
    for number, (line, own) in enumerate(zip(side, words)):
        try:
            yield pipeline.read(line, own)
        except InputError as error:
            raise InputError(f"{name}[{number}]: {error}") from error


def _left_out(alignments: Collection[Alignment]) -> Iterator[str]:
    """Warnings about pairs that were not aligned."""
    left_out = [alignment for alignment in alignments if not alignment.ok]
    for reason, count in Counter(alignment.status for alignment in left_out).items():
        first = next(alignment.id for alignment in left_out if alignment.status == reason)
        yield f"sentence pairs that are {reason}: {count}, without links (the first is number {first}, from 0)"


def signed(
    models: Sequence[Mapping[str, Value]], texts: Iterable[str], sentences: int, fields: Mapping[str, Value]
) -> str:
    """The signature of alignments, which begins with ``run:HASH``, the hash of all its other fields.

    ``models`` are the facts of both models; of the other direction's, what differs is shown.  ``texts`` are hashes.
    """
    found = versions()
    facts: dict[str, Value] = {"sentences": sentences, **fields, **models[0]}
    for other in models[1:]:
        facts |= {f"reverse_{name}": value for name, value in other.items() if value != models[0].get(name)}
    facts |= {"text": ",".join(texts), "torch": found["torch"], "fairseq": found["fairseq"]}
    return signature(run=json_hash({**facts, "version": found["version"]}), **facts)


def lines_hash(lines: Iterable[str]) -> str:
    """The hash of a file with these lines."""
    content = ContentHash()
    for line in lines:
        content.update(f"{line}\n".encode())
    return content.short
