"""A translation model, or one of each direction, whose maps and alignments can be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Optional, Union, overload

import torch

from alignment_eval.errors import InputError
from alignment_eval.profiles.chosen import Overrides
from alignment_eval.report.alignment_view import Alignment, Alignments
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.model.alignments import ProfileAligner
from fairseq_norm_plugin.model.batches import MAX_TOKENS
from fairseq_norm_plugin.model.map_model import MapModel
from fairseq_norm_plugin.model.sentences import GivenPair, given_pairs, is_one_pair
from fairseq_norm_plugin.recording.identity import model_hash, told_hash
from fairseq_norm_plugin.text.settings import TextSettings
from fairseq_norm_plugin.text.tokens import Vocabulary

FileName = Union[str, Path]


class NormModel(MapModel):
    """A translation model (or an ensemble) that aligns words; made by :func:`fairseq_norm_plugin.load`.

    Attributes:
        text: how text becomes words and subwords.
        reverse: the model of the other direction, or None.
    """

    def __init__(
        self,
        task: Any,
        models: Sequence[Any],
        direction: Direction,
        vocabularies: tuple[Vocabulary, Vocabulary],
        text: TextSettings,
        parameters: Optional[str] = None,
    ) -> None:
        super().__init__(task, models, direction, vocabularies)
        self.text = text
        self._parameters = parameters
        self.reverse: Optional[NormModel] = None

    @cached_property
    def identity(self) -> str:
        """The hash of the parameters, and of the tags if the model is told its languages by tags.

        A model in 16 bits has that of its checkpoint in float32, so its profile serves all types.
        """
        return told_hash(self._parameters or model_hash(self.models), self.direction.frames)

    @property
    def with_reverse(self) -> list[NormModel]:
        """This model, and the one of the other direction if there is one."""
        return [self] if self.reverse is None else [self, self.reverse]

    def to(self, device: Union[str, torch.device]) -> NormModel:
        """Move all models, also those of the other direction, to ``device``; returns the model itself."""
        for model in self.with_reverse:
            for one in model.models:
                one.to(device)
        return self

    @overload
    def align(  # type: ignore[overload-overlap]  # a string is a list of strings too: it is one sentence
        self,
        source: str,
        target: str,
        *,
        profile: Optional[FileName] = ...,
        lexicon: Optional[int] = ...,
        lexicon_file: Optional[FileName] = ...,
        max_tokens: int = ...,
    ) -> Alignment: ...

    @overload
    def align(
        self,
        source: Iterable[str],
        target: Iterable[str],
        *,
        profile: Optional[FileName] = ...,
        lexicon: Optional[int] = ...,
        lexicon_file: Optional[FileName] = ...,
        max_tokens: int = ...,
    ) -> Alignments: ...

    def align(
        self,
        source: Union[str, Iterable[str]],
        target: Union[str, Iterable[str]],
        *,
        profile: Optional[FileName] = None,
        lexicon: Optional[int] = None,
        lexicon_file: Optional[FileName] = None,
        max_tokens: int = MAX_TOKENS,
    ) -> Union[Alignment, Alignments]:
        """Align the words of a sentence pair, or of the pairs of two lists, as norm-align does.

        The models' profiles say how.  Without a profile, a model chooses its maps on the pairs themselves, if there are
        30 or more.  One line on the standard error says which way was taken.  A list is aligned as one text.

        Args:
            source: one sentence, or several; tokenised text, as for :meth:`maps`.
            target: likewise.
            profile: a profile's file; ``none`` ignores those beside the checkpoints.
            lexicon: how many passes to count a lexicon of the text in, 0 for no lexicon; default: as norm-align does.
            lexicon_file: a lexicon that ``norm-align --save-lexicon`` wrote; it is used instead of the text's own.
            max_tokens: tokens of a batch, pads included.

        Returns:
            The alignment; for lists all alignments, in the order of the lists.  In a list, a pair that is empty or
            longer than the models take has no links, and its ``status`` says why; one warning counts such pairs.

        Raises:
            InputError: a sentence is not text; a single one is empty or too long; lists are empty or differ in length;
                or a profile or lexicon cannot be used.
            UsageError: a profile of one direction for two models, ``lexicon`` beside ``lexicon_file``, or a number out
                of its range.
        """
        overrides = Overrides(lexicon_passes=lexicon, lexicon_file=None if lexicon_file is None else str(lexicon_file))
        if target is None:
            raise InputError("target: None: expected the translation of source, or a list of them")
        if not is_one_pair(source, target):
            return self._aligner.align(given_pairs(source, target, blanks=True), overrides, profile, max_tokens)
        pair = GivenPair(source, target)  # type: ignore[arg-type]
        (alignment,) = self._aligner.align([pair], overrides, profile, max_tokens, quiet=True)
        if not alignment.ok:
            raise InputError(f"the sentence pair is {alignment.status}: expected one that the model can align")
        return alignment

    @cached_property
    def _aligner(self) -> ProfileAligner:
        return ProfileAligner([m.direction for m in self.with_reverse], [m.identity for m in self.with_reverse])
