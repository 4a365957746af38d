"""How the links of a sentence become a line."""

from __future__ import annotations

from dataclasses import dataclass

from alignment_eval.extraction.extract import SentenceLinks
from alignment_eval.links.write import format_pharaoh_line, format_scored_line


@dataclass(frozen=True)
class LineStyle:
    """What is written for each link that was extracted.

    Attributes:
        confidences: write ``i-j:p`` instead of ``i-j``.
        min_confidence: omit links of a smaller confidence; None: write all.
    """

    confidences: bool = False
    min_confidence: float | None = None

    def line(self, links: SentenceLinks | None) -> str:
        """The line of a sentence; empty if the sentence is not aligned.

        Raises:
            UsageError: the options need confidences, and the links have none.
        """
        if links is None:
            return ""
        if not self.confidences and self.min_confidence is None:
            return format_pharaoh_line(links.links)
        kept = links.confidences(self.min_confidence or 0)
        return format_scored_line(kept) if self.confidences else format_pharaoh_line(kept)
