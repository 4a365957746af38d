"""Counts unknown tokens, and the sentences whose words they make uncertain."""

from __future__ import annotations

from collections import Counter

from alignment_eval.maps.subwords import UNKNOWN
from fairseq_norm_plugin.text.tokens import Spelling

#: A larger share of unknown tokens suggests that the text does not suit the model, such as words instead of subwords.
SUSPICIOUS = 0.05


class UnknownTokens:
    """Counts the unknown tokens of sentence pairs.

    Attributes:
        tokens: the number of tokens so far, by side.
        unknown: how many of them are unknown.
    """

    def __init__(self) -> None:
        self._sentences = self._left_out = 0
        self.tokens: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self._uncertain: Counter[str] = Counter()

    def add(self, side: str, tokens: int, unknown: int) -> None:
        """Count a side of a pair."""
        self.tokens[side] += tokens
        self.unknown[side] += unknown

    def add_pair(self, source: Spelling, target: Spelling) -> None:
        """Count a pair of a binarised text, whose words may be uncertain."""
        self._sentences += 1
        self._left_out += not (source.certain and target.certain)
        for name, side in (("source", source), ("target", target)):
            self.add(name, len(side.side.tokens), side.unknown)
            self._uncertain[name] += not side.certain

    def warning(self) -> str | None:
        """A warning if many tokens so far are unknown, with the shares of all such sides."""
        shares = [
            f"{unknown} of {self.tokens[name]} {name} subwords ({100 * unknown / self.tokens[name]:.1f} %)"
            for name, unknown in self.unknown.items()
            if unknown > SUSPICIOUS * self.tokens[name]
        ]
        if not shares:
            return None
        return (
            f"unknown to the model so far: {', '.join(shares)}; check that language, tokenisation, case and BPE codes "
            f"are those of its training"
        )

    def uncertain_warning(self) -> str | None:
        """A warning if unknown tokens make the words of sentences uncertain."""
        if not self._left_out:
            return None
        options = [f"--norm-{name}-text" for name in ("source", "target") if self._uncertain[name]]
        return (
            f"{self._left_out} of {self._sentences} sentences ({100 * self._left_out / self._sentences:.1f} %) get no "
            f"links, because {UNKNOWN} in them may be a piece of a word, which would shift all later words; give the "
            f"text that was binarised ({', '.join(options)})"
        )
