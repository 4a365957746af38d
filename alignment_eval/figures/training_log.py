"""Reads the JSON log of fairseq-train (``--log-format json``), printed or from ``--log-file``.

A line of statistics is one JSON object.  Printed lines have date, level and tag before it; ``--log-file`` has the
object only, so tags are ignored.  The key that ends in ``num_updates`` names the subset: ``test1_num_updates`` belongs
to ``test1``, a bare ``num_updates`` to the last few training steps (:data:`TRAIN_STEPS`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from alignment_eval.errors import InputError, shown
from alignment_eval.formats.text import TextFile
from alignment_eval.schema.foreign import ForeignFile

if TYPE_CHECKING:
    import pandas as pd

#: Columns of a table of metrics; ``value`` is as logged (AER is a fraction), NaN if it was not finite.
COLUMNS = ("run", "subset", "update", "metric", "value")
#: The subset of fairseq's ``train_inner`` lines, which have no subset in their keys.
TRAIN_STEPS = "train_inner"
_STATISTICS = re.compile(rb'(?:^| \| )(\{".*)', re.DOTALL)
_UPDATES = "num_updates"
_AER = re.compile(r"aer(?:_l(?P<layer>[0-9]+)_(?P<kind>[a-z]+)_(?P<setting>awo|awi))?")
_LOWER = re.compile(rf"{_AER.pattern}|(?:.*_)?(?:loss|ppl)")
_HIGHER = re.compile(r"(?:.*_)?(?:precision|recall|bleu|chrf|accuracy)")
_ADVICE = "remove the line, if the job was stopped there"
_COUNTS = frozenset({"epoch", "update"})


@dataclass(frozen=True)
class Metric:
    """The parts of a metric's name, which is without its subset.

    Attributes:
        name: as logged, ``aer_l1_n_awo``.
        layer: the layer of the map, from 0; None if the name has none.
        kind: ``n`` (norms) or ``w`` (weights), or None.
        setting: ``awo`` or ``awi``, or None.
        share: whether the metric is a fraction, shown as a percentage.
        better: ``lower``, ``higher``, or None if it is unknown.
    """

    name: str
    layer: int | None
    kind: str | None
    setting: str | None
    share: bool
    better: str | None

    @classmethod
    def of(cls, name: str) -> Metric:
        """Parse a name."""
        match = _AER.fullmatch(name)
        layer, kind, setting = match.group("layer", "kind", "setting") if match else (None, None, None)
        better = "lower" if _LOWER.fullmatch(name) else "higher" if _HIGHER.fullmatch(name) else None
        share = match is not None or name in ("aer_precision", "aer_recall")
        return cls(name, None if layer is None else int(layer), kind, setting, share, better)

    def shown(self, value: float) -> str:
        """A value as text."""
        return f"{100 * value:.2f} %" if self.share else f"{value:g}"


@dataclass(frozen=True)
class Line:
    """A line of statistics.

    Attributes:
        number: number of the line in its file, from 1.
        subset: the subset of the metrics.
        update: the number of updates when it was logged.
        values: metric, without the subset, to value; NaN if it was not finite.
    """

    number: int
    subset: str
    update: int
    values: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class TrainingLog:
    """A log that was read.

    Attributes:
        name: the file, for messages.
        hash: short hash of the content.
        lines: the valid lines, in the order of the file: a run that went back to an earlier update has discarded the
            later ones.
    """

    name: str
    hash: str
    lines: tuple[Line, ...]

    def table(self, run: str) -> pd.DataFrame:
        """One row per metric, with :data:`COLUMNS`; ``run`` is the name of the run."""
        import pandas as pd

        rows = [
            (run, line.subset, line.update, metric, value)
            for line in self.lines
            for metric, value in line.values.items()
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"update": "int64", "value": "float64"})


def read_training_log(path: str | Path, warn: Callable[[str], None]) -> TrainingLog:
    """Read a log of fairseq-train.

    An incomplete last line is dropped.  If the number of updates goes back, as after resuming from an earlier
    checkpoint, the lines from that update on are dropped and the following lines count.  Of two lines for the same
    subset and update, the later one counts.

    Args:
        path: a file, ``-`` for standard input; lines without statistics are ignored.
        warn: called with a sentence about everything that was dropped.

    Raises:
        InputError: the file cannot be read or is empty; a line of statistics is damaged; or there are none.
    """
    file = TextFile(path, "the log of fairseq-train --log-format json")
    kept: dict[tuple[str, int], Line] = {}
    last = 0
    for line in _statistics(file, warn):
        if line.update < last:
            later = [key for key in kept if key[1] >= line.update]
            warn(
                f"{file.name}:{line.number}: the run goes back from update {last} to {line.update} (it was resumed); "
                f"{len(later)} earlier lines from update {line.update} on are dropped"
            )
            for key in later:
                del kept[key]
        last = line.update
        key = line.subset, line.update
        before = kept.pop(key, line)
        if not _same(before.values, line.values):
            warn(
                f"{file.name}:{line.number}: metrics of {line.subset} at update {line.update} differ from those on "
                f"line {before.number}; the later ones count"
            )
        kept[key] = line
    if not kept:
        raise InputError(
            f"{file.name}: the file has no lines of statistics; give a log of fairseq-train --log-format json, with "
            f'lines like … {{"epoch": 1, "valid_loss": "7.6", "valid_num_updates": "200", …}}'
        )
    return TrainingLog(file.name, file.hash.short, tuple(kept.values()))


def _statistics(file: TextFile, warn: Callable[[str], None]) -> Iterator[Line]:
    """The lines of statistics; a damaged line is an error unless it is the last."""
    damaged: InputError | None = None
    for number, text in enumerate(_lines(file), 1):
        if damaged is not None:
            raise damaged
        match = _STATISTICS.search(text)
        if match is None:
            continue
        line = ForeignFile(f"{file.name}:{number}", "a line of statistics", _ADVICE)
        try:
            found = line.decode(match[1], dict[str, Any])
        except InputError as error:
            damaged = error
            continue
        if statistics := _line(found, line, number):
            yield statistics
    if damaged is not None:
        warn(f"{file.name}:{number}: the last line is incomplete and is dropped (the job may be running)")


def _lines(file: TextFile) -> Iterator[bytes]:
    for chunk in file:
        yield from chunk.split(b"\n")[:-1]


def _line(found: Mapping[str, Any], line: ForeignFile, number: int) -> Line | None:
    """The statistics in a JSON object; None if it has no number of updates and so is something else."""
    keys = [key for key in found if key == _UPDATES or key.endswith(f"_{_UPDATES}")]
    if len(keys) != 1:
        return None
    prefix = keys[0][: -len(_UPDATES)]
    update = _number(found[keys[0]], keys[0], line)
    if update is None or not update.is_integer() or not 0 <= update < 2**63:
        raise line.error(f"{shown(keys[0])} is {shown(found[keys[0]])}: expected a number of updates")
    values = {}
    for key, value in found.items():
        if key in (keys[0], *_COUNTS) or not key.startswith(prefix) or isinstance(value, list):
            continue
        if (read := _number(value, key, line)) is not None:
            values[key[len(prefix) :]] = read if math.isfinite(read) else math.nan
    return Line(number, prefix[:-1] or TRAIN_STEPS, int(update), values)


def _number(value: object, key: str, line: ForeignFile) -> float | None:
    """A value of fairseq: a number, usually as a string; None for null."""
    if value is None:
        return None
    try:
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise line.error(f"{shown(key)} is {shown(value)}: expected a number or null")


def _same(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return one.keys() == other.keys() and all(
        value == other[key] or (math.isnan(value) and math.isnan(other[key])) for key, value in one.items()
    )


def chosen(table: pd.DataFrame, patterns: Sequence[str], subsets: Iterable[str] | None = None) -> pd.DataFrame:
    """The rows of the metrics that one of ``patterns`` names, in the order of the table.

    Args:
        table: with columns :data:`COLUMNS`.
        patterns: patterns of metrics (``aer_l*_n_awo``, with ``*``, ``?`` and ``[…]``) in any of ``subsets``; or a
            metric with its subset, as in the log (``train_loss``), whatever ``subsets`` is.
        subsets: None: all but those of training, which must be named.
    """
    metric, subset = table["metric"], table["subset"]
    allowed = ~subset.isin(["train", TRAIN_STEPS]) if subsets is None else subset.isin(list(subsets))
    matches = {name: any(fnmatchcase(name, pattern) for pattern in patterns) for name in metric.unique()}
    matched: pd.Series[bool] = metric.map(matches).astype(bool) & allowed
    return table[matched | (subset + "_" + metric).isin(list(patterns))]


def best(table: pd.DataFrame) -> pd.DataFrame:
    """The best and the last value of each run, subset and metric, in the order of the table.

    The earliest of equal values is the best.  Values that are not finite are ignored.  ``best`` is NaN if there are no
    values, or if it is unknown whether more is better.

    Returns:
        Columns ``run``, ``subset``, ``metric``, ``better`` (lower, higher, or empty), ``best``, ``best_update``,
        ``last``, ``last_update``.
    """
    import pandas as pd

    rows = []
    for (run, subset, name), group in table.groupby(["run", "subset", "metric"], sort=False):
        better = Metric.of(str(name)).better
        ordered = group.sort_values("update", kind="stable")
        values = ordered.dropna(subset="value")
        ranked = values.sort_values("value", ascending=better == "lower", kind="stable")
        top = ranked.iloc[0] if better and len(ranked) else None
        last = ordered.iloc[-1]
        found = (math.nan, None) if top is None else (float(top["value"]), int(top["update"]))
        rows.append((run, subset, name, better or "", *found, float(last["value"]), int(last["update"])))
    columns = ["run", "subset", "metric", "better", "best", "best_update", "last", "last_update"]
    return pd.DataFrame(rows, columns=columns).astype({"best_update": "Int64"})
