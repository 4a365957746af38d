"""Aligns sentence pairs: by which maps, in batches of similar length, by one direction or both; and the signature."""

from __future__ import annotations

import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from alignment_eval.alignment import Alignment, Alignments, align_pairs, join_sentences
from alignment_eval.errors import InputError, UsageError, progress_meter, say, warn_on_stderr
from alignment_eval.extraction.extract import WordMap, WordMaps, read_word_map
from alignment_eval.extraction.lexical_table import FEW_WORDS, MANY_UNKNOWN, LexicalTable, count_lexical_table
from alignment_eval.extraction.method import AlignmentMethod, MapName
from alignment_eval.extraction.pair_scores import PairScores
from alignment_eval.extraction.rules import rule_of
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import SentenceMaps, words_of
from alignment_eval.profiles.chosen import AlignmentOptions, ChosenMethod, choose_method
from alignment_eval.profiles.profile import Profile, find_profile
from alignment_eval.reading import content_hash, json_hash
from alignment_eval.signature import Value, signature
from fairseq_norm_plugin.environment import executors, versions
from fairseq_norm_plugin.model.direction import Direction, length_batches, usable_pairs
from fairseq_norm_plugin.model.text_check import FEWEST, check_parallel, sampled
from fairseq_norm_plugin.text.tokenise import (
    Line,
    SentencePair,
    TextPipeline,
    linked_copies,
    splitter_name,
    with_copies,
)
from fairseq_norm_plugin.text.tokens import UnknownTokens

#: A :class:`~fairseq_norm_plugin.model.norm_model.NormModel`, whose module imports this one.
Model = Any
#: The words of each line of one side, if they are given.
GivenWords = Iterable[Sequence[str]] | None
#: Takes the number of pairs that were read since its last call.
Progress = Callable[[int], object]
#: Names of the sides in counts of subwords: of the first direction, and of the other.
_SIDES = ("source", "target", "reverse source", "reverse target")
#: The kind whose rows say how much of a prediction comes from the source (Ferrando et al. 2022b).
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


def choose(
    options: AlignmentOptions, models: Sequence[Model], text: Iterable[SentencePair] = (), pairs: int | None = None
) -> ChosenMethod:
    """How to align: by the maps that ``options`` name, else by the models' profiles, else by a choice on the ``text``.

    ``pairs`` is how many sentence pairs are aligned together; None: unknown, or one by one.
    """
    usable: list[SentencePair] | None = None
    profiles: list[Profile] = []
    named = None if options.profile is None else str(options.profile)
    for model in models if options.heads is None else ():
        direction, reverse = model.direction, bool(profiles)
        profile = find_profile(model.identity, named, direction.profile, reverse)
        if profile is None:
            usable = usable_pairs(text, [model.direction for model in models]) if usable is None else usable
            own = [pair.exchanged for pair in usable] if reverse else usable
            fitted = direction.fit_profile(own, model.identity, options.max_tokens)
            where = "none, chosen on the text itself" if fitted.formed else "none"
            profile = replace(fitted, name="the maps it was trained with" if direction.guided else where, of_text=True)
        profiles.append(profile)
    return choose_method(options, len(models), profiles, pairs)


@dataclass
class _OpenPair:
    """A pair while its sentences are aligned: by the number of each, the lengths of its sides and its alignment."""

    id: int
    copies: tuple[set[int], set[int], set[Link]] | None
    tokens: dict[int, list[int]] = field(default_factory=dict)
    alignments: dict[int, Alignment | None] = field(default_factory=dict)


class Aligner:
    """Aligns sentence pairs with the models of one direction or of both.

    Args:
        table: a lexical table of another text; None: ``method`` counts one, or uses none.
        check_table: check that ``table`` matches the first pairs; not if they are not the first of the text.
        contribution: with the contribution of the source, for which the maps of all layers are computed.
        kept: alignments of pairs of lower numbers keep their word maps.

    Attributes:
        counted_pairs: how many pairs, from the first on, a lexical table is counted on; 0: none is counted.
        unknown: the subwords so far that the models do not know.
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
        self.directions, self._method = directions, method
        self.counted_pairs = method.table_pairs
        self._table, self._check_table = table, check_table
        self._scores, self._contribution, self._kept = scores, contribution, kept
        self._on_cpu = all(direction.device.type == "cpu" for direction in directions)
        self._max_tokens = min(max_tokens, _CPU_TOKENS) if self._on_cpu else max_tokens
        self.unknown = UnknownTokens()
        self._link_counts: Counter[str] = (
            Counter()
        )  # of long pairs: all, those of one link at most, those of every link
        self._uneven = 0  # pairs that are aligned whole since their lines have different numbers of sentences
        self._numbers = itertools.count(-1, -1)
        self._open_pairs: dict[int, _OpenPair] = {}
        self._words = Counter[str]()  # of all pairs: all, those that the table does not know

    def align(
        self, windows: Iterable[Iterable[tuple[int, SentencePair]]], progress: Progress = lambda _: None
    ) -> Iterator[Alignment]:
        """Align numbered pairs, window by window; within a window, which is sorted by length, batch by batch.

        Pairs that cannot be aligned (empty or too long) come first, with the reason as status.  Lines that are cut
        into sentences are aligned sentence by sentence.  If a lexical table is counted, a window must end with the last
        of the :attr:`counted_pairs`, and ``progress`` is called long before the first alignment is yielded.
        """
        sentences = (maps for window in windows for maps in self._word_maps(self._cut(window)))
        maps = (self._count_tokens(maps, progress) for maps in sentences)
        for sentence in align_pairs(maps, self._method, self._table, check=self._check_table):
            pair = self._open_pairs.pop(sentence.id)
            pair.alignments[sentence.id] = sentence
            if None not in pair.alignments.values():
                tokens = [pair.tokens[number] for number in pair.alignments]
                yield self._finished(
                    join_sentences(list(filter(None, pair.alignments.values())), pair.id, tokens), pair
                )

    def count(self, pairs: Iterable[SentencePair], progress: Progress) -> LexicalTable:
        """Count the lexical table of sentence pairs, of the maps of one direction; progress as for :meth:`align`."""
        numbered, maps = enumerate(pairs), []
        while window := list(itertools.islice(numbered, WINDOW)):
            for word_map, _ in self._word_maps(window):
                progress(1)
                if word_map.scores is not None:
                    maps.append((words_of(word_map.sentence), word_map.shares[:, :-1].astype(np.float32)))
        return count_lexical_table(maps, rule_of(self._method.forward.rule).shares)[0]

    def _cut(self, pairs: Iterable[tuple[int, SentencePair]]) -> Iterator[tuple[int, SentencePair]]:
        """The sentences of pairs: the first has the number of its pair, those after it have negative ones."""
        for id_, pair in pairs:
            open_pair = _OpenPair(id_, linked_copies(pair) if pair.source.copies else None)
            self._uneven += len({len(line.sentences) for line in pair if line}) > 1
            sentences = {next(self._numbers) if k else id_: each for k, each in enumerate(pair.sentences)}
            open_pair.alignments = dict.fromkeys(sentences)
            self._open_pairs |= dict.fromkeys(sentences, open_pair)
            yield from sentences.items()

    def _count_tokens(self, maps: WordMaps, progress: Progress) -> WordMaps:
        """Count the tokens of the sentence that ``maps`` are of; the first sentence of a pair is progress."""
        number = maps[0].sentence.id
        tokens = [len(word_map.sentence.target.tokens) for word_map in maps if word_map is not None]
        self._open_pairs[number].tokens[number] = tokens
        if self._table is not None and not self.counted_pairs:
            words = words_of(maps[0].sentence)
            self._words["all"] += len(words[0]) + len(words[1])
            self._words["unknown"] += self._table.unknown(words)
        progress(int(number >= 0))
        return maps

    def _finished(self, alignment: Alignment, pair: _OpenPair) -> Alignment:
        """Count the links; gives them with copies linked to each other only, and with scores: unknown without maps."""
        if pair.copies is not None and alignment.ok:
            sources, targets, links = pair.copies
            kept = {link for link in alignment.links if link[0] not in sources and link[1] not in targets}
            confidences = {}
            if alignment.confidences:
                confidences = {**{link: alignment.confidences[link] for link in kept}, **dict.fromkeys(links, 1.0)}
            alignment = replace(alignment, links=sorted(kept | links), confidences=confidences)
        sizes = len(alignment.source_spans), len(alignment.target_spans)
        if alignment.ok and min(sizes) >= _LONG:
            self._link_counts["pairs"] += 1
            self._link_counts["none"] += len(alignment.links) <= 1  # one may be of the final punctuation
            self._link_counts["all"] += len(alignment.links) == sizes[0] * sizes[1]
        return replace(alignment, scores=PairScores()) if self._scores and alignment.scores is None else alignment

    def _word_maps(self, pairs: Iterable[tuple[int, SentencePair]]) -> Iterator[WordMaps]:
        """The word maps of each pair of a window, in one direction or in both.

        While the maps of one batch are read, links are made of the batch before it.
        """
        encoded: dict[int, list[SentencePair]] = {}
        for id_, pair in pairs:
            both = [direction.encode(side) for direction, side in zip(self.directions, (pair, pair.exchanged))]
            refusals = (direction.refusal(encoded) for direction, encoded in zip(self.directions, both))
            if reason := next(filter(None, refusals), ""):
                source, target = (line.side for line in both[0])
                yield WordMap(SentenceMaps(id_, source, target, (), status=reason), None), None
                continue
            encoded[id_] = both
            for name, line in zip(_SIDES, itertools.chain.from_iterable(both)):
                self.unknown.add(name, len(line.ids) - 1, line.unknown)
        waiting: deque[list[Future[dict[int, WordMap]]]] = deque()
        batches = length_batches(
            encoded, self._max_tokens, lambda both: [length for pair in both for length in pair.lengths]
        )
        with executors(len(self.directions), self._on_cpu) as threads:
            for batch in batches:
                waiting.append([thread.submit(self._read_batch, which, batch) for which, thread in enumerate(threads)])
                if len(waiting) > _AHEAD:
                    yield from _both(waiting.popleft())
            for futures in waiting:
                yield from _both(futures)

    def _read_batch(self, which: int, pairs: Mapping[int, list[SentencePair]]) -> dict[int, WordMap]:
        options, direction = self._options[which], self.directions[which]
        kinds, names = [options.kind], list(options.heads)
        contributes = self._contribution and which == 0
        if contributes:
            kinds, names = [*kinds, _ALTI], [*names, MapName(direction.layers - 1)]
        maps = direction.maps({id_: both[which] for id_, both in pairs.items()}, kinds, names, self._scores)
        read = {id_: read_word_map(sentence, options, 0 <= id_ < self._kept) for id_, sentence in maps.items()}
        for id_ in read if contributes else ():
            shares = maps[id_].layer_maps(_ALTI)[-1].sum(axis=-1, dtype=np.float64)  # of the source, for each token
            read[id_] = replace(read[id_], contribution=float(shares.mean()))
        return read

    def warnings(self) -> Iterator[str]:
        """Warnings about the pairs so far: lines of unlike sentences, and maps of which no links come."""
        if self._uneven:
            yield f"pairs of which source and target have different numbers of sentences: {self._uneven}, aligned whole"
        total, unknown = self._words["all"], self._words["unknown"]
        if total >= FEW_WORDS and unknown > MANY_UNKNOWN * total:
            yield (
                f"{unknown} of {total} words ({unknown / total:.0%}) are not in the lexical table: --table text "
                f"(table='text') adds what this text says about them"
            )
        total, none, every = (self._link_counts[name] for name in ("pairs", "none", "all"))
        if total >= _FEWEST and none + every > total / 2:
            yield (
                f"{none} of {total} sentence pairs of {_LONG} or more words have one link or none, and in {every} each "
                f"word is linked to all: the maps show no alignment; check that the model is trained, or name other "
                f"maps and another rule"
            )


def aligner_of(
    options: AlignmentOptions,
    models: Sequence[Model],
    text: Iterable[SentencePair] = (),
    pairs: int | None = None,
    kept: int = 0,
) -> tuple[Aligner, ChosenMethod]:
    """The aligner of a method that is chosen (:func:`choose`), and the choice."""
    chosen = choose(options, models, text, pairs)
    aligner = Aligner(
        chosen.method,
        [model.direction for model in models],
        options.max_tokens,
        chosen.table,
        check_table=chosen.given and pairs is not None,
        scores=options.scores or options.source_contribution,
        contribution=options.source_contribution,
        kept=kept,
    )
    return aligner, chosen


def _both(read: Sequence[Future[dict[int, WordMap]]]) -> Iterator[WordMaps]:
    """The word maps of the pairs of a batch, when all its directions are read."""
    forward, *reverse = [direction.result() for direction in read]
    return ((word_map, reverse[0][id_] if reverse else None) for id_, word_map in forward.items())


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
    models: Sequence[Model],
    sources: Sequence[str],
    targets: Sequence[str | Sequence[str]],
    options: AlignmentOptions,
    words: tuple[GivenWords, GivenWords] = (None, None),
    strings: re.Pattern[str] | None = None,
    quiet: bool = False,
) -> Alignments:
    """Align two lists of lines, in their order, with the models of one direction, or of both.

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
    pipelines = models[0].pipelines(options.split_sentences)
    given = [None if side is None else [list(line) for line in side] for side in words]
    pairs = list(map(SentencePair, *map(_read_lines, pipelines, (sources, targets), given, ("source", "target"))))
    if strings is not None and all(pipeline.reads_raw for pipeline in pipelines):
        pairs = [with_copies(pair, strings) for pair in pairs]
    if not quiet and len(pairs) >= FEWEST:
        check_parallel(sampled(pairs, len(pairs)), [model.direction for model in models], options.force)
    aligner, chosen = aligner_of(options, models, pairs, len(pairs), KEPT)
    if not quiet and chosen.reason and chosen.reason not in models[0].said:
        models[0].said.add(chosen.reason)
        say(f"align: {chosen.reason}")
    size = aligner.counted_pairs or WINDOW
    windows = (enumerate(pairs[start : start + size], start) for start in range(0, len(pairs), size))
    quietly = nullcontext(lambda _: None)
    with quietly if quiet or len(pairs) == 1 else progress_meter(len(pairs), "pairs") as progress:
        aligned = sorted(aligner.align(windows, progress), key=lambda alignment: alignment.id)
    warnings = [] if quiet else [*aligner.warnings()]
    if not quiet and len(pairs) > 1:
        warnings += [*_left_out(aligned), aligner.unknown.warning() or ""]
    for warning in filter(None, warnings):
        warn_on_stderr(warning)
    texts = [_lines_hash(map("".join, side)) for side in (sources, targets)]
    fields = {**chosen.fields, **({"split": splitter_name()} if options.split_sentences else {})}
    texts += [_lines_hash(map(" ".join, side)) for side in given if side is not None]
    return Alignments(aligned, signed(models, texts, len(pairs), fields))


def _read_lines(
    pipeline: TextPipeline, side: Sequence[str | Sequence[str]], given: GivenWords, name: str
) -> Iterator[Line]:
    """The lines of a side, called ``name`` in messages, with their words if they are ``given``."""
    words: list[Sequence[str] | None] = [None] * len(side) if given is None else list(given)
    if len(words) != len(side):
        raise InputError(f"{name}_words: words of {len(words)} sentences, but {len(side)} pairs: expected as many")
    for number, (line, own) in enumerate(zip(side, words)):
        try:
            yield pipeline.read(line, own)
        except InputError as error:
            raise InputError(f"{name}[{number}]: {error}") from error


def _left_out(alignments: Sequence[Alignment]) -> Iterator[str]:
    """Warnings about pairs that were not aligned."""
    left_out = [alignment for alignment in alignments if not alignment.ok]
    for reason, count in Counter(alignment.status for alignment in left_out).items():
        first = next(alignment.id for alignment in left_out if alignment.status == reason)
        yield f"sentence pairs that are {reason}: {count}, without links (the first is number {first}, from 0)"


def signed(models: Sequence[Model], texts: Iterable[str], sentences: int, fields: Mapping[str, Value]) -> str:
    """The signature of alignments, which begins with ``run:HASH``, the hash of all its other fields.

    Of the other direction's model, what differs is shown.  ``texts`` are hashes.
    """
    found, (forward, *others) = versions(), [model.facts for model in models]
    facts: dict[str, Value] = {"sentences": sentences, **fields, **forward}
    for other in others:
        facts |= {f"reverse_{name}": value for name, value in other.items() if value != forward.get(name)}
    facts |= {"text": ",".join(texts), "torch": found["torch"], "fairseq": found["fairseq"]}
    return signature(run=json_hash({**facts, "version": found["version"]}), **facts)


def _lines_hash(lines: Iterable[str]) -> str:
    """The hash of a file with these lines."""
    return content_hash(f"{line}\n".encode() for line in lines)
