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
from alignment_eval.extraction.corpus import DirectedLinks, DirectedPair, align_corpus, read_direction
from alignment_eval.extraction.defaults import (
    ALONE,
    PRODUCT,
    both_directions,
    has_formed,
    single_rule,
)
from alignment_eval.extraction.extract import WordLinks
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.rules import rule_of
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.selection.profile import Profile, by_default, together

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

    Args:
        shares: two-way shares of any word pairs, from 0 to 1.

    Raises:
        InputError: none is above 0.
    """
    falling = np.sort(shares[shares > 0])[::-1]
    if not len(falling):
        raise InputError("no word pair has a share above 0: expected maps of sentence pairs to estimate a share on")
    found, drawn = np.cumsum(falling), np.arange(1, len(falling) + 1)
    best = np.max(found / (drawn + BETA**2 * found[-1]))
    return float(min(best, falling[0]))  # equal shares may sum to a rounding more


def estimated_share(pairs: Iterable[DirectedPair], method: AlignmentMethod) -> float:
    """:func:`best_share` of the word maps that a method reads its links from; the share of its rule is not read.

    Args:
        pairs: sentence pairs as :func:`alignment_eval.extraction.corpus.align_corpus` takes them.
        method: reads word maps by a rule of two-way shares.

    Raises:
        InputError: as that function and :func:`best_share`.
        UsageError: the rule reads no two-way shares.
    """
    two_way = rule_of(method.forward.rule).two_way
    if two_way is None:
        raise UsageError(
            f"rule {method.forward.rule} reads no two-way shares: expected one that does, such as two-way=0.3"
        )
    maps = (pair.links.shares[:, :-1] for pair in align_corpus(pairs, method) if isinstance(pair.links, WordLinks))
    return best_share(np.concatenate([np.empty(0), *(two_way.shares(one).ravel() for one in maps)]))


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
    pairs: Mapping[int, DirectedLinks] = field(default_factory=dict)

    @classmethod
    def of(cls, profile: Profile, sentences: Iterable[SentenceMaps]) -> Calibration:
        """The profile, and the sentence pairs that it was chosen on; their maps are read and released."""
        maps = profile.streamed.forward
        return cls(profile, {sentence.id: read_direction(sentence, maps) for sentence in sentences})

    @property
    def enough_words(self) -> bool:
        """Whether the pairs have enough words to estimate a share on."""
        sides = (side for pair in self.pairs.values() for side in (pair.sentence.source, pair.sentence.target))
        return sum(side.word_count for side in sides) >= FEWEST_WORDS

    @property
    def estimated(self) -> bool:
        """Whether the profile's share is not the default."""
        return self.profile.streamed.forward.rule != single_rule(ALONE)

    def with_share(self) -> Calibration:
        """The same with the share of the profile estimated on the pairs.

        The default remains if the estimate is near, if the pairs have too few words, or if the model's maps have not
        formed.
        """
        maps = self.profile.streamed.forward
        if not (has_formed(maps) and self.enough_words):
            return self
        share = estimated_share(((pair, None) for pair in self.pairs.values()), self.profile.streamed)
        if abs(share - ALONE) < FAR:
            return self
        alone, streamed = by_default(maps, rounded(share))
        return replace(self, profile=replace(self.profile, alone=alone, streamed=streamed))


def profiles_together(found: Sequence[Calibration]) -> list[Profile]:
    """The profiles of one model, or of two; two that were chosen on the same pairs get a method for both.

    Its share is estimated if that of one of the models is not the default.
    """
    profiles = [one.profile for one in found]
    if len(found) < 2 or not all(one.pairs for one in found):
        return profiles
    share = PRODUCT
    forward, reverse = found
    common = [(pair, reverse.pairs[id_]) for id_, pair in forward.pairs.items() if id_ in reverse.pairs]
    if common and (forward.estimated or reverse.estimated):
        maps = forward.profile.streamed.forward, reverse.profile.streamed.forward
        share = rounded(estimated_share(common, both_directions(*maps, lexicon=False)))
    return [together(mine, other, share) for mine, other in (profiles, profiles[::-1])]
