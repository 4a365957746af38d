"""Aligns sentence pairs: by which maps and which rule; lines that are cut into sentences; lists; and the signature."""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from alignment_eval.align_pairs import align_pairs, join_sentences
from alignment_eval.alignment import Alignment, Alignments
from alignment_eval.errors import InputError, progress_meter, warn_user
from alignment_eval.extraction.extract import WordMaps, combined_map
from alignment_eval.extraction.lexical_table import FEW_WORDS, MANY_UNKNOWN, LexicalTable, count_lexical_table
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.pair_scores import PairScores
from alignment_eval.links.symmetrize import METHODS
from alignment_eval.maps.sentence import words_of
from alignment_eval.profiles.chosen import AlignmentOptions, ChosenMethod, choose_method
from alignment_eval.profiles.profile import Profile, find_profile
from alignment_eval.reading import content_hash, json_hash
from alignment_eval.signature import Value, signature
from fairseq_norm_plugin.environment import versions
from fairseq_norm_plugin.model.direction import Direction, Encoded, usable_pairs
from fairseq_norm_plugin.model.reader import MapReader
from fairseq_norm_plugin.model.text_check import FEWEST, check_parallel, sample_lines
from fairseq_norm_plugin.text.pair import Line, SentencePair, linked_copies, with_copies
from fairseq_norm_plugin.text.tokenise import TextPipeline, splitter_name

logger = logging.getLogger(__name__)
#: A :class:`~fairseq_norm_plugin.model.norm_model.NormModel`, whose module imports this one.
Model = Any
#: Pairs with the numbers of their lines.
Numbered = Iterable[tuple[int, SentencePair]]
#: The words of each line of one side, if they are given.
GivenWords = Iterable[Sequence[str]] | None
#: Takes the number of pairs that were read since its last call.
Progress = Callable[[int], object]
#: The fewest words on both sides of pairs that are checked for links of none or all of them, and the fewest pairs.
_LONG, _FEWEST = 3, 10
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
    usable: list[Encoded] | None = None
    profiles: list[Profile] = []
    for model in models if options.heads is None else ():
        direction, reverse = model.direction, bool(profiles)
        profile = find_profile(options.profile, direction.profile)
        if profile is not None:
            profile = profile.of(model.identity, reverse and options.profile is not None)
        else:
            usable = usable_pairs(text, [model.direction for model in models]) if usable is None else usable
            own = [read[reverse] for read in usable]
            fitted = direction.fit_profile(own, model.identity, options.max_tokens)
            where = "none, chosen on the text itself" if fitted.formed else "none"
            profile = replace(fitted, name="the maps it was trained with" if direction.guided else where, of_text=True)
        profiles.append(profile)
    return choose_method(options, len(models), profiles, pairs)


class Aligner:
    """Aligns sentence pairs with the models of one direction or of both, by a chosen method.

    Args:
        check_table: check that a given lexical table matches the first pairs; not if they are not those of the text.
        kept: alignments of pairs of lower numbers keep their word maps.

    Attributes:
        chosen: how pairs are aligned.
        reader: reads their word maps.
        counted_pairs: how many pairs, from the first on, a lexical table is counted on; 0: none is counted.
    """

    def __init__(
        self,
        chosen: ChosenMethod,
        directions: Sequence[Direction],
        options: AlignmentOptions,
        check_table: bool = True,
        kept: int = 0,
    ) -> None:
        self.chosen, self.directions = chosen, directions
        self._scores = options.scores or options.source_contribution
        self.reader = MapReader(
            chosen.method, directions, options.max_tokens, self._scores, options.source_contribution, kept
        )
        self.counted_pairs = chosen.method.table_pairs
        self._link = partial(align_pairs, method=chosen.method, table=chosen.table, check=chosen.given and check_table)
        #: Of long pairs: all, those of one link at most, those of every link.
        self._link_counts: Counter[str] = Counter()
        self._uneven = 0  # pairs that are aligned whole since their lines have different numbers of sentences
        self._words = Counter[str]()  # of all pairs: all, those that the table does not know

    def align(self, windows: Iterable[Numbered], progress: Progress = lambda _: None) -> Iterator[Alignment]:
        """Align numbered pairs, window by window; within a window, which is sorted by length, batch by batch.

        Lines that are cut into sentences are aligned sentence by sentence.  If a lexical table is counted, a window
        must end with the last of the :attr:`counted_pairs`, and ``progress`` is called long before the first alignment
        is yielded.
        """
        for pair, alignment in _align_lines(windows, self._read, self._link, progress):
            yield self._finished(alignment, pair)

    def _read(self, pairs: Numbered) -> Iterator[tuple[int, WordMaps]]:
        """The word maps of pairs; counts the words that a given table does not know."""
        for place, maps in self.reader.read(pairs):
            if self.chosen.table is not None and not self.counted_pairs:
                words = words_of(maps[0].sentence)
                self._words["all"] += len(words[0]) + len(words[1])
                self._words["unknown"] += self.chosen.table.unknown(words)
            yield place, maps

    def _finished(self, alignment: Alignment, pair: SentencePair) -> Alignment:
        """Count the links; gives them with copies linked to each other only, and with scores: unknown without maps."""
        self._uneven += len({len(line.sentences) for line in pair if line}) > 1
        if pair.source.copies and alignment.ok:
            sources, targets, links = linked_copies(pair)
            kept = {link for link in alignment.links if link[0] not in sources and link[1] not in targets}
            method = self.chosen.method
            given = (alignment.confidences, method.join not in METHODS), (alignment.weights, method.sharpened)
            sure, weights = (
                {**{link: own[link] for link in kept}, **dict.fromkeys(links, 1.0)} if has_own else {}
                for own, has_own in given
            )
            alignment = replace(alignment, links=sorted(kept | links), confidences=sure, weights=weights)
        sizes = len(alignment.source_spans), len(alignment.target_spans)
        if alignment.ok and min(sizes) >= _LONG:
            self._link_counts["pairs"] += 1
            self._link_counts["none"] += len(alignment.links) <= 1  # one may be of the final punctuation
            self._link_counts["all"] += len(alignment.links) == sizes[0] * sizes[1]
        return replace(alignment, scores=PairScores()) if self._scores and alignment.scores is None else alignment

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


@dataclass
class _Cut:
    """A line, and for each of its sentences the alignment and the lengths of its sides, once it has them."""

    id: int
    pair: SentencePair
    alignments: list[Alignment | None]
    tokens: list[Sequence[int]]


def _align_lines(
    windows: Iterable[Numbered],
    read: Callable[[Numbered], Iterator[tuple[int, WordMaps]]],
    link: Callable[[Iterator[WordMaps | None]], Iterator[Alignment]],
    progress: Progress,
) -> Iterator[tuple[SentencePair, Alignment]]:
    """Align the lines of each window, sentence by sentence where they are cut, in the order in which they are done.

    Args:
        windows: the lines that are read together.
        read: gives the word maps of pairs, and the place of each (MapReader.read).
        link: aligns them, in their order.
        progress: takes 1 for each line, when its first sentence is read.
    """
    arrived: deque[tuple[_Cut, int]] = deque()
    read_so_far: list[tuple[_Cut, int]] = []

    def sentences(window: Numbered) -> Numbered:
        read_so_far.clear()
        for id_, pair in window:  # each is encoded before the next is read: tokenizers know their last lines
            cut = _Cut(id_, pair, [None] * len(pair.sentences), [()] * len(pair.sentences))
            for place, sentence in enumerate(pair.sentences):
                read_so_far.append((cut, place))
                yield id_, sentence

    def word_maps() -> Iterator[WordMaps | None]:
        for window in windows:
            for number, maps in read(sentences(window)):
                cut, place = read_so_far[number]
                cut.tokens[place] = [len(one.sentence.target.tokens) for one in maps if one is not None]
                progress(int(place == 0))
                arrived.append((cut, place))
                yield maps
            yield None  # all of a window is aligned before the next is read

    for alignment in link(word_maps()):
        cut, place = arrived.popleft()
        cut.alignments[place] = alignment
        if all(cut.alignments):
            yield cut.pair, join_sentences(list(filter(None, cut.alignments)), cut.id, cut.tokens)


def aligner_of(
    options: AlignmentOptions,
    models: Sequence[Model],
    text: Iterable[SentencePair] = (),
    pairs: int | None = None,
    kept: int = 0,
) -> Aligner:
    """The aligner of a method that is chosen (:func:`choose`)."""
    chosen = choose(options, models, text, pairs)
    return Aligner(chosen, [model.direction for model in models], options, pairs is not None, kept)


def count_table(
    pairs: Iterable[SentencePair],
    method: AlignmentMethod,
    directions: Sequence[Direction],
    max_tokens: int,
    progress: Progress,
) -> LexicalTable:
    """Count the lexical table of pairs, of the maps of all models; progress as for :meth:`Aligner.align`."""
    reader, numbered, maps = MapReader(method, directions, max_tokens), enumerate(pairs), []
    while window := list(itertools.islice(numbered, WINDOW)):
        for _, of_pair in reader.read(window):
            progress(1)
            combined = combined_map(of_pair, method)
            if combined.scores is not None:
                words, word_map = combined.counted
                maps.append((words, word_map.astype(np.float32)))
    assert method.sharpening is not None
    return count_lexical_table(maps, method.sharpening)[0]


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
                f"{name}[{number}]: character {error.start}, {line[error.start]!r}, is a surrogate: read UTF-8"
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
        raise InputError(f"{len(sources)} sources, but {len(targets)} targets: expected as many")
    pipelines = models[0].pipelines(options.split_sentences)
    given = [None if side is None else [list(line) for line in side] for side in words]
    pairs = list(map(SentencePair, *map(_read_lines, pipelines, (sources, targets), given, ("source", "target"))))
    if strings is not None and all(pipeline.reads_raw for pipeline in pipelines):
        pairs = [with_copies(pair, strings) for pair in pairs]
    if not quiet and len(pairs) >= FEWEST:
        sample = ((number, pairs[number]) for number in sample_lines(len(pairs)))
        check_parallel(sample, [model.direction for model in models], options.force)
    aligner = aligner_of(options, models, pairs, len(pairs), KEPT)
    chosen = aligner.chosen
    if not quiet and chosen.reason:
        logger.info("align: %s", chosen.reason)
    size = aligner.counted_pairs or WINDOW
    windows = (enumerate(pairs[start : start + size], start) for start in range(0, len(pairs), size))
    quietly = nullcontext(lambda _: None)
    with quietly if quiet or len(pairs) == 1 else progress_meter(len(pairs), "pairs") as progress:
        aligned = sorted(aligner.align(windows, progress), key=lambda alignment: alignment.id)
    warnings = [] if quiet else [*aligner.warnings()]
    if not quiet and len(pairs) > 1:
        warnings += [*_left_out(aligned), aligner.reader.unknown.warning() or ""]
    for warning in filter(None, warnings):
        warn_user(warning)
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
    found, (forward, *others) = versions(), [model.signature_fields for model in models]
    facts: dict[str, Value] = {"sentences": sentences, **fields, **forward}
    for other in others:
        facts |= {f"reverse_{name}": value for name, value in other.items() if value != forward.get(name)}
    facts |= {"text": ",".join(texts), "torch": found["torch"], "fairseq": found["fairseq"]}
    return signature(run=json_hash({**facts, "version": found["version"]}), **facts)


def _lines_hash(lines: Iterable[str]) -> str:
    """The hash of a file with these lines."""
    return content_hash(f"{line}\n".encode() for line in lines)
