"""A translation model, or one of each direction, whose maps and alignments can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from inspect import signature
from pathlib import Path
from typing import Any, overload

import torch
from typing_extensions import Unpack  # of torch; typing has it from Python 3.11 on

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import DEFAULT_KINDS, KINDS
from alignment_eval.maps.words import require_known
from alignment_eval.profiles.chosen import Overrides
from alignment_eval.report.alignment_view import Alignment, Alignments
from alignment_eval.report.map_view import DisplayMaps
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.capture.layers import DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.capture.recorder import layers_and_heads
from fairseq_norm_plugin.model.alignments import AlignOptions, ProfileAligner
from fairseq_norm_plugin.model.block_maps import BlockMaps, block_maps_of
from fairseq_norm_plugin.model.jobs import (
    check_labels,
    check_syntax,
    plain_text,
    with_labels,
    with_markup,
)
from fairseq_norm_plugin.model.map_reader import MapReader
from fairseq_norm_plugin.model.sentences import (
    MAX_TOKENS,
    GivenPair,
    Sentence,
    Sentences,
    check_whole,
    given_lines,
    given_pairs,
    is_one_pair,
)
from fairseq_norm_plugin.model.translator import Translator
from fairseq_norm_plugin.recording.identity import model_hash, told_hash
from fairseq_norm_plugin.text.offsets import blank_spans
from fairseq_norm_plugin.text.settings import TextSettings
from fairseq_norm_plugin.text.tokens import Vocabulary


class NormModel:
    """A translation model (or an ensemble) whose maps and alignments can be read; made by :func:`load`.

    Several threads may use it: one at a time runs the models, the others wait.

    Attributes:
        task: fairseq's task, with the dictionaries.
        models: the models of the ensemble.
        direction: the models, and the segmenters that cut text into their subwords.
        layers: number of decoder layers.
        heads: number of heads of each layer.
        vocabularies: of source and target.
        text: how text becomes words and subwords.
        translator: translates lines.
        reverse: the model of the other direction, or None.
    """

    def __init__(
        self,
        task: Any,
        models: Sequence[Any],
        direction: Direction,
        vocabularies: tuple[Vocabulary, Vocabulary],
        text: TextSettings,
        parameters: str | None = None,
    ) -> None:
        self.task = task
        self.models = list(models)
        self.direction = direction
        self.layers, self.heads = layers_and_heads(models)
        self.vocabularies = vocabularies
        self.text = text
        self.reverse: NormModel | None = None
        self._parameters = parameters
        self.translator = Translator(self.models, direction, vocabularies[1])
        self._reader = MapReader(direction, vocabularies, self.translator)

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

    def to(self, device: str | torch.device) -> NormModel:
        """Move all models, also those of the other direction, to ``device``; returns the model itself."""
        for model in self.with_reverse:
            for member in model.models:
                member.to(device)
        return self

    @overload
    def maps(  # type: ignore[overload-overlap]  # a string is a list of strings too: it is one sentence
        self, source: Sentence, target: Sentence | None = ..., beam: int = ..., kinds: Sequence[str] = ...
    ) -> DisplayMaps: ...

    @overload
    def maps(
        self,
        source: Iterable[Sentence],
        target: Iterable[Sentence] | None = ...,
        beam: int = ...,
        kinds: Sequence[str] = ...,
        *,
        max_tokens: int = ...,
    ) -> Iterator[DisplayMaps]: ...

    def maps(
        self,
        source: Sentences,
        target: Sentences | None = None,
        beam: int = 5,
        kinds: Sequence[str] = DEFAULT_KINDS,
        *,
        max_tokens: int = MAX_TOKENS,
    ) -> DisplayMaps | Iterator[DisplayMaps]:
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
        check_whole("max_tokens", max_tokens)
        if is_one_pair(source, target):
            encoded = self._reader.encode(GivenPair(source, target))  # type: ignore[arg-type]  # each is one sentence
            return self._reader.read({0: encoded}, kinds, beam)[0]
        pairs = given_pairs(source, target)  # type: ignore[arg-type]  # each is several
        return self._reader.many(pairs, kinds, beam, max_tokens)

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
        pair = self._reader.encode(GivenPair(source, target))
        inputs = self.direction.sample({0: pair})["net_input"]
        tokens, targets = (() if side is None else side.side.tokens for side in pair)
        decoder = (*targets[-1:], *targets[:-1])  # its inputs
        rows = tokens if block == ENCODER_SELF else decoder
        columns = decoder if block == DECODER_SELF else tokens
        return block_maps_of(self.models, inputs, block, kind, rows, columns)

    @overload
    def align(  # type: ignore[overload-overlap]  # a string is a list of strings too: it is one sentence
        self, source: str, target: str, **options: Unpack[AlignOptions]
    ) -> Alignment: ...

    @overload
    def align(
        self,
        source: Iterable[str],
        target: Iterable[str],
        *,
        source_words: Iterable[Sequence[str]] | None = ...,
        target_words: Iterable[Sequence[str]] | None = ...,
        **options: Unpack[AlignOptions],
    ) -> Alignments: ...

    def align(
        self,
        source: str | Iterable[str],
        target: str | Iterable[str],
        *,
        profile: str | Path | None = None,
        word_table: int | None = None,
        word_table_file: str | Path | None = None,
        max_tokens: int = MAX_TOKENS,
        scores: bool = False,
        source_contribution: bool = False,
        source_words: Iterable[Sequence[str]] | None = None,
        target_words: Iterable[Sequence[str]] | None = None,
    ) -> Alignment | Alignments:
        """Align the words of a sentence pair, or of the pairs of two lists, as norm-align does.

        The models' profiles say how.  Without a profile, a model chooses its maps on the pairs themselves, if there are
        30 or more.  One line on the standard error says which way was taken.  A list is aligned as one text.

        Args:
            source: one line, or several: raw text, as the model's text recipe reads it; without a recipe, text as for
                :meth:`maps`.
            target: likewise.
            profile: a profile's file; ``none`` ignores those beside the checkpoints.
            word_table: how many passes to count a word table of the text in, 0 for none; default: as norm-align does.
            word_table_file: one that ``norm-align --save-word-table`` wrote; it is used instead of the text's own.
            max_tokens: tokens of a batch, pads included.
            scores: score the pairs and their words, too (docs/scores.md).
            source_contribution: with the contribution of the source (ALTI+), which takes longer; implies ``scores``.
            source_words: for lists: the words of each source, if they are given rather than found.
            target_words: likewise.

        Returns:
            The alignment; for lists all alignments, in the order of the lists.  In a list, a pair that is empty or
            longer than the models take has no links, and its ``status`` says why; one warning counts such pairs.

        Raises:
            InputError: a sentence is not text; a single one is empty or too long; lists are empty or differ in length;
                or a profile or word table cannot be used.
            UsageError: a profile of one direction for two models, ``word_table`` with ``word_table_file``, or a number
                out of its range.
        """
        overrides = _overrides(word_table, word_table_file)
        align = partial(self._aligner.align, scores=scores, source_contribution=source_contribution)
        if target is None:
            raise InputError("target: None: expected the translation of source, or a list of them")
        if not is_one_pair(source, target):
            pairs = given_pairs(source, target, blanks=True)
            words = source_words, target_words
            return align(pairs, overrides, profile, max_tokens, words=words)
        pair = GivenPair(source, target)  # type: ignore[arg-type]
        (alignment,) = align([pair], overrides, profile, max_tokens, quiet=True)
        if not alignment.ok:
            raise InputError(f"the sentence pair is {alignment.status}: expected one that the model can align")
        return alignment

    @overload
    def translate(  # type: ignore[overload-overlap]  # a string is a list of strings too: it is one line
        self, source: str, *, beam: int = ..., **options: Unpack[AlignOptions]
    ) -> Alignment: ...

    @overload
    def translate(self, source: Iterable[str], *, beam: int = ..., **options: Unpack[AlignOptions]) -> Alignments: ...

    def translate(
        self, source: str | Iterable[str], *, beam: int = 5, **options: Unpack[AlignOptions]
    ) -> Alignment | Alignments:
        """Translate one line, or several, by fairseq's beam search, and align the translations.

        Args:
            source: raw text, as the model's text recipe reads it.
            beam: beam size.
            **options: of :meth:`align`.

        Returns:
            The alignment of source and translation, as :meth:`align` makes it, with the ``score``.  In a list, a
            line that is empty or too long has an empty translation, and its ``status`` says why.

        Raises:
            InputError: a line is not text; a single one is empty or too long; or as for :meth:`align`.
            UsageError: ``beam`` is below 1; or as for :meth:`align`.
        """
        check_whole("beam", beam)
        signature(self.align).bind(source, None, **options)  # raises now, not after hours of translation
        _overrides(options.get("word_table"), options.get("word_table_file"))
        max_tokens = options.get("max_tokens", MAX_TOKENS)
        check_whole("max_tokens", max_tokens)
        is_one = isinstance(source, str)
        lines = given_lines([source] if isinstance(source, str) else source, "source")
        translations = self.translator.translate(lines, beam, max_tokens)
        if not is_one:
            aligned = self.align(lines, [translation.text for translation in translations], **options)
            scored = (replace(pair, score=translation.score) for pair, translation in zip(aligned, translations))
            return Alignments(scored, aligned.signature)
        (translation,) = translations
        if translation.score is None:
            raise InputError("source: empty, or longer than the model takes: expected one that it can translate")
        return replace(self.align(lines[0], translation.text, **options), score=translation.score)

    def transfer_markup(
        self, sources: Iterable[str], targets: Iterable[str] | None = None, syntax: str = "xml", **options: Any
    ) -> list[str]:
        """Put the inline tags of each source line onto its translation (alignment_eval.transfer.markup).

        Args:
            sources: raw lines with inline markup.
            targets: their translations, plain text; None: the model translates.
            syntax: ``xml`` or ``html``.
            **options: of :meth:`align`, or without targets of :meth:`translate`.

        Returns:
            The targets with the tags of their sources; characters that the syntax reserves are escaped.

        Raises:
            InputError: a line's tags do not balance, a target has tags; or as for :meth:`align`.
            UsageError: an unknown syntax; or as for :meth:`align`.
        """
        known = check_syntax(syntax)
        lines = given_lines(sources, "sources")
        plain = [plain_text(line, known, name=f"sources[{k}]") for k, line in enumerate(lines)]
        aligned = self.translate(plain, **options) if targets is None else self.align(plain, targets, **options)
        pairs = enumerate(zip(lines, aligned))
        return [with_markup(line, pair, known, name=f"targets[{k}]") for k, (line, pair) in pairs]

    def project(
        self, labels: Iterable[Sequence[str]], sources: Iterable[str], targets: Iterable[str], **options: Any
    ) -> list[list[tuple[str, str]]]:
        """Carry BIO labels of source words over to target words (alignment_eval.transfer.labels).

        Args:
            labels: of each source, one label for each word that blanks separate.
            sources: the source lines.
            targets: their translations.
            **options: of :meth:`align`.

        Returns:
            For each pair the target words, each with its label.

        Raises:
            InputError: labels and words differ in number, a label is not BIO; or as for :meth:`align`.
        """
        lines = given_lines(sources, "sources")
        words, of_words = [[line[start:end] for start, end in blank_spans(line)] for line in lines], list(labels)
        if len(of_words) != len(lines):
            raise InputError(f"labels of {len(of_words)} sentences, but {len(lines)} sources: expected as many")
        for number, (own, of_line) in enumerate(zip(of_words, words)):
            check_labels(own, of_line, f"labels[{number}]")
        return with_labels(of_words, self.align(lines, targets, source_words=words, **options))

    @cached_property
    def _aligner(self) -> ProfileAligner:
        return ProfileAligner([m.direction for m in self.with_reverse], [m.identity for m in self.with_reverse])


def _overrides(word_table: int | None, word_table_file: str | Path | None) -> Overrides:
    """What a caller states besides the profile; raises UsageError as Overrides."""
    return Overrides(
        word_table_passes=word_table, word_table_file=None if word_table_file is None else str(word_table_file)
    )
