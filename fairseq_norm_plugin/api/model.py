"""A translation model whose maps and alignments can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Optional, Union, overload

import torch

from alignment_eval.display.alignment import Alignment, Alignments
from alignment_eval.display.maps import DisplayMaps
from alignment_eval.errors import InputError, UsageError
from alignment_eval.maps.sentence import DEFAULT_KINDS, KINDS
from alignment_eval.maps.words import require_known
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.api.alignments import ProfileAligner
from fairseq_norm_plugin.api.block_maps import BlockMaps, block_maps_of
from fairseq_norm_plugin.api.encoding import SentenceEncoder
from fairseq_norm_plugin.api.map_reader import MapReader
from fairseq_norm_plugin.api.sentences import GivenPair, Sentence, Sentences, given_pairs, is_one_pair
from fairseq_norm_plugin.capture.recorder import layers_and_heads
from fairseq_norm_plugin.output.identity import model_hash
from fairseq_norm_plugin.tokens import Vocabulary

FileName = Union[str, Path]
#: Tokens that go through a model together; of a list of maps, those that are held together.
MAX_TOKENS = 4000


def check_max_tokens(max_tokens: int) -> None:
    """Check the size of batches.

    Raises:
        UsageError: it is below 1.
    """
    if max_tokens < 1:
        raise UsageError(f"max_tokens {max_tokens}: expected a number of tokens, 1 or more")


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

    @property
    def both(self) -> list[NormModel]:
        """This model, and the one of the other direction if there is one."""
        return [self] if self.reverse is None else [self, self.reverse]

    def to(self, device: Union[str, torch.device]) -> NormModel:
        """Move all models, those of the other direction too, to ``device``; gives the model itself."""
        for model in self.both:
            for one in model.models:
                one.to(device)
        return self

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
        check_max_tokens(max_tokens)
        reader = MapReader(self.models, self.direction, self._vocabularies, kinds, beam)
        if is_one_pair(source, target):
            return reader.one(GivenPair(source, target))  # type: ignore[arg-type]  # each is one sentence
        return reader.many(given_pairs(source, target), max_tokens)  # type: ignore[arg-type]  # each is several

    @overload
    def align(  # type: ignore[overload-overlap]  # a string is a list of strings too: it is one sentence
        self, source: str, target: str, *, profile: Optional[FileName] = ..., max_tokens: int = ...
    ) -> Alignment: ...

    @overload
    def align(
        self, source: Iterable[str], target: Iterable[str], *, profile: Optional[FileName] = ..., max_tokens: int = ...
    ) -> Alignments: ...

    def align(
        self,
        source: Union[str, Iterable[str]],
        target: Union[str, Iterable[str]],
        *,
        profile: Optional[FileName] = None,
        max_tokens: int = MAX_TOKENS,
    ) -> Union[Alignment, Alignments]:
        """The word alignment of a sentence pair, or of the pairs of two lists, as norm-align makes them.

        The method is that of the models' profiles; without one, a model chooses its maps on the pairs themselves, if
        they are 30 or more.  One line on the standard error says which way was taken.  A list is aligned as one text.

        Args:
            source: one sentence, or several; tokenised text, as for :meth:`maps`.
            target: likewise.
            profile: a profile's file; ``none`` passes over those beside the checkpoints.
            max_tokens: tokens of a batch, pads included.

        Returns:
            The alignment; of lists all alignments, in their order.  In a list, a pair that is empty or longer than the
            models take has no links, and its ``status`` says why; one warning counts them.

        Raises:
            InputError: a sentence is no text; a single one is empty or too long; lists are empty or not of the same
                length; or a profile cannot be used.
            UsageError: a profile of one direction for two models, or ``max_tokens`` below 1.
        """
        check_max_tokens(max_tokens)
        if target is None:
            raise InputError("target: None: expected the translation of source, or a list of them")
        named = None if profile is None else str(profile)
        if is_one_pair(source, target):
            return self._aligner.one(GivenPair(source, target), named, max_tokens)  # type: ignore[arg-type]
        return self._aligner.many(given_pairs(source, target, blanks=True), named, max_tokens)

    @cached_property
    def _aligner(self) -> ProfileAligner:
        return ProfileAligner([m.direction for m in self.both], [model_hash(m.models) for m in self.both])

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
        pair = SentenceEncoder(self.direction, self._vocabularies).pair(GivenPair(source, target))
        inputs = self.direction.sample({0: (pair.source, pair.target)})["net_input"]
        rows, columns = pair.axes(block)
        return block_maps_of(self.models, inputs, block, kind, rows, columns)
