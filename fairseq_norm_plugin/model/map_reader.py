"""Read maps of sentence pairs, teacher-forced or of the model's own translations, and lists window by window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from alignment_eval.maps.sentence import status_of
from alignment_eval.report.map_view import DisplayMaps
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.capture.capturing import one_thread
from fairseq_norm_plugin.capture.recorder import MAPS_KEY, RecordedMaps
from fairseq_norm_plugin.hooks.generator import Hypotheses, NormSequenceGenerator, NormSequenceScorer
from fairseq_norm_plugin.model.batches import NumberedPair, SentenceEncoder, parts_of, windows
from fairseq_norm_plugin.model.sentences import GivenPair
from fairseq_norm_plugin.process import enough_threads
from fairseq_norm_plugin.text.ids import count_tokens
from fairseq_norm_plugin.text.tokens import Vocabulary


class MapReader:
    """Reads the maps of all layers from the models of one direction.

    Args:
        models: the models of an ensemble.
        direction: the same models, with their segmentation.
        vocabularies: of source and target.
        kinds: which maps.
        beam: beam size of the search for translations.
    """

    def __init__(
        self,
        models: Sequence[Any],
        direction: Direction,
        vocabularies: tuple[Vocabulary, Vocabulary],
        kinds: Sequence[str],
        beam: int,
    ) -> None:
        self._models = models
        self._direction = direction
        self._vocabularies = vocabularies
        self._kinds = kinds
        self._beam = beam
        self._encoder = SentenceEncoder(direction, vocabularies)

    def one(self, pair: GivenPair) -> DisplayMaps:
        """Read the maps of one pair; errors as for :meth:`~fairseq_norm_plugin.model.batches.SentenceEncoder.pair`."""
        return self._batch([self._encoder.pair(pair)])[0]

    def many(self, given: Iterator[GivenPair], max_tokens: int) -> Iterator[DisplayMaps]:
        """Read the maps of pairs, in order; the maps of about ``max_tokens`` tokens are held at once."""
        pairs = (self._encoder.pair(pair, number) for number, pair in enumerate(given))
        for window in windows(pairs, max_tokens):
            maps = {found.id: found for part in parts_of(window, max_tokens) for found in self._batch(part)}
            for pair in window:
                yield maps.pop(pair.number)
            self._direction.forget()

    def _search(self, sample: dict[str, Any], recorded: RecordedMaps) -> Hypotheses:
        frames, dictionary = self._direction.frames, self._vocabularies[1].dictionary
        eos = frames.target.after[-1]
        generator = NormSequenceGenerator(self._models, dictionary, recorded=recorded, beam_size=self._beam, eos=eos)
        source = sample["net_input"]["src_tokens"]
        forced = source.new_tensor(frames.target.before).expand(len(source), -1) if frames.target.before else None
        first = None if frames.first == eos else frames.first
        return generator.generate(self._models, sample, prefix_tokens=forced, bos_token=first)

    def _batch(self, batch: Sequence[NumberedPair]) -> list[DisplayMaps]:
        """Read the maps of pairs that either all have a target or all have none."""
        pairs = {pair.number: (pair.source, pair.target) for pair in batch}
        recorded = self._direction.recorded(pairs, self._kinds, range(self._direction.layers))
        dictionary = self._vocabularies[1].dictionary
        sample = self._direction.sample(pairs)
        threads = enough_threads(self._models, count_tokens(pairs))
        with threads, one_thread(self._models):  # a generator sets its beam on the models
            if batch[0].target is not None:
                generator = NormSequenceScorer(dictionary, recorded=recorded)
                hypotheses = generator.generate(self._models, sample)
            else:
                hypotheses = self._search(sample, recorded)
        found = []
        for id_, (best, *_) in zip(sample["id"].tolist(), hypotheses):
            source, target = pairs[id_]
            found.append(
                DisplayMaps(
                    id=id_,
                    status=status_of(source.certain, target is None or target.certain),
                    source=source.side,
                    target=self._vocabularies[1].spell(best["tokens"].cpu()).side if target is None else target.side,
                    layers=recorded.layers,
                    score=float(best["score"]),
                    arrays=best[MAPS_KEY],
                )
            )
        return found
