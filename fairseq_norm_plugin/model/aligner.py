"""Aligns windows of sentence pairs: encode → word maps → links; by which maps and which rule; and the signature."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from alignment_eval.align_pairs import Reweight, by_table, count_table, join_sentences, link_pairs
from alignment_eval.alignment import Alignment
from alignment_eval.errors import UsageError
from alignment_eval.extraction.extract import WordMap, WordMaps, read_word_map
from alignment_eval.extraction.lexical_table import EMPTY, FEW_WORDS, MANY_UNKNOWN, check_match
from alignment_eval.extraction.lexical_table import SAMPLE as CHECKED
from alignment_eval.extraction.method import MapName
from alignment_eval.extraction.pair_scores import PairScores
from alignment_eval.files import Value, signature
from alignment_eval.links.symmetrize import METHODS
from alignment_eval.maps.sentence import SentenceMaps, words_of
from alignment_eval.profiles.chosen import AlignmentOptions, ChosenMethod, choose_method
from alignment_eval.profiles.profile import Profile, find_profile
from alignment_eval.reading import json_hash
from fairseq_norm_plugin.environment import executors, versions
from fairseq_norm_plugin.model.model import Encoded, Model, encode, length_batches, refusal, usable_pairs
from fairseq_norm_plugin.text.pair import SentencePair, linked_copies
from fairseq_norm_plugin.text.tokens import UnknownTokens

#: Takes the number of pairs that were read since its last call.
Progress = Callable[[int], object]
#: How many numbers of lines a warning names.
_SHOWN = 20
#: The fewest words on both sides of pairs that are checked for links of none or all of them, and the fewest pairs.
_LONG, _FEWEST = 3, 10
#: Pairs that are sorted by length together.
WINDOW = 10_000
#: Names of the sides in counts of subwords: of the first direction, and of the other.
_SIDES = ("source", "target", "reverse source", "reverse target")
#: The kind whose rows say how much of a prediction comes from the source (Ferrando et al. 2022b).
_ALTI = "alti_rollout"
#: Tokens of a batch on a CPU: the numbers of larger ones do not stay in its caches.
_CPU_TOKENS = 2000
#: Batches that are read, or wait to be, while links are made of another.
_AHEAD = 2


def unseen(_: int) -> None:
    """Show no progress."""


def choose(
    options: AlignmentOptions, models: Sequence[Model], text: Iterable[SentencePair] = (), pairs: int | None = None
) -> ChosenMethod:
    """How to align: by the maps that ``options`` name, else by the models' profiles, else by a choice on the ``text``.

    ``pairs`` is how many sentence pairs are aligned together; None: unknown, or one by one.
    """
    usable: list[Encoded] | None = None
    profiles: list[Profile] = []
    for model in models if options.heads is None else ():
        reverse = bool(profiles)
        profile = find_profile(options.profile, model.profile)
        if profile is not None:
            profile = profile.of(model.identity, reverse and options.profile is not None)
        else:
            usable = usable_pairs(text, models) if usable is None else usable
            own = [read[reverse] for read in usable]
            fitted = model.fit_profile(own, options.max_tokens)
            where = "none, chosen on the text itself" if fitted.formed else "none"
            profile = replace(fitted, name="the maps it was trained with" if model.guided else where, of_text=True)
        profiles.append(profile)
    return choose_method(options, len(models), profiles, pairs)


@dataclass
class Tally:
    """What an aligner has seen: of windows, the sum is that of the text.

    Attributes:
        counts: ``uneven``: pairs that are aligned whole since their lines have different numbers of sentences;
            ``words``, and those ``unknown`` to the table; of long ``pairs``, those of one link at most (``none``) and
            those of ``every`` link.
        subwords: the subwords that the models know and do not know.
        untagged: pairs that are written without tags, and why.
        uncopied: pairs whose target has not the protected strings of the source, and the first string.
    """

    counts: Counter[str] = field(default_factory=Counter)
    subwords: UnknownTokens = field(default_factory=UnknownTokens)
    untagged: dict[int, str] = field(default_factory=dict)
    uncopied: dict[int, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add what was seen of other pairs."""
        self.counts.update(other.counts)
        self.subwords.update(other.subwords)
        self.untagged |= other.untagged
        self.uncopied |= other.uncopied

    def warnings(self) -> Iterator[str]:
        """Warnings about all but the subwords: lines, words that the table lacks, and maps of which no links come."""
        if untagged := self.untagged:
            numbers = _shown_lines(sorted(untagged))
            yield f"lines written without tags: {numbers}; the first is {untagged[min(untagged)]}"
        if uncopied := self.uncopied:
            numbers, first = _shown_lines(sorted(uncopied)), uncopied[min(uncopied)]
            yield f"lines whose target has not each protected string of the source once: {numbers}; the first: {first}"
        if uneven := self.counts["uneven"]:
            yield f"pairs of which source and target have different numbers of sentences: {uneven}, aligned whole"
        total, unknown = self.counts["words"], self.counts["unknown"]
        if total >= FEW_WORDS and unknown > MANY_UNKNOWN * total:
            yield (
                f"{unknown} of {total} words ({unknown / total:.0%}) are not in the lexical table: --table text "
                f"(table='text') adds what this text says about them"
            )
        total, none, every = (self.counts[name] for name in ("pairs", "none", "every"))
        if total >= _FEWEST and none + every > total / 2:
            yield (
                f"{none} of {total} sentence pairs of {_LONG} or more words have one link or none, and in {every} each "
                f"word is linked to all: the maps show no alignment; check that the model is trained, or name other "
                f"maps and another rule"
            )


def _shown_lines(numbers: Sequence[int]) -> str:
    """How many lines, and which the first ones are, from 1."""
    more = ", …" if len(numbers) > _SHOWN else ""
    return f"{len(numbers)} ({', '.join(str(number + 1) for number in numbers[:_SHOWN])}{more})"


class _Sentence(NamedTuple):
    """A sentence of a window: the number of its pair, its place among the sentences of that, and its own pair."""

    number: int
    place: int
    pair: SentencePair


class Aligner:
    """Aligns sentence pairs with the models of one direction or of both, by a chosen method.

    Args:
        chosen: how pairs are aligned.
        models: a model for each direction that the method reads.
        options: tokens of a batch; with the log probabilities of the targets (``scores``); with the contribution of
            the source, for which the maps of all layers are computed.
        kept: alignments of pairs of lower numbers keep their word maps.

    Attributes:
        table: the lexical table; empty if there is none.
        tally: what was seen so far.

    Raises:
        UsageError: the models lack a direction or a map that the method reads.
    """

    def __init__(self, chosen: ChosenMethod, models: Sequence[Model], options: AlignmentOptions, kept: int = 0) -> None:
        self.chosen, self.method, self._kept = chosen, chosen.method, kept
        self.models = models
        self._read_by = [self.method.forward, *([] if self.method.reverse is None else [self.method.reverse])]
        if len(models) != len(self._read_by):
            raise UsageError(
                f"models of {len(models)} directions, but the method reads {len(self._read_by)}: give a model (or "
                f"an ensemble) for each direction that it reads"
            )
        for model, own in zip(models, self._read_by):
            model.check(own)
        self._contribution = options.source_contribution
        self._scores = options.scores or options.source_contribution
        on_cpu = all(model.device.type == "cpu" for model in models)
        networks = [id(network) for model in models for network in model.networks]
        self._at_once = on_cpu and len({*networks}) == len(networks)
        self._max_tokens = min(options.max_tokens, _CPU_TOKENS) if on_cpu else options.max_tokens
        self.table = chosen.table or EMPTY
        #: The word maps of the windows that the table was counted on, by their first pairs, and what reweights them.
        self._counted: dict[int, list[tuple[_Sentence, WordMaps]]] = {}
        self._of_counted: Reweight | None = None
        self.tally = Tally()

    def check_table(self, pairs: Iterable[SentencePair]) -> None:
        """Check that a lexical table that the user gave matches the first pairs of a text."""
        if self.chosen.table is not None and self.chosen.given:
            sides = (self.models[0].encode(sentence) for pair in pairs for sentence in pair.sentences)
            words = ([line.side.word_strings() for line in pair] for pair in sides)
            check_match(self.chosen.table, [(source, target) for source, target in islice(words, CHECKED)])

    def count(self, windows: Iterable[tuple[int, Sequence[SentencePair]]], progress: Progress = unseen) -> None:
        """Count the lexical table of the text on its first windows, given with the numbers of their first pairs.

        Their word maps are kept until they are aligned.
        """
        self._counted = {first: list(self.word_maps(first, pairs, progress)) for first, pairs in windows}
        read = (maps for window in self._counted.values() for _, maps in window)
        self.table, self._of_counted = count_table(read, self.method, self.table)

    def align(self, first: int, pairs: Sequence[SentencePair], progress: Progress = unseen) -> list[Alignment]:
        """Align the pairs of a window, of which the first has this number; batch by batch, sorted by length.

        Lines that are cut into sentences are aligned sentence by sentence.
        """
        counted, reweight = self._counted.pop(first, None), by_table(self.table, self.method)
        if counted is not None and self._of_counted is not None:
            reweight = self._of_counted
        read = self.word_maps(first, pairs, progress) if counted is None else counted
        keyed = (
            ((own, [len(one.sentence.target.tokens) for one in maps if one is not None]), maps) for own, maps in read
        )
        cut: list[list[tuple[int, Alignment, list[int]]]] = [[] for _ in pairs]
        for (own, tokens), alignment in link_pairs(keyed, self.method, reweight):
            cut[own.number - first].append((own.place, alignment, tokens))
        aligned = []
        for number, (pair, sentences) in enumerate(zip(pairs, cut), first):
            _, alignments, counts = zip(*sorted(sentences, key=itemgetter(0)))
            aligned.append(self._finished(join_sentences(alignments, number, counts), pair))
        return aligned

    def word_maps(
        self, first: int, pairs: Sequence[SentencePair], progress: Progress = unseen
    ) -> Iterator[tuple[_Sentence, WordMaps]]:
        """The word maps of the sentences of a window; batch by batch, short ones first.

        Those that cannot be aligned (empty or too long) come before all others, with the reason as status.  While the
        maps of one batch are read, the caller has those of the batch before it.
        """
        sentences = [
            _Sentence(number, place, sentence)
            for number, pair in enumerate(pairs, first)
            for place, sentence in enumerate(pair.sentences)
        ]
        encoded: dict[int, Encoded] = {}
        for key, own in enumerate(sentences):
            read = encode(own.pair, self.models)
            if reason := refusal(read, self.models):
                progress(int(own.place == 0))
                source, target = (line.side for line in read[0])
                yield own, (WordMap(SentenceMaps(own.number, source, target, (), status=reason), None), None)
                continue
            encoded[key] = read
            for name, line in zip(_SIDES, chain.from_iterable(read)):
                self.tally.subwords.add(name, len(line.ids) - 1, line.unknown)
        batches = length_batches(
            encoded, self._max_tokens, lambda read: [length for pair in read for length in pair.lengths]
        )
        with executors(len(self.models), self._at_once) as threads:
            for key, maps in self._read_ahead(threads, batches, sentences):
                progress(int(sentences[key].place == 0))
                self._look_up(maps)
                yield sentences[key], maps

    def _read_ahead(
        self, threads: Sequence[Executor], batches: Iterable[Mapping[int, Encoded]], sentences: Sequence[_Sentence]
    ) -> Iterator[tuple[int, WordMaps]]:
        """The word maps of each batch, when all models have read it, while others are read."""
        waiting: deque[list[Future[dict[int, WordMap]]]] = deque()
        for batch in chain(batches, [None] * (_AHEAD + 1)):
            if batch is not None:
                numbered = {key: (sentences[key].number, read) for key, read in batch.items()}
                waiting.append([thread.submit(self._read, which, numbered) for which, thread in enumerate(threads)])
            if waiting and (batch is None or len(waiting) > _AHEAD):
                forward, *reverse = [of_model.result() for of_model in waiting.popleft()]
                yield from ((key, (one, reverse[0][key] if reverse else None)) for key, one in forward.items())

    def _read(self, which: int, batch: Mapping[int, tuple[int, Encoded]]) -> dict[int, WordMap]:
        """The word maps of a batch of encoded pairs, with their numbers, by one model."""
        options, model = self._read_by[which], self.models[which]
        kinds, names = [options.kind], list(options.heads)
        contributes = self._contribution and which == 0
        if contributes:
            kinds, names = [*kinds, _ALTI], [*names, MapName(model.layers - 1)]
        maps = model.maps({key: read[which] for key, (_, read) in batch.items()}, kinds, names, self._scores)
        found = {}
        for key, of_pair in maps.items():
            number = batch[key][0]
            found[key] = read_word_map(replace(of_pair, id=number), options, number < self._kept)
            if contributes:
                shares = of_pair.layer_maps(_ALTI)[-1].sum(axis=-1, dtype=np.float64)  # of the source, for each token
                found[key] = replace(found[key], contribution=float(shares.mean()))
        return found

    def _look_up(self, maps: WordMaps) -> None:
        """Count the words that a given table does not know."""
        if self.chosen.table is not None and not self.method.table_pairs:
            words = words_of(maps[0].sentence)
            self.tally.counts["words"] += len(words[0]) + len(words[1])
            self.tally.counts["unknown"] += self.chosen.table.unknown(words)

    def _finished(self, alignment: Alignment, pair: SentencePair) -> Alignment:
        """Count the links; gives them with copies linked to each other only, and with scores: unknown without maps."""
        counts = self.tally.counts
        counts["uneven"] += len({len(line.sentences) for line in pair if line}) > 1
        if pair.source.copies and alignment.ok:
            sources, targets, links = linked_copies(pair)
            kept = {link for link in alignment.links if link[0] not in sources and link[1] not in targets}
            given = (alignment.confidences, self.method.join not in METHODS), (alignment.weights, self.method.sharpened)
            sure, weights = (
                {**{link: own[link] for link in kept}, **dict.fromkeys(links, 1.0)} if has_own else {}
                for own, has_own in given
            )
            alignment = replace(alignment, links=sorted(kept | links), confidences=sure, weights=weights)
        sizes = len(alignment.source_spans), len(alignment.target_spans)
        if alignment.ok and min(sizes) >= _LONG:
            counts["pairs"] += 1
            counts["none"] += len(alignment.links) <= 1  # one may be of the final punctuation
            counts["every"] += len(alignment.links) == sizes[0] * sizes[1]
        return replace(alignment, scores=PairScores()) if self._scores and alignment.scores is None else alignment


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
