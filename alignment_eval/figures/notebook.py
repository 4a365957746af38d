"""How a notebook shows maps and alignments: lines, plots, and tables of HTML.

A table has no script, no style sheet, and nothing that is loaded from elsewhere.  Colours are transparent and text has
the colour of the page, so that a table is readable on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from alignment_eval.alignment import Alignment, Alignments
from alignment_eval.errors import UsageError
from alignment_eval.extraction.extract import merged, stacked_maps
from alignment_eval.extraction.method import DEFAULTS, ExtractionOptions, MapName, MapNames
from alignment_eval.extraction.pair_scores import FIGURES
from alignment_eval.figures.maps import Panel, Picture, draw_maps, panel_of, sides_of
from alignment_eval.figures.style import kind_name, label_of, layer_label, visible
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.maps.words import LEVELS, row_shares

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: How many pairs a notebook cell lists.
_LISTED = 10
#: Colours (red, green, blue) of values and of marked words, and the opacity of the largest value.
_COLOUR, _MARK, _STRONGEST = "66,133,244", "219,68,55", 0.6
_TABLE = "border-collapse:collapse;width:auto;font-size:85%;color:inherit;background:none"
_CELL = "padding:2px 4px;border:1px solid rgba(128,128,128,.3);color:inherit;font-weight:normal"
#: Larger tables would make a notebook slow.
_MOST_CELLS = 2500


@dataclass(frozen=True, repr=False, eq=False)
class DisplayMaps(SentenceMaps):
    """:class:`~alignment_eval.maps.sentence.SentenceMaps` that can be shown as tables and plots."""

    @classmethod
    def of(cls, maps: SentenceMaps) -> DisplayMaps:
        """Make the maps of a record (:class:`alignment_eval.records.Records`) showable."""
        return cls(**{field.name: getattr(maps, field.name) for field in fields(maps)})

    def to_frame(
        self,
        kind: str = DEFAULTS.kind,
        *,
        layer: int | None = None,
        head: int | None = None,
        level: str = "word",
        setting: str = DEFAULTS.setting,
    ) -> pd.DataFrame:
        """Make a table of a map, with target words as rows and source words as columns; or one long table of all maps.

        A repeated word is numbered (``the#2``).  The last column, ``(null)``, is the sum over the special
        source tokens (``</s>``, tags).  Subwords are merged as the extraction rules merge them
        (:func:`alignment_eval.maps.words.word_map`).

        Args:
            kind: a recorded map kind.
            layer: number of the layer, from 0; None: all layers and heads, in one long table.
            head: number of the head, from 0; None: the map of the whole layer.
            level: ``word``, or ``token`` for unmerged subwords with the special source tokens among the columns.
            setting: ``awo``: the rows that predict a target word; ``awi``: the rows that have it as input.

        Returns:
            float64 values.  The long table has a row for each cell of each map, with the columns ``kind``, ``layer``,
            ``head`` (<NA>: the whole layer), ``target_index``, ``target``, ``source_index``, ``source``, ``value``;
            indices count from 0, and words are not numbered.

        Raises:
            InputError: there are no maps, or none of that kind, layer or head.
            UsageError: an unknown kind, level or setting; or a head without a layer.
        """
        import pandas as pd

        source, target = sides_of(self, level)
        if layer is not None:
            values = self._panel(kind, layer, head, level, setting).values
            index = pd.Index(numbered(target.tokens), name="target")
            return pd.DataFrame(values, index, pd.Index(numbered(source.tokens), name="source"))
        if head is not None:
            raise UsageError(f"head {head} without a layer: expected the layer, too, or neither for all maps")
        values = merged(stacked_maps(self, kind), self, setting, LEVELS[level])
        layers, heads, rows, columns = np.indices(values.shape).reshape(4, -1)
        return pd.DataFrame(
            {
                "kind": kind,
                "layer": np.array(self.layers)[layers],
                "head": pd.Series(heads, dtype="Int64").mask(heads == values.shape[1] - 1),
                "target_index": rows,
                "target": np.array(target.tokens, dtype=object)[rows],
                "source_index": columns,
                "source": np.array(source.tokens, dtype=object)[columns],
                "value": values.ravel(),
            }
        )

    def plot(
        self,
        kind: str = DEFAULTS.kind,
        *,
        kinds: Sequence[str] = (),
        layer: int | None = None,
        head: int | None = None,
        level: str = "word",
        setting: str = DEFAULTS.setting,
        links: Iterable[Link] = (),
        ax: Axes | None = None,
    ) -> Axes | list[list[Axes]]:
        """Plot a map, or several with one colour bar; the lightest colour is 0, the darkest cell is the largest value.

        Type, width and colours of text follow ``matplotlib.rcParams``; a figure is as high as its maps need, 24 cm at
        most.  Words are set smaller where they would overlap, down to 5.5 points; then a warning says so.

        Args:
            kind: a recorded map kind.
            kinds: several kinds, side by side, instead of ``kind``.
            layer: number of the layer, from 0; None: all layers, one below the other.
            head: number of the head, from 0; None: the map of the whole layer.
            level: as for :meth:`to_frame`.
            setting: as for :meth:`to_frame`.
            links: links between words (source, target) that are marked, such as an alignment's.
            ax: where to plot one map; None: on a new figure.  A figure without a layout engine gets Matplotlib's
                constrained layout, so that ``savefig`` cuts nothing off.

        Returns:
            The Axes of one map; of several those of each line of the figure.

        Raises:
            InputError: as for :meth:`to_frame`; or a side has no words.
            UsageError: see there; or several maps on one ``ax``.
        """
        marked, kinds = frozenset(links), kinds or (kind,)
        layers = self.layers if layer is None else (layer,)
        panels = [[self._panel(name, number, head, level, setting, marked) for name in kinds] for number in layers]
        picture = Picture("", *sides_of(self, level), panels, bar=kind_name(kinds[0]))
        single = len(layers) == len(kinds) == 1
        if ax is not None and not single:
            raise UsageError(f"ax with {len(layers) * len(kinds)} maps: expected one map: name one kind and a layer")
        lines = draw_maps(picture, ax)
        return lines[0][0] if single else lines

    def _panel(
        self, kind: str, layer: int, head: int | None, level: str, setting: str, links: Iterable[Link] = ()
    ) -> Panel:
        options = ExtractionOptions(kind, MapNames([MapName(layer, head)]), setting=setting)
        parts = [kind_name(kind), layer_label(layer), *([] if head is None else [f"head {head}"]), setting.upper()]
        return panel_of(self, options, level, ", ".join(parts), frozenset(links))

    def __repr__(self) -> str:
        if not self.ok:
            return f"{type(self).__name__}({self.id}, status={self.status!r})"
        source, target = (_shortened(side.word_strings()) for side in (self.source, self.target))
        numbers = ",".join(map(str, self.layers))
        return f"{type(self).__name__}({source!r}, {target!r}, kinds={','.join(self.kinds)}, layers={numbers})"

    def _repr_html_(self) -> str:
        """A table of the word map of the highest layer, each row in percent, for a notebook."""
        if not self.ok or not self.kinds:
            return _paragraph(repr(self))
        kind = DEFAULTS.kind if DEFAULTS.kind in self.kinds else self.kinds[-1]
        layer = self.layers[-1]
        source, target = sides_of(self, "word")
        shares = row_shares(self._panel(kind, layer, None, "word", "awo").values)
        texts = [[f"{100 * share:.0f}" for share in row] for row in shares.tolist()]
        what = f"{kind_name(kind)} ({kind}), {layer_label(layer)}, AWO: shares of each target word in % (recorded: "
        return _paragraph(f"{what}{', '.join(self.kinds)})") + _heat_table(source.tokens, target.tokens, shares, texts)


def numbered(words: Sequence[str]) -> list[str]:
    """Words of which repeated ones are numbered: ``the``, ``cat``, ``the#2``."""
    counts = [words[: place + 1].count(word) for place, word in enumerate(words)]
    return [word if count == 1 else f"{word}#{count}" for word, count in zip(words, counts)]


def _shortened(words: Sequence[str]) -> str:
    """A sentence on one line, shortened if it is long."""
    return label_of(" ".join(words), 40)


# ---- alignments


def line(alignment: Alignment) -> str:
    """An alignment on one line."""
    links = repr(_shortened(alignment.to_pharaoh().split())) if alignment.ok else f"status={alignment.status!r}"
    return f"Alignment({_shortened(alignment.source_words)!r}, {_shortened(alignment.target_words)!r}, {links})"


def plot(alignment: Alignment, ax: Axes | None) -> Axes:
    """The links as marked cells; ``ax``: where to plot, None: on a new figure."""
    source, target = map(SentenceSide.of_words, (alignment.source_words, alignment.target_words))
    panel = Panel("", _strengths(alignment), frozenset(alignment.links))
    picture = Picture("", source, target, [[panel]], bar="confidence" if alignment.confidences else None)
    return draw_maps(picture, ax)[0][0]


def table(alignment: Alignment) -> str:
    """A table for a notebook that shows the confidence of each link in %, or a mark if it has none.

    If the pair was scored, words are shaded that the other side does not say.
    """
    if not alignment.ok:
        return _paragraph(line(alignment))
    confidences, scores, strengths = alignment.confidences, alignment.scores, _strengths(alignment)
    texts = [["" for _ in alignment.source_spans] for _ in alignment.target_spans]
    for link in alignment.links:
        texts[link[1]][link[0]] = f"{100 * confidences[link]:.0f}" if link in confidences else "●"
    if scores is None or scores.unsupported is None:
        return _heat_table(alignment.source_words, alignment.target_words, strengths, texts)
    marks = scores.omitted_words or [], scores.unsupported_words or []
    answers = _paragraph(f"unsupported {scores.unsupported:.2f}, omitted {scores.omitted:.2f}")
    return answers + _heat_table(alignment.source_words, alignment.target_words, strengths, texts, *marks)


def list_of(alignments: Alignments) -> str:
    """A table of the first pairs with their links and scores, for a notebook."""
    shown = alignments[:_LISTED]
    scored = [name for name in FIGURES if any(getattr(a.scores, name, None) is not None for a in shown)]
    rows = [[_cell(head, scope="col") for head in ("", "source", "target", "links", *scored)]]
    for number, a in enumerate(shown):
        texts = [
            str(number),
            _shortened(a.source_words),
            _shortened(a.target_words),
            a.to_pharaoh() if a.ok else a.status,
        ]
        values = [getattr(a.scores, name, None) for name in scored]
        rows.append([*map(_cell, texts), *(_cell("" if value is None else f"{value:.2f}") for value in values)])
    more = _paragraph(f"and {len(alignments) - _LISTED} more") if len(alignments) > _LISTED else ""
    return _paragraph(repr(alignments)) + _table(rows) + more


def _strengths(alignment: Alignment) -> NDArray[np.float64]:
    """The confidence of each link, 1 where it has none, [target words, source words]."""
    strengths = np.zeros((len(alignment.target_spans), len(alignment.source_spans)))
    for i, j in alignment.links:
        strengths[j, i] = alignment.confidences.get((i, j), 1.0)
    return strengths


# ---- HTML


def _heat_table(
    columns: Sequence[str],
    rows: Sequence[str],
    strengths: NDArray[np.float64],
    texts: Sequence[Sequence[str]],
    column_marks: Sequence[float] = (),
    row_marks: Sequence[float] = (),
) -> str:
    """A table with source words as columns and target words as rows, or a note that it would be too large.

    ``strengths`` are the opacities of the cells' colour, from 0 to 1; they and ``texts`` are [rows, columns].  Marks
    are opacities of the words of columns and rows, which have another colour.
    """
    if strengths.size > _MOST_CELLS:
        size = f"{len(rows)} × {len(columns)}"
        return _paragraph(f"A table of {size} words is too large for a notebook cell; use plot() or to_frame().")
    upwards = "writing-mode:vertical-rl;transform:rotate(180deg);text-align:left"
    heads = zip(columns, column_marks or [0.0] * len(columns))
    lines = [[_cell(""), *(_cell(label_of(word), upwards + _shade(mark, _MARK), "col") for word, mark in heads)]]
    for name, mark, values, cells in zip(rows, row_marks or [0.0] * len(rows), strengths.tolist(), texts):
        shown = (_cell(text, f"text-align:center{_shade(value, _COLOUR)}") for value, text in zip(values, cells))
        lines.append([_cell(label_of(name), f"text-align:right{_shade(mark, _MARK)}", "row"), *shown])
    return _table(lines)


def _paragraph(text: str) -> str:
    return f"<p>{escape(visible(text))}</p>"


def _table(rows: Iterable[Iterable[str]]) -> str:
    lines = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return f'<div style="overflow-x:auto"><table style="{_TABLE}">{lines}</table></div>'


def _cell(text: str, style: str = "text-align:left", scope: str = "") -> str:
    """A cell; with a ``scope`` it is the head of a row or a column."""
    name, scoped = ("th", f' scope="{scope}"') if scope else ("td", "")
    return f'<{name}{scoped} dir="auto" style="{_CELL};{style}">{escape(visible(text))}</{name}>'


def _shade(strength: float, colour: str) -> str:
    return f";background:rgba({colour},{_STRONGEST * strength:.2f})" if strength > 0 else ""
