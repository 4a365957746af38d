"""A translation model whose maps and alignments can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional, Union, overload

from alignment_eval.display.maps import DisplayMaps
from alignment_eval.errors import UsageError
from alignment_eval.maps.sentence import DEFAULT_KINDS, KINDS, status_of
from alignment_eval.maps.words import require_known
from fairseq_norm_plugin.align.direction import Direction
from fairseq_norm_plugin.api.block_maps import BlockMaps, block_maps_of
from fairseq_norm_plugin.api.encoding import NumberedPair, SentenceEncoder, parts_of, windows
from fairseq_norm_plugin.api.sentences import GivenPair, Sentence, Sentences, given_pairs, is_one_pair
from fairseq_norm_plugin.capture.capturing import one_thread
from fairseq_norm_plugin.capture.layers import DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.capture.recorder import MAPS_KEY, layers_and_heads
from fairseq_norm_plugin.generation.generator import NormSequenceGenerator, NormSequenceScorer
from fairseq_norm_plugin.tokens import Vocabulary

#: Tokens of the longer sides of the pairs of a list whose maps are held together.
MAX_TOKENS = 4000


class NormModel:
    """A translation model (or an ensemble) whose maps can be read; made by :func:`fairseq_norm_plugin.load`.

    Several threads may use it: one at a time runs the models, the others wait.

    Attributes:
        task: fairseq's task, with the dictionaries.
        models: the models of the ensemble.
        direction: the models with what cuts text into their subwords.
        layers: number of decoder layers.
        heads: number of heads of each.
        reverse: the model of the other direction; None: there is none.
    """

    def __init__(
        self, task: Any, models: Sequence[Any], direction: Direction, vocabularies: tuple[Vocabulary, Vocabulary]
    ) -> None:
        self.task = task
        self.models = list(models)
        self.direction = direction
        self.layers, self.heads = layers_and_heads(models)
        self.reverse: Optional[NormModel] = None
        self._vocabularies = vocabularies
        self._encoder = SentenceEncoder(direction, vocabularies)

    @overload
    def maps(  # type: ignore[overload-overlap]  # a string is a list of strings too: it is one sentence
        self, source: Sentence, target: Optional[Sentence] = ..., beam: int = ..., kinds: Sequence[str] = ...
    ) -> DisplayMaps: ...

    @overload
    def maps(
        self,
        source: Iterable[Sentence],
        target: Optional[Iterable[Sentence]] = ...,
        beam: int = ...,
        kinds: Sequence[str] = ...,
        *,
        max_tokens: int = ...,
    ) -> Iterator[DisplayMaps]: ...

    def maps(
        self,
        source: Sentences,
        target: Optional[Sentences] = None,
        beam: int = 5,
        kinds: Sequence[str] = DEFAULT_KINDS,
        *,
        max_tokens: int = MAX_TOKENS,
    ) -> Union[DisplayMaps, Iterator[DisplayMaps]]:
        """The maps of one sentence pair, or of the pairs of two lists, teacher-forced.

        Args:
            source: one sentence: tokenised text (subwords, or words if the model was loaded with ``bpe_codes``), or
                token ids with or without ``</s>``.  Or several: a list, or anything that can be iterated over, of which
                no more is read than is needed.
            target: likewise; default: the model's own translations by beam search.
            beam: the beam of that search.
            kinds: which maps (alignment_eval.maps.sentence.KINDS).
            max_tokens: of a list, the tokens of the longer sides of the pairs that are held together.

        Returns:
            Record with ``head_maps(kind)`` [L, H, T, S] and ``layer_maps(kind)`` [L, T, S] in float32, ``to_frame`` and
            ``plot``, tokens and words of both sides, and the model's score (mean log probability a token, base e).
            Of several pairs an iterator, in their order; ``id`` is the place in the list.  An unknown id may hide which
            word its neighbour belongs to: the ``status`` is not ``ok`` then, and no words are aligned.

        Raises:
            InputError: a sentence is empty or longer than the model takes, or is neither text nor token ids; lists are
                empty or not of the same length.  Lists are checked before the first maps are made, but for the length
                of their sentences.
            UsageError: an unknown kind, or ``max_tokens`` below 1.
        """
        for kind in kinds:
            require_known("map kind", kind, KINDS)
        if max_tokens < 1:
            raise UsageError(f"max_tokens {max_tokens}: expected a number of tokens, 1 or more")
        if is_one_pair(source, target):
            pair = self._encoder.pair(GivenPair(source, target))  # type: ignore[arg-type]  # each is one sentence
            return self._maps([pair], kinds, beam)[0]
        return self._maps_of_list(given_pairs(source, target), kinds, beam, max_tokens)  # type: ignore[arg-type]

    def _maps_of_list(
        self, given: Iterator[GivenPair], kinds: Sequence[str], beam: int, max_tokens: int
    ) -> Iterator[DisplayMaps]:
        pairs = (self._encoder.pair(pair, number) for number, pair in enumerate(given))
        for window in windows(pairs, max_tokens):
            maps = {found.id: found for part in parts_of(window, max_tokens) for found in self._maps(part, kinds, beam)}
            for pair in window:
                yield maps.pop(pair.number)
            self.direction.forget()

    def _maps(self, batch: Sequence[NumberedPair], kinds: Sequence[str], beam: int) -> list[DisplayMaps]:
        """The maps of a batch; either all pairs have a target or none has."""
        pairs = {pair.number: (pair.source, pair.target) for pair in batch}
        recorded = self.direction.recorded(pairs, kinds, range(self.layers))
        dictionary = self.task.target_dictionary
        sample = self.direction.sample(pairs)
        generator: Any
        with one_thread(self.models):  # a generator sets its beam on the models
            if batch[0].target is not None:
                generator = NormSequenceScorer(dictionary, recorded=recorded)
            else:
                generator = NormSequenceGenerator(self.models, dictionary, recorded=recorded, beam_size=beam)
            hypotheses = generator.generate(self.models, sample)
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

    def block_maps(self, source: Sentence, target: Sentence, block: str, kind: str) -> BlockMaps:
        """The maps of ``kind`` of every block of a type, teacher-forced; the mean over an ensemble.

        Args:
            source: one sentence, as for :meth:`maps`.
            target: likewise.
            block: ``encoder.self``, ``decoder.self`` or ``decoder.cross``.
            kind: a kind of maps.kinds.BLOCK_KINDS.

        Raises:
            InputError: see :meth:`maps`; or the block has no such maps.
            UsageError: an unknown block type or kind.
        """
        one, other = self._encoder.side(source, 0, "source"), self._encoder.side(target, 1, "target")
        inputs = self.direction.sample({0: (one, other)})["net_input"]
        source_tokens, target_tokens = one.side.tokens, other.side.tokens
        inputs_of_decoder = (*target_tokens[-1:], *target_tokens[:-1])  # </s> first
        rows = source_tokens if block == ENCODER_SELF else inputs_of_decoder
        columns = inputs_of_decoder if block == DECODER_SELF else source_tokens
        return block_maps_of(self.models, inputs, block, kind, rows, columns)
