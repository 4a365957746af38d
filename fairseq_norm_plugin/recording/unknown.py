"""Counts unknown tokens, and the sentences whose words they make uncertain."""

from __future__ import annotations

import logging
from collections import Counter

from alignment_eval.maps.subwords import UNKNOWN
from fairseq_norm_plugin.text.tokens import Spelling

logger = logging.getLogger(__name__)

#: A larger share of unknown tokens suggests that the text does not suit the model, such as words instead of subwords.
SUSPICIOUS_UNKNOWN = 0.05

_ADVICE = "; check that the text is split into the model's subwords"


class UnknownTokens:
    """Counts the unknown tokens of sentence pairs."""

    def __init__(self) -> None:
        self._sentences = self._left_out = 0
        self._tokens: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._uncertain: Counter[str] = Counter()

    def add(self, source: Spelling, target: Spelling) -> None:
        """Count a sentence pair."""
        self._sentences += 1
        self._left_out += not (source.certain and target.certain)
        for name, side in (("source", source), ("target", target)):
            self._tokens[name] += len(side.side.tokens)
            self._unknown[name] += side.unknown
            self._uncertain[name] += not side.certain

    def warn(self) -> None:
        """Log the counts, if there are unknown tokens."""
        for name, tokens in self._tokens.items():
            if unknown := self._unknown[name]:
                share = unknown / tokens
                advice = _ADVICE if share > SUSPICIOUS_UNKNOWN else ""
                logger.warning(
                    "%d of %d %s tokens (%.1f %%) are %s%s", unknown, tokens, name, 100 * share, UNKNOWN, advice
                )
        if self._left_out:
            options = [f"--norm-{name}-text" for name in ("source", "target") if self._uncertain[name]]
            logger.warning(
                "%d of %d sentences (%.1f %%) get no links, because %s in them may be a piece of a word, which would "
                "shift all later words; give the text that was binarised (%s)",
                *(self._left_out, self._sentences, 100 * self._left_out / self._sentences, UNKNOWN),
                ", ".join(options),
            )
