"""Word alignments of sentence pairs, with their links, tables, plots and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from alignment_eval.errors import UsageError
from alignment_eval.extraction.corpus import AlignedPair
from alignment_eval.extraction.pair_scores import FIGURES, OF_WORDS, PairScores
from alignment_eval.figures.drawing import Panel, draw_map
from alignment_eval.figures.names import shortened
from alignment_eval.files import check_new, new_file, write_lines
from alignment_eval.links.sets import Link
from alignment_eval.links.table import TYPES, json_line, row_numbers, write_table
from alignment_eval.links.write import format_pharaoh_line, format_scored_line
from alignment_eval.maps.sentence import SentenceSide
from alignment_eval.report.notebook_tables import heat_table, text_of, text_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

#: Characters of a line, counted in code points from 0; the end is exclusive.
Span = tuple[int, int]
#: The types in Arrow of the columns of a row with scores.
TYPES_WITH_SCORES = {
    **TYPES,
    **dict.fromkeys(FIGURES, TYPES["score"]),
    **dict.fromkeys(OF_WORDS, TYPES["confidences"]),
}
#: How many pairs a notebook cell lists.
_LISTED = 10


class SpannedText(Protocol):
    """A line, with the spans of its words."""

    @property
    def text(self) -> str:
        """The line."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The characters of each word."""


@dataclass(frozen=True, repr=False)
class Alignment:
    """The word alignment of one sentence pair.

    Attributes:
        source: the source line.
        target: the target line.
        source_spans: the characters of each source word in the line: start and end, counted in code points from 0.
        target_spans: those of each target word.
        links: pairs (source word, target word), counted from 0, in ascending order.
        confidences: each link's share of its target word's row, from 0 to 1; empty if the links have none, as after
            a symmetrisation.
        status: ``ok``, or why there are no links, such as ``empty``.
        score: the model's mean log probability of a target token (base e), if it translated the source; else None.
        scores: what the pair and its words are worth (docs/scores.md), if it was asked for.
    """

    source: str
    target: str
    source_spans: tuple[Span, ...]
    target_spans: tuple[Span, ...]
    links: list[Link]
    confidences: dict[Link, float] = field(default_factory=dict)
    status: str = "ok"
    score: float | None = None
    scores: PairScores | None = None

    @classmethod
    def of(cls, source: SpannedText, target: SpannedText, pair: AlignedPair) -> Alignment:
        """The alignment that was extracted for two lines."""
        links = pair.links
        of_links: list[Link] = [] if links is None else sorted(links.links)
        confidences = {} if links is None or links.shares is None else links.confidences()
        lines = source.text, target.text, source.spans, target.spans
        return cls(*lines, of_links, confidences, pair.status, scores=pair.scores)

    @property
    def source_words(self) -> tuple[str, ...]:
        """The source words."""
        return tuple(self.source[start:end] for start, end in self.source_spans)

    @property
    def target_words(self) -> tuple[str, ...]:
        """The target words."""
        return tuple(self.target[start:end] for start, end in self.target_spans)

    @property
    def ok(self) -> bool:
        """Whether the pair was aligned."""
        return self.status == "ok"

    def to_pharaoh(self, confidences: bool = False) -> str:
        """Format the links as one line, ``0-0 1-2``; with ``confidences`` ``0-0:0.97… 1-2:0.41…``.

        Raises:
            UsageError: ``confidences`` is true, and the links have none.
        """
        if confidences and len(self.confidences) < len(self.links):
            raise UsageError(
                "these links have no confidences (only links read from maps have); write them without confidences"
            )
        return format_scored_line(self.confidences) if confidences else format_pharaoh_line(self.links)

    def to_row(self) -> dict[str, Any]:
        """The alignment as JSON and tables hold it (docs/formats.md).

        Returns:
            ``source``, ``target``, ``source_spans`` and ``target_spans`` ([[start, end], …]), ``links`` ([[i, j], …]),
            ``confidences`` (one for each link; None where links have none), ``status``, ``score``; if the pair was
            scored, also each of its ``scores``.
        """
        has_confidences = len(self.confidences) == len(self.links)
        return {
            "source": self.source,
            "target": self.target,
            "source_spans": [list(span) for span in self.source_spans],
            "target_spans": [list(span) for span in self.target_spans],
            "links": [list(link) for link in self.links],
            "confidences": [self.confidences[link] for link in self.links] if has_confidences else None,
            "status": self.status,
            "score": self.score,
            **({} if self.scores is None else self.scores.to_row()),
        }

    def to_frame(self) -> pd.DataFrame:
        """Make a table of the links, one row for each.

        Returns:
            Columns ``source`` and ``target`` (words), ``source_index`` and ``target_index`` (from 0), ``confidence``
            (NaN where links have none).
        """
        import pandas as pd

        source, target = self.source_words, self.target_words
        return pd.DataFrame(
            {
                "source": [source[i] for i, _ in self.links],
                "target": [target[j] for _, j in self.links],
                "source_index": np.array([i for i, _ in self.links], dtype=np.int64),
                "target_index": np.array([j for _, j in self.links], dtype=np.int64),
                "confidence": np.array([self.confidences.get(link, np.nan) for link in self.links], dtype=np.float64),
            }
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the links as marked cells; darker cells have higher confidence, which a colour bar shows.

        Args:
            ax: where to plot; None: on a new figure (see :meth:`alignment_eval.report.map_view.DisplayMaps.plot`).

        Returns:
            The Axes of the plot.

        Raises:
            InputError: a side has no words.
        """
        source, target = map(SentenceSide.of_words, (self.source_words, self.target_words))
        bar = "confidence" if self.confidences else None
        return draw_map(Panel("", self._strengths(), frozenset(self.links)), source, target, ax, bar)

    def _strengths(self) -> NDArray[np.float64]:
        """The confidence of each link, 1 where it has none, [target words, source words]."""
        strengths = np.zeros((len(self.target_spans), len(self.source_spans)))
        for i, j in self.links:
            strengths[j, i] = self.confidences.get((i, j), 1.0)
        return strengths

    def __repr__(self) -> str:
        found = repr(shortened(self.to_pharaoh().split())) if self.ok else f"status={self.status!r}"
        return f"Alignment({shortened(self.source_words)!r}, {shortened(self.target_words)!r}, {found})"

    def _repr_html_(self) -> str:
        """A table for a notebook that shows the confidence of each link in %, or a mark if it has none.

        If the pair was scored, words are shaded that the other side does not say.
        """
        if not self.ok:
            return f"<p>{text_of(repr(self))}</p>"
        strengths = self._strengths()
        texts = [["" for _ in self.source_spans] for _ in self.target_spans]
        for link in self.links:
            texts[link[1]][link[0]] = f"{100 * self.confidences[link]:.0f}" if link in self.confidences else "●"
        words = self.source_words, self.target_words
        if self.scores is None or self.scores.unsupported is None:
            return heat_table(*words, strengths.tolist(), texts)
        marks = self.scores.omitted_words or [], self.scores.unsupported_words or []
        answers = f"<p>unsupported {self.scores.unsupported:.2f}, omitted {self.scores.omitted:.2f}</p>"
        return answers + heat_table(*words, strengths.tolist(), texts, marks)


class Alignments(Sequence[Alignment]):
    """The word alignments of a list of sentence pairs, in the order of the list.

    Attributes:
        signature: how they were made: maps, rule, profile, word table; empty if unknown.
    """

    def __init__(self, alignments: Iterable[Alignment], signature: str = "") -> None:
        self._alignments = tuple(alignments)
        self.signature = signature

    @overload
    def __getitem__(self, index: int) -> Alignment: ...

    @overload
    def __getitem__(self, index: slice) -> Alignments: ...

    def __getitem__(self, index: int | slice) -> Alignment | Alignments:
        found = self._alignments[index]
        return found if isinstance(found, Alignment) else Alignments(found, self.signature)

    def __len__(self) -> int:
        return len(self._alignments)

    def __iter__(self) -> Iterator[Alignment]:
        return iter(self._alignments)

    def to_pharaoh(self, path: str | Path, confidences: bool = False, overwrite: bool = False) -> None:
        """Write the links to a file, one line for each pair.

        The file is written completely or not at all.  A pair that was not aligned has a blank line.

        Args:
            path: the file.
            confidences: write ``i-j:p`` instead of ``i-j``.
            overwrite: replace an existing file.

        Raises:
            InputError: the file already exists, or cannot be written.
            UsageError: ``confidences`` is true, and a pair has links without.
        """
        check_new(path, overwrite)
        write_lines(path, (alignment.to_pharaoh(confidences) for alignment in self))

    def to_jsonl(self, path: str | Path, overwrite: bool = False) -> None:
        """Write a JSON object a line for each pair (:meth:`Alignment.to_row`); errors as for :meth:`to_pharaoh`."""
        check_new(path, overwrite)
        write_lines(path, (json_line(alignment.to_row()) for alignment in self))

    def to_parquet(self, path: str | Path, overwrite: bool = False) -> None:
        """Write a table with the same columns, and ``id``, the pair's number; errors as for :meth:`to_pharaoh`."""
        check_new(path, overwrite)
        with new_file(path) as temporary:
            types = TYPES_WITH_SCORES if self._scored else TYPES
            write_table(temporary, (alignment.to_row() for alignment in self), row_numbers(len(self)), types)

    def to_frame(self) -> pd.DataFrame:
        """Make a table of the pairs, one row for each, with the columns of :meth:`Alignment.to_row`."""
        import pandas as pd

        return pd.DataFrame([alignment.to_row() for alignment in self])

    @property
    def scores(self) -> pd.DataFrame:
        """A table of the scores of the pairs, one row for each; NaN for a pair that was not aligned.

        Returns:
            Columns ``log_prob``, ``reverse_log_prob``, ``confidence``, ``unlinked_source``, ``unlinked_target``,
            ``source_contribution``, ``unsupported``, ``omitted`` (:class:`~alignment_eval.extraction.pair_scores`),
            and ``status``.

        Raises:
            UsageError: the pairs were not scored.
        """
        import pandas as pd

        if not self._scored:
            raise UsageError("these pairs have no scores; align them with scores=True")
        rows = [[*(getattr(a.scores, name) for name in FIGURES), a.status] for a in self]
        types = {**dict.fromkeys(FIGURES, "float64"), "status": "str"}
        return pd.DataFrame(rows, columns=list(types)).astype(types)

    @property
    def _scored(self) -> bool:
        return all(alignment.scores is not None for alignment in self)

    def __repr__(self) -> str:
        left_out = sum(not alignment.ok for alignment in self)
        counts = f"{len(self)} pairs, {sum(len(alignment.links) for alignment in self)} links"
        return f"Alignments({counts}{f', not aligned: {left_out}' if left_out else ''})"

    def _repr_html_(self) -> str:
        """A table of the first pairs and their links, for a notebook."""
        rows = [
            (str(k), shortened(a.source_words), shortened(a.target_words), a.to_pharaoh() if a.ok else a.status)
            for k, a in enumerate(self._alignments[:_LISTED])
        ]
        more = f"<p>and {len(self) - _LISTED} more</p>" if len(self) > _LISTED else ""
        return f"<p>{text_of(repr(self))}</p>{text_table(('', 'source', 'target', 'links'), rows)}{more}"
