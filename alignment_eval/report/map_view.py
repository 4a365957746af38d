"""The maps of one sentence pair, with tables, plots and notebook cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from alignment_eval.errors import UsageError
from alignment_eval.extraction.defaults import DEFAULTS
from alignment_eval.extraction.method import ExtractionOptions, MapName, MapNames
from alignment_eval.figures.drawing import NULL_LABEL, Panel, Picture, draw_map, draw_maps, panel_of, sides_of
from alignment_eval.figures.names import kind_name, layer_label, shortened
from alignment_eval.links.sets import Link
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import row_shares
from alignment_eval.report.notebook_tables import heat_table, text_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: The kind that a notebook cell shows if it was recorded.
_SHOWN = DEFAULTS.kind


def distinct(words: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """Make words distinct by numbering repeated ones: ``the``, ``cat``, ``the#2``; no word gets a reserved name."""
    taken = set(reserved)
    names = []
    counts: Counter[str] = Counter()
    for word in words:
        counts[word] += 1
        name = word if counts[word] == 1 else f"{word}#{counts[word]}"
        while name in taken:
            counts[word] += 1
            name = f"{word}#{counts[word]}"
        taken.add(name)
        names.append(name)
    return names


@dataclass(frozen=True, repr=False, eq=False)
class DisplayMaps(SentenceMaps):
    """:class:`~alignment_eval.maps.sentence.SentenceMaps` that can be shown as tables and plots."""

    @classmethod
    def of(cls, maps: SentenceMaps) -> DisplayMaps:
        """Make the maps of a record (:class:`alignment_eval.records.store.Records`) showable."""
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
            float64 values.  The long table has a row for each cell of each map, with the columns ``layer``, ``head``
            (<NA>: the whole layer), ``target_index``, ``target``, ``source_index``, ``source``, ``value``; indices
            count from 0, and words are not numbered.

        Raises:
            InputError: there are no maps, or none of that kind, layer or head.
            UsageError: an unknown kind, level or setting; or a head without a layer.
        """
        import pandas as pd

        source, target = sides_of(self, level)
        if layer is None:
            if head is not None:
                raise UsageError(f"head {head} without a layer: expected the layer, too, or neither for all maps")
            places = [(layer, head) for layer in self.layers for head in (*range(self.head_maps(kind).shape[1]), None)]
            values = np.stack([self._panel(kind, *place, level, setting).values for place in places])
            numbers, rows, columns = (indices.ravel() for indices in np.indices(values.shape))
            layers, heads = zip(*places)
            return pd.DataFrame(
                {
                    "layer": np.array(layers)[numbers],
                    "head": pd.array(heads, dtype="Int64")[numbers],
                    "target_index": rows,
                    "target": np.array(target.tokens, dtype=object)[rows],
                    "source_index": columns,
                    "source": np.array(source.tokens, dtype=object)[columns],
                    "value": values.ravel(),
                }
            )
        panel = self._panel(kind, layer, head, level, setting)
        if level == "word":
            names = [*distinct(source.tokens[:-1], reserved=[NULL_LABEL]), NULL_LABEL]
        else:
            names = distinct(source.tokens)
        return pd.DataFrame(
            panel.values,
            index=pd.Index(distinct(target.tokens), name="target"),
            columns=pd.Index(names, name="source"),
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
        sides, bar = sides_of(self, level), kind_name(kinds[0])
        if len(layers) == len(kinds) == 1:
            return draw_map(panels[0][0], *sides, ax, bar)
        if ax is not None:
            raise UsageError(f"ax with {len(layers) * len(kinds)} maps: expected one map: name one kind and a layer")
        return draw_maps(Picture("", *sides, tuple(map(tuple, panels)), bar=bar))

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
            return f"<p>{text_of(repr(self))}</p>"
        kind = _SHOWN if _SHOWN in self.kinds else self.kinds[-1]
        layer = self.layers[-1]
        source, target = sides_of(self, "word")
        shares = row_shares(self._panel(kind, layer, None, "word", "awo").values)
        texts = [[f"{100 * share:.0f}" for share in row] for row in shares.tolist()]
        of = f"{kind_name(kind)} ({kind}), {layer_label(layer)}, AWO"
        what = f"{of}: shares of each target word in % (recorded: {', '.join(self.kinds)})"
        return f"<p>{text_of(what)}</p>{heat_table(source.tokens, target.tokens, shares.tolist(), texts)}"
