"""Word alignments of sentence pairs: their links and confidences, their text, files, and why a link was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from alignment_eval.errors import UsageError
from alignment_eval.extraction.explain import Explanation, ReadMaps, explain
from alignment_eval.extraction.pair_scores import PAIR_SCORES, WORD_SCORES, PairScores
from alignment_eval.figures.maps import Panel, Picture, draw_maps
from alignment_eval.figures.notebook import cell, heat_table, paragraph, shortened, table
from alignment_eval.files import check_new, check_signed, json_line, new_file, write_signed
from alignment_eval.links.formats import Link, format_links
from alignment_eval.maps.sentence import SentenceSide, Span

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: How many pairs a notebook cell lists.
_LISTED = 10
_PAIRS = pa.list_(pa.list_(pa.int32()))
#: The types in Arrow of the columns of a table, and of those of scores.
TYPES = {
    "source": pa.string(),
    "target": pa.string(),
    "source_spans": _PAIRS,
    "target_spans": _PAIRS,
    "links": _PAIRS,
    "confidences": pa.list_(pa.float64()),
    "status": pa.string(),
    "score": pa.float64(),
}
_SCORES = {**dict.fromkeys(PAIR_SCORES, TYPES["score"]), **dict.fromkeys(WORD_SCORES, TYPES["confidences"])}
#: Rows that are written together, as a row group.
GROUP_ROWS = 100_000
#: Rows that are objects of Python at once: all of a window would take tens of MB.
_ROWS = 500


@dataclass(frozen=True, repr=False)
class Alignment:
    """The word alignment of one sentence pair.

    Attributes:
        source: the source line.
        target: the target line.
        source_spans: the characters of each source word in the line: start and end, counted in code points from 0.
        target_spans: those of each target word.
        links: pairs (source word, target word), counted from 0, in ascending order.
        confidences: how likely each link is right, from 0 to 1 (docs/questions.md); empty if the links have none, as
            after a symmetrisation.
        status: ``ok``, or why there are no links, such as ``empty``.
        score: the model's mean log probability of a target token (base e), if it translated the source; else None.
        marked: the target line with the markup of the source line, if it was asked for.
        scores: what the pair and its words are worth (docs/scores.md), if it was asked for.
        weights: what each link counts in markup, from 0 to 1: how sure the maps are without the order of words, which
            elements change; empty if they were not sharpened.
        id: the pair's number in the text, from 0.
        maps: the word maps that were read, if they are kept: those of the first 1,000 pairs of a list in Python,
            but not of pairs that were cut into sentences.
    """

    source: str
    target: str
    source_spans: tuple[Span, ...]
    target_spans: tuple[Span, ...]
    links: list[Link]
    confidences: dict[Link, float] = field(default_factory=dict)
    status: str = "ok"
    score: float | None = None
    marked: str | None = None
    scores: PairScores | None = None
    weights: dict[Link, float] = field(default_factory=dict, compare=False)
    id: int = field(default=0, compare=False)
    maps: ReadMaps | None = field(default=None, compare=False)

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
        """Format the links as one line, ``0-0 1-2``; with ``confidences`` ``0-0:0.97 1-2:0.41``.

        Raises:
            UsageError: ``confidences`` is true, and the links have none.
        """
        if confidences and len(self.confidences) < len(self.links):
            raise UsageError(
                "these links have no confidences (only links read from maps have); write them without confidences"
            )
        return format_links(self.links, scores=self.confidences if confidences else None)

    def to_row(self) -> dict[str, Any]:
        """The alignment as JSON and tables hold it (docs/formats.md).

        Returns:
            ``source``, ``target``, ``source_spans`` and ``target_spans`` ([[start, end], …]), ``links`` ([[i, j], …]),
            ``confidences`` (one for each link; None where links have none), ``status``, ``score``; ``marked`` and each
            of the ``scores`` if the pair has them.
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
            **({} if self.marked is None else {"marked": self.marked}),
            **({} if self.scores is None else asdict(self.scores)),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Alignment:
        """The alignment of a row (:meth:`to_row`), or of some of its columns."""
        links = [(i, j) for i, j in row.get("links", ())]
        spans = (tuple((start, end) for start, end in row.get(f"{side}_spans", ())) for side in ("source", "target"))
        scores = {name: row[name] for name in (*PAIR_SCORES, *WORD_SCORES) if name in row}
        return cls(
            row.get("source", ""),
            row.get("target", ""),
            next(spans),
            next(spans),
            links,
            dict(zip(links, row.get("confidences") or ())),
            row.get("status", "ok"),
            row.get("score"),
            row.get("marked"),
            PairScores(**scores) if scores else None,
        )

    def to_frame(self) -> pd.DataFrame:
        """Make a table of the links, one row for each.

        Returns:
            Columns ``source`` and ``target`` (words), ``source_index`` and ``target_index`` (from 0), ``confidence``
            (NaN where links have none).
        """
        import pandas as pd

        source, target = self.source_words, self.target_words
        rows = [(source[i], target[j], i, j, self.confidences.get((i, j))) for i, j in self.links]
        types = {"source_index": "int64", "target_index": "int64", "confidence": "float64"}
        return pd.DataFrame(rows, columns=["source", "target", *types]).astype(types)

    @property
    def word_map(self) -> pd.DataFrame:
        """The map that the rule read: target words as rows, source words and null as columns, each row sums to 1.

        Where each direction has links of its own, which are then combined, it is the map of the forward direction.

        Raises:
            UsageError: the maps are not kept (``maps``).
        """
        import pandas as pd

        columns, rows = [*self.source_words, "(null)"], list(self.target_words)
        shares = self._kept().whole.shares
        return pd.DataFrame(shares, pd.Index(rows, name="target"), pd.Index(columns, name="source"))

    def explain(self, source: int, target: int) -> Explanation:
        """Say why a source word and a target word are linked or not: maps, shares, lexical table and rule.

        Args:
            source: the source word, from 0.
            target: the target word, from 0.

        Examples:
            >>> print(alignment.explain(4, 5))
            'im' and 'the' are linked: their share 0.4... is at least 0.4
            ...

        Raises:
            UsageError: there is no such word, or the maps are not kept (``maps``).
        """
        sizes = len(self.source_spans), len(self.target_spans)
        if not (0 <= source < sizes[0] and 0 <= target < sizes[1]):
            raise UsageError(f"words {source} and {target}: the pair has {sizes[0]} source and {sizes[1]} target words")
        words = self.source_words, self.target_words
        return explain(self._kept(), words, (source, target), (source, target) in self.links)

    def _kept(self) -> ReadMaps:
        if self.maps is None:
            raise UsageError("the maps of this pair are not kept: align it again in a list of its own, as a whole line")
        return self.maps

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the links as marked cells; darker cells have higher confidence, which a colour bar shows.

        Args:
            ax: where to plot; None: on a new figure (see :meth:`alignment_eval.figures.notebook.DisplayMaps.plot`).

        Returns:
            The Axes of the plot.

        Raises:
            InputError: a side has no words.
        """
        source, target = map(SentenceSide.of_words, (self.source_words, self.target_words))
        panel = Panel("", self._strengths(), frozenset(self.links))
        picture = Picture("", source, target, [[panel]], bar="confidence" if self.confidences else None)
        return draw_maps(picture, ax)[0][0]

    def _strengths(self) -> NDArray[np.float64]:
        """The confidence of each link, 1 where it has none, [target words, source words]."""
        strengths = np.zeros((len(self.target_spans), len(self.source_spans)))
        for i, j in self.links:
            strengths[j, i] = self.confidences.get((i, j), 1.0)
        return strengths

    def __repr__(self) -> str:
        links = repr(shortened(self.to_pharaoh().split())) if self.ok else f"status={self.status!r}"
        return f"Alignment({shortened(self.source_words)!r}, {shortened(self.target_words)!r}, {links})"

    def _repr_html_(self) -> str:
        """A table of the confidence of each link in %, or a mark; words that the other side does not say are shaded."""
        if not self.ok:
            return paragraph(repr(self))
        texts = [["" for _ in self.source_spans] for _ in self.target_spans]
        for i, j in self.links:
            texts[j][i] = f"{100 * self.confidences[i, j]:.0f}" if (i, j) in self.confidences else "●"
        scores, answers = self.scores or PairScores(), ""
        if scores.unsupported is not None:
            answers = paragraph(f"unsupported {scores.unsupported:.2f}, omitted {scores.omitted:.2f}")
        marks = scores.omitted_words or [], scores.unsupported_words or []
        return answers + heat_table(self.source_words, self.target_words, self._strengths(), texts, *marks)


class Alignments(Sequence[Alignment]):
    """The word alignments of a list of sentence pairs, in the order of the list.

    Attributes:
        signature: how they were made: models, text, maps, rule, lexical table, versions; empty if unknown
            (docs/commands/signature.md).
    """

    def __init__(self, alignments: Iterable[Alignment], signature: str = "") -> None:
        self._alignments = tuple(alignments)
        self.signature = signature

    @overload
    def __getitem__(self, index: int) -> Alignment: ...

    @overload
    def __getitem__(self, index: slice) -> Alignments: ...

    def __getitem__(self, index: int | slice) -> Alignment | Alignments:
        if isinstance(index, slice):
            return Alignments(self._alignments[index], self.signature)
        return self._alignments[index]

    def __len__(self) -> int:
        return len(self._alignments)

    def to_pharaoh(self, path: str | Path, confidences: bool = False, overwrite: bool = False) -> None:
        """Write the links to a file, one line for each pair.

        The file is written completely or not at all.  A pair that was not aligned has a blank line.  The signature goes
        to a file beside it, with ``.signature.json`` after its name.

        Args:
            path: the file.
            confidences: write ``i-j:p`` instead of ``i-j``.
            overwrite: replace an existing file.

        Raises:
            InputError: the file already exists, or cannot be written.
            UsageError: ``confidences`` is true, and a pair has links without.
        """
        self._write(path, (alignment.to_pharaoh(confidences) for alignment in self), overwrite)

    def to_jsonl(self, path: str | Path, overwrite: bool = False) -> None:
        """Write a JSON object a line for each pair (:meth:`Alignment.to_row`); errors as for :meth:`to_pharaoh`."""
        self._write(path, (json_line(alignment.to_row()) for alignment in self), overwrite)

    def _write(self, path: str | Path, lines: Iterable[str], overwrite: bool) -> None:
        check_signed(path, overwrite)
        write_signed(path, lines, self.signature)

    def to_parquet(self, path: str | Path, overwrite: bool = False) -> None:
        """Write a table with the same columns, and ``id``, the pair's number; errors as for :meth:`to_pharaoh`."""
        check_new(path, overwrite)
        form = Form(scored=self._scored, marked=all(alignment.marked is not None for alignment in self))
        with new_file(path) as temporary:
            write_table(temporary, [form.table(range(len(self)), self)], self.signature)

    def to_frame(self) -> pd.DataFrame:
        """Make a table of the pairs, one row for each, with the columns of :meth:`Alignment.to_row`."""
        import pandas as pd

        return pd.DataFrame([alignment.to_row() for alignment in self])

    @property
    def scores(self) -> pd.DataFrame:
        """A table of the scores of the pairs, one row for each; NaN for a pair that was not aligned.

        Returns:
            Columns ``log_prob``, ``reverse_log_prob``, ``confidence``, ``unlinked_source``, ``unlinked_target``,
            ``source_contribution``, ``unsupported``, ``omitted``
            (:class:`~alignment_eval.extraction.pair_scores.PairScores`), and ``status``.

        Examples:
            >>> targets = ["We are here.", "We are here, but the report was not adopted."]
            >>> pairs = model.align(["Wir sind hier."] * 2, targets, scores=True)
            >>> pairs.scores["unsupported"].round().tolist()
            [0.0, 1.0]

        Raises:
            UsageError: the pairs were not scored.
        """
        import pandas as pd

        if not self._scored:
            raise UsageError("these pairs have no scores; align them with scores=True")
        rows = [[*(getattr(a.scores, name) for name in PAIR_SCORES), a.status] for a in self]
        types = {**dict.fromkeys(PAIR_SCORES, "float64"), "status": "str"}
        return pd.DataFrame(rows, columns=list(types)).astype(types)

    @property
    def _scored(self) -> bool:
        return all(alignment.scores is not None for alignment in self)

    def __repr__(self) -> str:
        left_out = sum(not alignment.ok for alignment in self)
        counts = f"{len(self)} pairs, {sum(len(alignment.links) for alignment in self)} links"
        return f"Alignments({counts}{f', not aligned: {left_out}' if left_out else ''})"

    def _repr_html_(self) -> str:
        """A table of the first pairs with their links and scores."""
        first = self[:_LISTED]
        scored = [name for name in PAIR_SCORES if any(getattr(a.scores, name, None) is not None for a in first)]
        rows = [[cell(head, scope="col") for head in ("", "source", "target", "links", *scored)]]
        for number, a in enumerate(first):
            words = shortened(a.source_words), shortened(a.target_words)
            values = [getattr(a.scores, name, None) for name in scored]
            texts = [str(number), *words, a.to_pharaoh() if a.ok else a.status]
            rows.append(list(map(cell, [*texts, *("" if value is None else f"{value:.2f}" for value in values)])))
        more = paragraph(f"and {len(self) - _LISTED} more") if len(self) > _LISTED else ""
        return paragraph(repr(self)) + table(rows) + more


# ---- tables and files


@dataclass(frozen=True)
class Form:
    """What the rows of a run hold, and how a text file shows them."""

    confidences: bool = False  #: Pharaoh lines have confidences
    scored: bool = False  #: pairs have scores
    marked: bool = False  #: targets have the markup of their sources, and are the lines of a text file
    text_ids: bool = False  #: the ids of pairs are text

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of the columns."""
        more = {"marked": TYPES["target"]} if self.marked else {}
        more |= _SCORES if self.scored else {}
        return {"id": pa.string() if self.text_ids else pa.int64(), **TYPES, **more}

    def table(self, ids: Sequence[int | str], alignments: Iterable[Alignment]) -> pa.Table:
        """A row for each pair, with its id."""
        rows = ({"id": id_, **alignment.to_row()} for id_, alignment in zip(ids, alignments))
        schema = pa.schema(self.types.items())
        groups = [pa.Table.from_pylist(group, schema) for group in iter(lambda: list(islice(rows, _ROWS)), [])]
        return pa.concat_tables([schema.empty_table(), *groups]).combine_chunks()


def write_alignments(
    path: str | Path, tables: Iterable[pa.Table], form: Form, signature: str, resumed: bool = False
) -> None:
    """Write tables of alignments to a file: of JSON lines or Parquet by its ending, else of lines of text.

    ``resumed`` as for :func:`alignment_eval.files.new_file`.
    """
    if str(path).endswith(".parquet"):
        with new_file(path, resumed) as temporary:
            write_table(temporary, tables, signature)
    elif str(path).endswith(".jsonl"):
        batches = (batch for table in tables for batch in table.drop_columns(["id"]).to_batches(max_chunksize=_ROWS))
        rows = (row for batch in batches for row in batch.to_pylist())
        write_signed(path, map(json_line, rows), signature, resumed)
    else:
        names = ["marked"] if form.marked else ["links", "confidences"]
        pairs = (pair for table in tables for pair in alignments_in(table, names))
        lines = (pair.to_pharaoh(form.confidences) if pair.marked is None else pair.marked for pair in pairs)
        write_signed(path, lines, signature, resumed)


def alignments_in(table: pa.Table, names: Sequence[str]) -> Iterator[Alignment]:
    """The alignments in a table, as far as the columns ``names`` say."""
    batches = table.select(names).to_batches(max_chunksize=_ROWS)
    return (Alignment.of_row(row) for batch in batches for row in batch.to_pylist())


def write_table(path: Path, tables: Iterable[pa.Table], signature: str = "") -> None:
    """Write tables of the same columns as one, which is never whole in memory; its metadata keep the ``signature``."""
    with ExitStack() as stack:
        writer = None
        for group in _row_groups(tables):
            group = group.combine_chunks().replace_schema_metadata({"signature": signature})
            if writer is None:
                options = {"compression": "zstd", "write_page_checksum": True}
                writer = stack.enter_context(pq.ParquetWriter(path, group.schema, **options))
            writer.write_table(group)


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of tables, :data:`GROUP_ROWS` together; tables without rows are one."""
    waiting: pa.Table | None = None
    for rows in tables:
        waiting = rows if waiting is None else pa.concat_tables([waiting, rows])
        while len(waiting) > GROUP_ROWS:
            yield waiting[:GROUP_ROWS]
            waiting = waiting[GROUP_ROWS:]
    if waiting is not None:
        yield waiting
