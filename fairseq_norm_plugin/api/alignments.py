"""Align sentence pairs by the models' profiles, as norm-align does."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

from tqdm import tqdm

from alignment_eval.display.alignment import Alignment, Alignments
from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from alignment_eval.extraction.corpus import AlignedPair
from alignment_eval.extraction.lexicon import Lexicon
from alignment_eval.selection.chosen import ChosenMethod, Overrides, chosen_method, few_pairs_warning
from alignment_eval.signature import Value, signature
from fairseq_norm_plugin.aligning.aligner import Aligner
from fairseq_norm_plugin.aligning.checking import mismatch_warning, sampled_pairs
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.aligning.mismatch import SAMPLE
from fairseq_norm_plugin.aligning.profiles import find_profiles
from fairseq_norm_plugin.aligning.text import TokenPair
from fairseq_norm_plugin.api.encoding import MAX_TOKENS, check_max_tokens
from fairseq_norm_plugin.api.lexicons import LexiconCache
from fairseq_norm_plugin.api.sentences import GivenPair

#: Pairs that are sorted by length together, like the default of ``norm-align --window``.
_WINDOW = 10_000


@dataclass(frozen=True)
class AlignOptions:
    """How pairs are aligned; see :meth:`fairseq_norm_plugin.api.model.NormModel.align`.

    Attributes:
        profile: a profile's file, ``none`` for no profile, None for those beside the checkpoints.
        lexicon: passes over a lexicon of the text; None: as the profiles say.
        lexicon_file: the file of another lexicon.
        max_tokens: tokens of a batch, pads included.

    Raises:
        UsageError: a number is out of its range, or both lexicons are given.
    """

    profile: Union[str, Path, None] = None
    lexicon: Optional[int] = None
    lexicon_file: Union[str, Path, None] = None
    max_tokens: int = MAX_TOKENS

    def __post_init__(self) -> None:
        check_max_tokens(self.max_tokens)
        if self.lexicon is not None and self.lexicon < 0:
            raise UsageError(f"lexicon {self.lexicon}: expected a number of passes, 1 or more, or 0 for no lexicon")
        if self.lexicon and self.lexicon_file is not None:
            raise UsageError(
                f"lexicon {self.lexicon} beside lexicon_file {self.lexicon_file}: a lexicon of the text is not counted "
                f"then; give one of the two"
            )

    def overrides(self) -> Overrides:
        """What is stated beside the profiles."""
        if self.lexicon_file is None:
            return Overrides(lexicon_passes=self.lexicon)
        return Overrides(lexicon_passes=0, lexicon_file=str(self.lexicon_file))


class ProfileAligner:
    """Aligns sentence pairs by the method of the models' profiles, and reports that method once.

    Args:
        directions: the source-target model, and the target-source model if there is one.
        models: their hashes.
    """

    def __init__(self, directions: Sequence[Direction], models: Sequence[str]) -> None:
        self._directions = directions
        self._models = models
        self._lexicons = LexiconCache()
        self._said = ""

    def one(self, given: GivenPair, options: AlignOptions) -> Alignment:
        """Align one pair; errors as for :meth:`many`.

        Raises:
            InputError: the pair cannot be aligned.
        """
        (alignment,) = self._align(_token_pairs([given], self._directions[0]), options, quiet=True)
        if not alignment.ok:
            raise InputError(f"the sentence pair is {alignment.status}: expected one that the model can align")
        return alignment

    def many(self, given: Iterator[GivenPair], options: AlignOptions) -> Alignments:
        """Align many pairs, in their order, with a progress bar on a terminal.

        Args:
            given: the pairs, all of text.
            options: how.

        Raises:
            InputError: a sentence is given as token ids, or a profile or lexicon cannot be used.
            UsageError: a profile of one direction for two models.
        """
        return self._align(_token_pairs(given, self._directions[0]), options, quiet=False)

    def _align(self, pairs: Sequence[TokenPair], options: AlignOptions, quiet: bool) -> Alignments:
        lexicon, lexicon_fields = self._lexicon(options)
        chosen = self._choose(pairs, options)
        if chosen.reason != self._said:
            self._said = chosen.reason
            print(f"align: {chosen.reason}", file=sys.stderr)
        first = self._directions[0]
        if len(pairs) >= SAMPLE and (
            warning := mismatch_warning(sampled_pairs(pairs, len(pairs), first), first, options.max_tokens)
        ):
            warn_on_stderr(warning)
        aligner = Aligner(chosen.method, self._directions, options.max_tokens, lexicon, _warn_of_few)
        found = _align_all(aligner, pairs, quiet)
        fields = {**chosen.method.fields(), **lexicon_fields, **chosen.fields}
        return Alignments(map(self._alignment, pairs, found), signature(sentences=len(pairs), **fields))

    def _lexicon(self, options: AlignOptions) -> tuple[Optional[Lexicon], dict[str, Value]]:
        """The lexicon that is given, and what the signature says of it."""
        if options.lexicon_file is None:
            return None, {}
        lexicon, file_hash = self._lexicons.read(Path(options.lexicon_file))
        return lexicon, {"lexicon_file": file_hash}

    def _choose(self, pairs: Sequence[TokenPair], options: AlignOptions) -> ChosenMethod:
        named = None if options.profile is None else str(options.profile)
        profiles, sources = find_profiles(self._directions, self._models, pairs, named, options.max_tokens)
        chosen = chosen_method(profiles, sources, len(pairs), options.overrides())
        if options.lexicon_file is not None:
            chosen.method.check_lexicon()
        return chosen

    def _alignment(self, pair: TokenPair, aligned: AlignedPair) -> Alignment:
        source, target = (self._directions[0].words(tokens, which) for which, tokens in enumerate(pair))
        return Alignment.of(source, target, aligned.links, aligned.status)


def _token_pairs(given: Iterable[GivenPair], direction: Direction) -> list[TokenPair]:
    pairs: list[TokenPair] = []
    for pair in given:
        for sentence, name in zip((pair.source, pair.target), pair.names):
            if not isinstance(sentence, str):
                raise InputError(f"{name}: {sentence!r:.40}: expected text, since words are aligned")
        pairs.append((direction.read(str(pair.source), 0), direction.read(str(pair.target), 1)))
    return pairs


def _warn_of_few(lexicon: Lexicon) -> None:
    if warning := few_pairs_warning(lexicon.pairs):
        warn_on_stderr(warning)


def _align_all(aligner: Aligner, pairs: Sequence[TokenPair], quiet: bool) -> list[AlignedPair]:
    """The alignments in the order of the pairs; ``quiet``: without progress bar and warnings about the text."""
    windows = _windows(pairs, aligner.counted_pairs or _WINDOW)
    disable = True if quiet else None  # None: unless there is a terminal
    with tqdm(total=len(pairs), unit=" pairs", disable=disable, leave=False, file=sys.stderr) as progress:
        found = {aligned.id: aligned for aligned in aligner.align(windows, progress.update)}
    if not quiet:
        for warning in (*_left_out(found.values()), aligner.unknown_warning()):
            if warning:
                warn_on_stderr(warning)
    return [found[number] for number in range(len(pairs))]


def _windows(pairs: Sequence[TokenPair], size: int) -> Iterator[Iterator[tuple[int, TokenPair]]]:
    for start in range(0, len(pairs), size):
        yield enumerate(pairs[start : start + size], start)


def _left_out(found: Collection[AlignedPair]) -> Iterator[str]:
    """Warnings about pairs that were not aligned."""
    for reason, count in Counter(pair.status for pair in found if pair.links is None).items():
        first = min(pair.id for pair in found if pair.status == reason)
        yield f"sentence pairs that are {reason}: {count}, without links (the first is number {first}, from 0)"
