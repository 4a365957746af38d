"""Estimating without gold from which two-way share on word maps link words.

The two-way shares a of all word pairs of a text are read as if each were the probability of a link.  If the word pairs
of at least share t are linked, n of them, n links are drawn, Σ_{a≥t} a of them are expected to be right, and Σ a links
are expected to exist.  The expected F-measure is then (1 + β²) Σ_{a≥t} a / (n + β² Σ a), and the best t is taken.
β weighs recall against precision (van Rijsbergen, Information Retrieval, 1979, chapter 7).

The default shares (:mod:`alignment_eval.extraction.defaults`) are near the best for all models that were trained to
translate.  A model that was also trained to align draws sharper maps, and needs a larger share.  So the estimate counts
only where it is far from the default.  The default rules take t as their least share.  docs/reproduction.md has
the measurements behind the constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.corpus import DirectedPair, one_map, read_word_map
from alignment_eval.extraction.defaults import FEWEST_PAIRS, SHARE_ALONE, SINGLE_RULE, has_formed
from alignment_eval.extraction.extract import PairMap
from alignment_eval.extraction.method import AlignmentMethod, MapName
from alignment_eval.extraction.rules import rule_of
from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps, words_of
from alignment_eval.profiles.profile import Profile, by_default, calibrated, text_hash
from alignment_eval.profiles.search import aer_of_method, choose_by_agreement

#: How much more recall weighs than precision; below 1: precision weighs more.
BETA = 0.8
#: Estimates are rounded to multiples of this.
STEP = 0.05
#: An estimate for one direction replaces the default if it is at least this far from it.
FAR = 0.1
#: The fewest words, of both sides, that an estimate is made on: short sentences are aligned with larger shares.
FEWEST_WORDS = 2000


def best_share(shares: NDArray[np.float64]) -> float:
    """The share t of the largest expected F-measure F if all cells of at least t are links: t = F / (1 + β²).

    That is because one more cell of share a raises F exactly if a > F / (1 + β²) (for β = 1: Lipton et al. 2014,
    Optimal Thresholding of Classifiers to Maximize F1 Measure, theorem 1).  So t is at most 1 / (1 + β²).

    Raises:
        InputError: none is above 0.
    """
    falling = np.sort(shares[shares > 0])[::-1]
    if not len(falling):
        raise InputError("no word pair has a share above 0: expected maps of sentence pairs to estimate a share on")
    right, drawn = np.cumsum(falling), np.arange(1, len(falling) + 1)
    best = np.max(right / (drawn + BETA**2 * right[-1]))
    return float(min(best, falling[0]))  # equal shares may sum to a rounding more


def estimated_share(pairs: Iterable[DirectedPair], method: AlignmentMethod) -> float:
    """:func:`best_share` of the word maps that a method reads its links from; the share of its rule is not read.

    Raises:
        InputError: as that function and :func:`best_share`.
        UsageError: the rule reads no two-way shares.
    """
    two_way = rule_of(method.forward.rule).two_way
    if two_way is None:
        raise UsageError(
            f"rule {method.forward.rule} reads no two-way shares: expected one that does, such as two-way=0.3"
        )
    maps = (one_map(pair, method) for pair in pairs)
    shares = [two_way(word_map.shares[:, :-1]).ravel() for word_map in maps if word_map.scores is not None]
    return best_share(np.concatenate([np.empty(0), *shares]))


def rounded(share: float) -> float:
    """The nearest multiple of :data:`STEP`."""
    return round(round(share / STEP) * STEP, 2)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A profile, and what its maps say of the sentence pairs that it was chosen on.

    Attributes:
        profile: the profile.
        pairs: id -> the sentence pair, read by the profile's maps; empty if it was chosen elsewhere.
    """

    profile: Profile
    pairs: Mapping[int, PairMap] = field(default_factory=dict)

    @classmethod
    def read(cls, profile: Profile, sentences: Iterable[SentenceMaps]) -> Calibration:
        """The profile, and the sentence pairs that it was chosen on; their maps are read and released."""
        maps = profile.streamed.forward
        return cls(profile, {sentence.id: read_word_map(sentence, maps) for sentence in sentences})

    @classmethod
    def of(cls, profile: Profile, sentences: Iterable[SentenceMaps]) -> Calibration:
        """The same, with the share of the profile estimated on the pairs."""
        return cls.read(profile, sentences).with_share()

    @property
    def enough_words(self) -> bool:
        """Whether the pairs have enough words to estimate a share on."""
        sides = (side for pair in self.pairs.values() for side in (pair.sentence.source, pair.sentence.target))
        return sum(side.word_count for side in sides) >= FEWEST_WORDS

    @property
    def estimated(self) -> bool:
        """Whether the profile's share is not the default."""
        return self.profile.streamed.forward.rule != SINGLE_RULE

    def with_figure(self, gold: Sequence[GoldSentence]) -> Calibration:
        """The same with the AER of its links on a gold; pair k has ``gold[k]``."""
        pairs = [(pair, None) for pair in self.pairs.values()]
        figure = aer_of_method(self.profile.streamed, pairs, gold)
        return replace(self, profile=replace(self.profile, figure=figure))

    def with_share(self) -> Calibration:
        """The same with the share of the profile estimated on the pairs.

        The default remains if the estimate is near, if the pairs have too few words, or if the model's maps have not
        formed.
        """
        maps = self.profile.streamed.forward
        if not (has_formed(maps) and self.enough_words):
            return self
        share = estimated_share(((pair, None) for pair in self.pairs.values()), self.profile.streamed)
        if abs(share - SHARE_ALONE) < FAR:
            return self
        alone, streamed = by_default(maps, rounded(share))
        return replace(self, profile=replace(self.profile, alone=alone, streamed=streamed))


def calibration(
    sentences: Sequence[SentenceMaps], layers: Sequence[int], model: str, guided: Sequence[MapName] = ()
) -> Calibration:
    """The profile of a model by its training to align, else by the agreement of its own maps.

    If the sentence pairs are too few to compare maps on, it reads the upper layers.

    ``sentences`` are different pairs with the maps of all layers; ``layers`` are all decoder layers; ``guided`` are the
    maps that the model was trained to align with.
    """
    if len(sentences) < FEWEST_PAIRS:
        return Calibration(calibrated(None, layers, model, "", len(sentences), guided))
    agreement = None if guided else choose_by_agreement(sentences)
    text = text_hash((sentence.id, words_of(sentence)) for sentence in sentences)
    return Calibration.of(calibrated(agreement, layers, model, text, len(sentences), guided), sentences)
