"""Tables of scores: what they hold, and how they are written as text, Markdown, LaTeX or TSV."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from alignment_eval.errors import printable
from alignment_eval.scoring.aer import METRICS, Score
from alignment_eval.scoring.significance import Difference, Interval

UNDEFINED = "–"
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", UNDEFINED: "--"}
_LATEX |= {"−": "$-$", "-": "$-$"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}
#: Characters that LaTeX reads otherwise, and the minus of a number.
_LATEX_SPECIAL = re.compile(r"[\\~^&%$#_{}–−]|(?<![^\[])-(?=\d)")
#: The formats of :meth:`Table.lines`: the best cell, another cell of its column, and how a cell is escaped.
TABLE_FORMATS: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "text": ("{}*", "{} ", str),
    "md": ("**{}**", "{}", lambda cell: cell.replace("|", r"\|")),
    "latex": (r"\textbf{{{}}}", "{}", lambda cell: _LATEX_SPECIAL.sub(lambda special: _LATEX[special[0]], cell)),
    "tsv": ("{}", "{}", str),
}


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str  #: one line; empty: none
    heads: Sequence[str]  #: of the columns
    rows: Sequence[Sequence[str]]  #: the cells
    best: Collection[tuple[int, int]] = ()  #: (row, column) of the cells in bold
    names: int = 1  #: how many columns, from the left, are names; the others are numbers, which end at the right

    def lines(self, format: str = "text") -> Iterator[str]:
        """The lines of the table in one of :data:`TABLE_FORMATS`; in text a star marks what is bold elsewhere."""
        bold, other, escaped = TABLE_FORMATS[format]
        marked = {column for _, column in self.best}
        rows = [
            [(bold if (r, c) in self.best else other if c in marked else "{}").format(escaped(printable(cell)))
             for c, cell in enumerate(row)]
            for r, row in enumerate((self.heads, *self.rows), -1)
        ]  # fmt: skip
        numbers = len(self.heads) - self.names
        if format == "tsv":
            yield from map("\t".join, rows)
        elif format == "md":
            yield from [self.title, ""] * bool(self.title)
            for row in (rows[0], ["---"] * self.names + ["---:"] * numbers, *rows[1:]):
                yield f"| {' | '.join(row)} |"
        elif format == "latex":
            head, *lines = (rf"{' & '.join(row)} \\" for row in rows)
            yield from [f"% {self.title}"] * bool(self.title)
            yield rf"\begin{{tabular}}{{{'l' * self.names}{'r' * numbers}}}"
            yield from (r"\toprule", head, r"\midrule", *lines, r"\bottomrule", r"\end{tabular}")
        else:
            yield from [self.title] * bool(self.title)
            widths = [max(map(len, column)) for column in zip(*rows)]
            for row in rows:
                cells = [*map(str.ljust, row[: self.names], widths)]
                cells += map(str.rjust, row[self.names :], widths[self.names :])
                yield "  ".join(cells).rstrip()


def counted(number: int, noun: str = "sentence") -> str:
    """A number with its noun, ``1 sentence``, ``2 sentences``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def percent(value: float | None, sign: str = "") -> str:
    """A fraction in % with two decimals."""
    return UNDEFINED if value is None or math.isnan(value) else f"{100 * value:{sign}.2f}"


def interval_text(interval: Interval | None, sign: str = "") -> str:
    """Both limits in %."""
    return UNDEFINED if interval is None else f"[{percent(interval.low, sign)}, {percent(interval.high, sign)}]"


def score_table(
    title: str,
    names: Sequence[str],
    scores: Sequence[Score],
    aers: Sequence[Interval | None],
    pairs: Mapping[tuple[int, int], Mapping[str, Difference]],
) -> Table:
    """The scores of systems; and AER of each row minus AER of each row above it, with p of approximate randomisation.

    ``pairs`` are those of :func:`alignment_eval.scoring.significance.compare_all`.
    """
    before = range(1, len(names))
    aer, *others = (f"{metric.label} %" for metric in METRICS.values())
    heads = ("system", aer, "95 % interval", *others, "links", *(f"− {n} (p)" for n in before))
    rows = []
    for row, (name, score, interval) in enumerate(zip(names, scores, aers)):
        own, *more = map(percent, score.metrics.values())
        compared = [pairs[column, row]["aer"] for column in range(row)]
        cells = [f"{percent(entry.delta, '+')} ({entry.p_randomisation:.3g})" for entry in compared]
        cells += [""] * (len(names) - 1 - row)
        rows.append((name, own, interval_text(interval), *more, str(score.counts.hypothesis), *cells))
    title += "; − n (p): AER minus that of row n, with p of approximate randomisation" if pairs else ""
    return Table(title, heads, rows, _best_scores(scores))


def pair_table(title: str, differences: Mapping[str, Difference]) -> Table:
    """The metrics of a pair of systems, what they differ by, and both paired tests."""
    rows = []
    for name, metric in METRICS.items():
        entry = differences[name]
        p_values = (UNDEFINED if p is None else f"{p:.3g}" for p in (entry.p_bootstrap, entry.p_randomisation))
        values = percent(entry.baseline), percent(entry.system), percent(entry.delta, "+")
        rows.append((f"{metric.label} %", *values, interval_text(entry.interval, "+"), *p_values))
    return Table(title, ("", "baseline", "system", "delta", "95 % interval", "p bootstrap", "p randomisation"), rows)


def _best_scores(scores: Sequence[Score]) -> set[tuple[int, int]]:
    """The cells of :func:`score_table` with the best value of each metric; ties too."""
    best = set()
    for place, (name, metric) in enumerate(METRICS.items()):
        values = [score.metrics[name] for score in scores]
        known = [value for value in values if value is not None]
        column = place + 1 + (place > 0)  # an interval follows the first
        best |= {(row, column) for row, value in enumerate(values) if len(known) > 1 and value == metric.best(known)}
    return best
