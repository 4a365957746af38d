"""A translation model of one direction whose maps can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional, Union, overload

from alignment_eval.maps.sentence import DEFAULT_KINDS, KINDS
from alignment_eval.maps.words import require_known
from alignment_eval.report.map_view import DisplayMaps
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.capture.recorder import layers_and_heads
from fairseq_norm_plugin.model.batches import MAX_TOKENS, SentenceEncoder, check_max_tokens
from fairseq_norm_plugin.model.block_maps import BlockMaps, block_maps_of
from fairseq_norm_plugin.model.map_reader import MapReader
from fairseq_norm_plugin.model.sentences import GivenPair, Sentence, Sentences, given_pairs, is_one_pair
from fairseq_norm_plugin.text.tokens import Vocabulary


class MapModel:
    """A translation model (or an ensemble) whose maps can be read.

    Several threads may use it: one at a time runs the models, the others wait.

    Attributes:
        task: fairseq's task, with the dictionaries.
        models: the models of the ensemble.
        direction: the models, and the segmenters that cut text into their subwords.
        layers: number of decoder layers.
        heads: number of heads of each layer.
        vocabularies: of source and target.
    """

    def __init__(
        self, task: Any, models: Sequence[Any], direction: Direction, vocabularies: tuple[Vocabulary, Vocabulary]
    ) -> None:
        self.task = task
        self.models = list(models)
        self.direction = direction
        self.layers, self.heads = layers_and_heads(models)
        self.vocabularies = vocabularies

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
        """Compute the maps of one sentence pair, or of the pairs of two lists, teacher-forced.

        Args:
            source: one sentence: tokenised text (subwords, or words if the model was loaded with ``bpe_codes``), or
                token ids with or without ``</s>``.  Or several: a list or any iterable, which is read only as far as
                needed.
            target: likewise; default: the model's own translations by beam search.
            beam: beam size of that search.
            kinds: which maps (alignment_eval.maps.sentence.KINDS).
            max_tokens: for lists: how many tokens (of the longer sides of the pairs) are held at once.

        Returns:
            A record with ``head_maps(kind)`` [L, H, T, S] and ``layer_maps(kind)`` [L, T, S] in float32, ``to_frame``
            and ``plot``, tokens and words of both sides, and the model's score (mean log probability a token, base e).
            For lists an iterator over such records, in the order of the lists; ``id`` is the place in the list.  Token
            ids with an unknown id may hide which word its neighbours belong to: then ``status`` is not ``ok``, and no
            words are aligned.

        Raises:
            InputError: a sentence is empty or longer than the model takes, or is neither text nor token ids; or the
                lists are empty or differ in length.  Lists are checked before the first maps are computed, except for
                the length of their sentences.
            UsageError: an unknown kind, or ``max_tokens`` below 1.
        """
        for kind in kinds:
            require_known("map kind", kind, KINDS)
        check_max_tokens(max_tokens)
        reader = MapReader(self.models, self.direction, self.vocabularies, kinds, beam)
        if is_one_pair(source, target):
            return reader.one(GivenPair(source, target))  # type: ignore[arg-type]  # each is one sentence
        return reader.many(given_pairs(source, target), max_tokens)  # type: ignore[arg-type]  # each is several

    def block_maps(self, source: Sentence, target: Sentence, block: str, kind: str) -> BlockMaps:
        """Compute the maps of ``kind`` of every block of a type, teacher-forced; the mean over an ensemble.

        Args:
            source: one sentence, as for :meth:`maps`.
            target: likewise.
            block: ``encoder.self``, ``decoder.self`` or ``decoder.cross``.
            kind: a kind of maps.kinds.BLOCK_KINDS.

        Raises:
            InputError: see :meth:`maps`; or the block has no such maps.
            UsageError: an unknown block type or kind.
        """
        pair = SentenceEncoder(self.direction, self.vocabularies).pair(GivenPair(source, target))
        inputs = self.direction.sample({0: (pair.source, pair.target)})["net_input"]
        rows, columns = pair.axes(block)
        return block_maps_of(self.models, inputs, block, kind, rows, columns)
