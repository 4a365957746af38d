"""Word alignments of sentence pairs by the models' profiles, as norm-align makes them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Optional

from tqdm import tqdm

from alignment_eval.display.alignment import Alignment, Alignments
from alignment_eval.errors import InputError, warn_on_stderr
from alignment_eval.extraction.corpus import AlignedPair
from alignment_eval.selection.chosen import chosen_method
from alignment_eval.signature import signature
from fairseq_norm_plugin.align.profiles import find_profiles
from fairseq_norm_plugin.aligning.aligner import Aligner
from fairseq_norm_plugin.aligning.checking import mismatch_warning
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.aligning.mismatch import SAMPLE
from fairseq_norm_plugin.aligning.text import TokenPair
from fairseq_norm_plugin.api.sentences import GivenPair, words_of_text

#: Pairs that are sorted by length together, as norm-align's ``--window`` has it.
_WINDOW = 10_000


class ProfileAligner:
    """Aligns sentence pairs by the method of the models' profiles, and says once which one that is.

    Args:
        directions: the source-target model, and the target-source model if there is one.
        models: their hashes.
    """

    def __init__(self, directions: Sequence[Direction], models: Sequence[str]) -> None:
        self._directions = directions
        self._models = models
        self._said = ""

    def one(self, given: GivenPair, profile: Optional[str], max_tokens: int) -> Alignment:
        """The alignment of one pair; arguments and errors as for :meth:`many`.

        Raises:
            InputError: the pair cannot be aligned.
        """
        (alignment,) = self._align(_token_pairs([given]), profile, max_tokens, quiet=True)
        if not alignment.ok:
            raise InputError(f"the sentence pair is {alignment.status}: expected one that the model can align")
        return alignment

    def many(self, given: Iterator[GivenPair], profile: Optional[str], max_tokens: int) -> Alignments:
        """The alignments of many pairs, in their order, with a progress bar on a terminal.

        Args:
            given: the pairs, all of text.
            profile: a profile's file, ``none`` for no profile, None for those beside the checkpoints.
            max_tokens: tokens of a batch, pads included.

        Raises:
            InputError: a sentence is given as token ids, or a profile cannot be used.
            UsageError: a profile of one direction for two models.
        """
        return self._align(_token_pairs(given), profile, max_tokens, quiet=False)

    def _align(self, pairs: Sequence[TokenPair], profile: Optional[str], max_tokens: int, quiet: bool) -> Alignments:
        profiles, sources = find_profiles(self._directions, self._models, pairs, profile, max_tokens)
        chosen = chosen_method(profiles, sources, len(pairs))
        if chosen.reason != self._said:
            self._said = chosen.reason
            print(f"align: {chosen.reason}", file=sys.stderr)
        if len(pairs) >= SAMPLE and (warning := mismatch_warning(pairs, len(pairs), self._directions[0], max_tokens)):
            warn_on_stderr(warning)
        aligner = Aligner(chosen.method, self._directions, max_tokens)
        found = _align_all(aligner, pairs, quiet)
        alignments = []
        for (source, target), aligned in zip(pairs, found):
            words = self._directions[0].words(source, 0), self._directions[0].words(target, 1)
            alignments.append(Alignment.of(words[0], words[1], aligned.links, aligned.status))
        signed = signature(sentences=len(pairs), **chosen.method.fields(), **chosen.fields)
        return Alignments(alignments, signed)


def _token_pairs(given: Iterable[GivenPair]) -> list[TokenPair]:
    pairs = []
    for pair in given:
        for sentence, name in zip((pair.source, pair.target), pair.names):
            if not isinstance(sentence, str):
                raise InputError(f"{name}: {sentence!r:.40}: expected text, whose words are aligned")
        pairs.append((words_of_text(str(pair.source)), words_of_text(str(pair.target))))
    return pairs


def _align_all(aligner: Aligner, pairs: Sequence[TokenPair], quiet: bool) -> list[AlignedPair]:
    """The alignments in the order of the pairs; ``quiet``: neither a progress bar nor warnings of the text."""
    windows = _windows(pairs, aligner.counted_pairs or _WINDOW)
    disable = True if quiet else None  # None: unless there is a terminal
    with tqdm(total=len(pairs), unit=" pairs", disable=disable, leave=False, file=sys.stderr) as progress:
        found = {aligned.id: aligned for aligned in aligner.align(windows, progress.update)}
    if not quiet:
        for warning in (*_left_out(found.values()), *aligner.unknown_warnings()):
            warn_on_stderr(warning)
    return [found[number] for number in range(len(pairs))]


def _windows(pairs: Sequence[TokenPair], size: int) -> Iterator[dict[int, TokenPair]]:
    for start in range(0, len(pairs), size):
        yield dict(enumerate(pairs[start : start + size], start))


def _left_out(found: Collection[AlignedPair]) -> Iterator[str]:
    """Warnings of the pairs that were not aligned."""
    for reason, count in Counter(pair.status for pair in found if pair.links is None).items():
        first = min(pair.id for pair in found if pair.status == reason)
        yield f"{count} sentence pairs are {reason} and have no links (the first is number {first}, from 0)"
