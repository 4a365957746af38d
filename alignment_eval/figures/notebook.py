"""How a notebook shows maps: lines, plots, and tables of HTML.

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

from alignment_eval.errors import UsageError, require_known
from alignment_eval.extraction.extract import in_units, stacked_maps
from alignment_eval.extraction.method import DEFAULTS, ExtractionOptions, MapName, MapNames
from alignment_eval.figures.maps import Panel, Picture, draw_maps, panel_of, sides_of
from alignment_eval.figures.style import kind_name, label_of, layer_label, visible
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import LEVELS, SETTINGS, row_shares

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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
        require_known("setting", setting, SETTINGS)
        values = in_units(stacked_maps(self, kind), self, setting, LEVELS[level])
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

        Type, colours of text and the largest width follow ``matplotlib.rcParams``; the largest height is 24 cm.  Words
        are set smaller where they would overlap, down to 5.5 points; then a warning says so.

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
        source, target = (shortened(side.word_strings()) for side in (self.source, self.target))
        numbers = ",".join(map(str, self.layers))
        return f"{type(self).__name__}({source!r}, {target!r}, kinds={','.join(self.kinds)}, layers={numbers})"

    def _repr_html_(self) -> str:
        """A table of the word map of the highest layer, each row in percent, for a notebook."""
        if not self.ok or not self.kinds:
            return paragraph(repr(self))
        kind = DEFAULTS.kind if DEFAULTS.kind in self.kinds else self.kinds[-1]
        layer = self.layers[-1]
        source, target = sides_of(self, "word")
        shares = row_shares(self._panel(kind, layer, None, "word", "awo").values)
        texts = [[f"{100 * share:.0f}" for share in row] for row in shares.tolist()]
        what = f"{kind_name(kind)} ({kind}), {layer_label(layer)}, AWO: shares of each target word in % (recorded: "
        return paragraph(f"{what}{', '.join(self.kinds)})") + heat_table(source.tokens, target.tokens, shares, texts)


def numbered(words: Sequence[str]) -> list[str]:
    """Words of which repeated ones are numbered: ``the``, ``cat``, ``the#2``."""
    counts = [words[: place + 1].count(word) for place, word in enumerate(words)]
    return [word if count == 1 else f"{word}#{count}" for word, count in zip(words, counts)]


def shortened(words: Sequence[str]) -> str:
    """A sentence on one line, shortened if it is long."""
    return label_of(" ".join(words), 40)


# ---- HTML


def heat_table(
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
        return paragraph(f"A table of {size} words is too large for a notebook cell; use plot() or to_frame().")
    upwards = "writing-mode:vertical-rl;transform:rotate(180deg);text-align:left"
    heads = zip(columns, column_marks or [0.0] * len(columns))
    lines = [[cell(""), *(cell(label_of(word), upwards + _shade(mark, _MARK), "col") for word, mark in heads)]]
    for name, mark, values, cells in zip(rows, row_marks or [0.0] * len(rows), strengths.tolist(), texts):
        shown = (cell(text, f"text-align:center{_shade(value, _COLOUR)}") for value, text in zip(values, cells))
        lines.append([cell(label_of(name), f"text-align:right{_shade(mark, _MARK)}", "row"), *shown])
    return table(lines)


def paragraph(text: str) -> str:
    """Text of HTML."""
    return f"<p>{escape(visible(text))}</p>"


def table(rows: Iterable[Iterable[str]]) -> str:
    """A table of rows of :func:`cell`."""
    lines = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return f'<div style="overflow-x:auto"><table style="{_TABLE}">{lines}</table></div>'


def cell(text: str, style: str = "text-align:left", scope: str = "") -> str:
    """A cell; with a ``scope`` it is the head of a row or a column."""
    name, scoped = ("th", f' scope="{scope}"') if scope else ("td", "")
    return f'<{name}{scoped} dir="auto" style="{_CELL};{style}">{escape(visible(text))}</{name}>'


def _shade(strength: float, colour: str) -> str:
    return f";background:rgba({colour},{_STRONGEST * strength:.2f})" if strength > 0 else ""
