"""From sentence pairs to their word alignments: batches of similar length, maps of each, links by one method."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
from fairseq.data.data_utils import batch_by_size

from alignment_eval.alignment import Alignment, align_pairs
from alignment_eval.errors import UsageError
from alignment_eval.extraction.extract import WordMap, WordMaps, read_word_map
from alignment_eval.extraction.lexical_table import LexicalTable, count_lexical_table
from alignment_eval.extraction.method import AlignmentMethod, MapName
from alignment_eval.extraction.pair_scores import PairScores
from alignment_eval.extraction.rules import rule_of
from alignment_eval.links.sets import Link
from alignment_eval.maps.sentence import SentenceMaps, words_of
from fairseq_norm_plugin.model.direction import Direction
from fairseq_norm_plugin.process import executors
from fairseq_norm_plugin.text.tokenise import SentencePair, linked_copies
from fairseq_norm_plugin.text.unknown import UnknownTokens

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
#: Pairs that are sorted by length together while a lexical table is counted.
_WINDOW = 10_000


def _ignore(news: object) -> None:
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
        self._copies: dict[int, tuple[set[int], set[int], set[Link]]] = {}

    def align(
        self, windows: Iterable[Iterable[tuple[int, SentencePair]]], progress: Callable[[int], object] = _ignore
    ) -> Iterator[Alignment]:
        """Align the pairs of ``windows``, window by window; within a window in the order of the batches.

        Pairs that cannot be aligned (empty or too long) come first, with the reason as status.

        Args:
            windows: pairs with their ids; the pairs of a window are sorted by length.  If a lexical table is counted,
                one window must end with the last of the :attr:`counted_pairs`.
            progress: called with the number of pairs after each batch; if a table is counted, that is long before the
                first alignment is yielded.
        """
        pairs = (pair for window in windows for pair in self._word_maps(window, progress))
        yield from map(self._noted, align_pairs(pairs, self.method, self._table, check=self._check_table))

    def count(self, pairs: Iterable[SentencePair], progress: Callable[[int], object] = _ignore) -> LexicalTable:
        """Count the lexical table of sentence pairs, of the maps of one direction; progress as for :meth:`align`."""
        numbered, maps = enumerate(pairs), []
        while window := list(itertools.islice(numbered, _WINDOW)):
            for word_map, _ in self._word_maps(window, progress):
                if word_map.scores is not None:
                    maps.append((words_of(word_map.sentence), word_map.shares[:, :-1].astype(np.float32)))
        return count_lexical_table(maps, rule_of(self.method.forward.rule).shares)[0]

    def _noted(self, pair: Alignment) -> Alignment:
        """Count a pair's links; gives it with its copies linked, and with scores, unknown if it was not aligned."""
        if (copies := self._copies.pop(pair.id, None)) is not None:
            pair = _with_copies(pair, *copies)
        sizes = len(pair.source_spans), len(pair.target_spans)
        if pair.ok and min(sizes) >= _LONG:
            self.linked["pairs"] += 1
            self.linked["none"] += len(pair.links) <= 1  # one may be of the final punctuation
            self.linked["all"] += len(pair.links) == sizes[0] * sizes[1]
        return replace(pair, scores=PairScores()) if self._scores and pair.scores is None else pair

    def _word_maps(
        self, pairs: Iterable[tuple[int, SentencePair]], progress: Callable[[int], object]
    ) -> Iterator[WordMaps]:
        """The word maps of each pair of a window, in one direction or in both, batch by batch."""
        encoded: dict[int, list[SentencePair]] = {}
        for id_, pair in pairs:
            both = [direction.encode(way) for direction, way in zip(self.directions, (pair, pair.exchanged))]
            refusals = [direction.refusal(way) for direction, way in zip(self.directions, both)]
            if reason := next(filter(None, refusals), ""):
                progress(1)
                source, target = (line.side for line in both[0])
                yield WordMap(SentenceMaps(id_, source, target, (), status=reason), None), None
                continue
            encoded[id_] = both
            if pair.source.copies:
                self._copies[id_] = linked_copies(pair)
            for name, line in zip(_SIDES, itertools.chain.from_iterable(both)):
                self.unknown.add(name, len(line.ids) - 1, line.unknown)
        lengths = {id_: [length for pair in both for length in pair.lengths] for id_, both in encoded.items()}
        batches = list(length_batches(lengths, self._max_tokens))
        for read in self._read_batches({id_: encoded.pop(id_) for id_ in batch} for batch in batches):
            progress(len(read))
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
        read = {id_: read_word_map(sentence, options, id_ < self._kept) for id_, sentence in maps.items()}
        if not contributes:
            return read
        return {id_: replace(pair, contribution=_contribution(maps[id_])) for id_, pair in read.items()}

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


def _with_copies(pair: Alignment, sources: set[int], targets: set[int], links: set[Link]) -> Alignment:
    """A pair in which words of copies are linked to each other only."""
    kept = {link for link in pair.links if link[0] not in sources and link[1] not in targets}
    confidences = (
        {**{link: pair.confidences[link] for link in kept}, **dict.fromkeys(links, 1.0)} if pair.confidences else {}
    )
    return replace(pair, links=sorted(kept | links), confidences=confidences)


def _contribution(sentence: SentenceMaps) -> float:
    """The share of the source in the prediction of a target token, the mean over tokens (Ferrando et al. 2022b)."""
    return float(sentence.layer_maps(_ALTI)[-1].sum(axis=-1, dtype=np.float64).mean())


def _pairs(read: Sequence[Future[dict[int, WordMap]]]) -> list[WordMaps]:
    """The pairs of a batch, when all its directions are read."""
    forward, *reverse = [direction.result() for direction in read]
    return [(word_map, reverse[0][id_] if reverse else None) for id_, word_map in forward.items()]


def length_batches(lengths: Mapping[int, Sequence[int]], max_tokens: int) -> Iterator[list[int]]:
    """Make batches of pairs of similar length, short pairs first, with at least one pair in each; yields their ids.

    Args:
        lengths: tokens of every side of each pair, by id.
        max_tokens: tokens of the longer sides of a batch, pads included.
    """
    if not lengths:
        return
    ids, table = list(lengths), np.array(list(lengths.values()), dtype=np.int64)
    order = np.lexsort((*table.T, table.max(axis=1)))
    longest = table.max(axis=1)[order]
    # fairseq's function indexes the lengths by these numbers
    batches = batch_by_size(
        np.arange(len(order)), None, num_tokens_vec=longest, max_tokens=max(max_tokens, int(longest[-1]))
    )
    for batch in batches:
        yield [ids[row] for row in order[batch]]
