"""What fairseq-train's JSON log says of each update: ``--log-format json``, as printed or as ``--log-file`` has it.

A line of statistics is one JSON object, after date, level and tag where it was printed (``--log-file`` has the object
alone, so tags are not relied on).  The key that ends in ``num_updates`` says which subset it is of:
``test1_num_updates`` stands among the figures of ``test1``, a bare ``num_updates`` among those of the last few
training steps (:data:`TRAIN_STEPS`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from alignment_eval.errors import InputError
from alignment_eval.formats.text import TextFile

if TYPE_CHECKING:
    import pandas as pd

#: Columns of a table of figures; ``value`` is as logged (AER: a fraction), NaN where it was not finite.
COLUMNS = ("run", "subset", "update", "metric", "value")
#: The subset of fairseq's ``train_inner`` lines, which have no subset in their keys.
TRAIN_STEPS = "train_inner"
_STATISTICS = re.compile(rb'(?:^| \| )(\{".*)', re.DOTALL)
_UPDATES = "num_updates"
_AER = re.compile(r"aer(?:_l(?P<layer>[0-9]+)_(?P<kind>[a-z]+)_(?P<setting>awo|awi))?")
_LOWER = re.compile(rf"{_AER.pattern}|(?:.*_)?(?:loss|ppl)")
_HIGHER = re.compile(r"(?:.*_)?(?:precision|recall|bleu|chrf|accuracy)")
_COUNTS = frozenset({"epoch", "update"})


@dataclass(frozen=True)
class Metric:
    """What the name of a metric says; the name is without its subset.

    Attributes:
        name: as logged, ``aer_l1_n_awo``.
        layer: of the map that the AER is of, from 0; None where the name has none.
        kind: ``n`` (norms) or ``w`` (weights), or None.
        setting: ``awo`` or ``awi``, or None.
        share: it is a fraction, shown as a percentage.
        better: ``lower``, ``higher``, or None where nothing is known of it.
    """

    name: str
    layer: int | None
    kind: str | None
    setting: str | None
    share: bool
    better: str | None

    @classmethod
    def of(cls, name: str) -> Metric:
        """Take a name apart."""
        match = _AER.fullmatch(name)
        layer, kind, setting = match.group("layer", "kind", "setting") if match else (None, None, None)
        better = "lower" if _LOWER.fullmatch(name) else "higher" if _HIGHER.fullmatch(name) else None
        share = match is not None or name in ("aer_precision", "aer_recall")
        return cls(name, None if layer is None else int(layer), kind, setting, share, better)

    def shown(self, value: float) -> str:
        """A value for a reader."""
        return f"{100 * value:.2f} %" if self.share else f"{value:g}"


@dataclass(frozen=True)
class Line:
    """A line of statistics.

    Attributes:
        number: of the line in its file, from 1.
        subset: what the figures are of.
        update: the number of updates when it was logged.
        values: metric, without the subset, to value; NaN for what was not finite.
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
        lines: those that count, in the order of the file: a run that went back to an earlier update has discarded
            what came after it.
    """

    name: str
    hash: str
    lines: tuple[Line, ...]

    def table(self, run: str) -> pd.DataFrame:
        """One row a figure, columns :data:`COLUMNS`; ``run`` is what the run is called."""
        import pandas as pd

        rows = [
            (run, line.subset, line.update, metric, value)
            for line in self.lines
            for metric, value in line.values.items()
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"update": "int64", "value": "float64"})


def read_training_log(path: str | Path, warn: Callable[[str], None]) -> TrainingLog:
    """Read what fairseq-train logged.

    A last line that is cut off is left out.  Where the number of updates goes back, as after resuming from an earlier
    checkpoint, the lines from that update on are left out and those that follow count; the later of two lines of
    the same subset and update counts.

    Args:
        path: a file, ``-`` for standard input; other lines than those of statistics are passed over.
        warn: takes what was left out, one sentence each.

    Raises:
        InputError: the file cannot be read or is empty; a line of statistics is damaged; there is none.
    """
    file = TextFile(path, "the log of fairseq-train --log-format json")
    kept: dict[tuple[str, int], Line] = {}
    last = 0
    for line in _statistics(file, warn):
        if line.update < last:
            later = [key for key in kept if key[1] >= line.update]
            warn(
                f"{file.name}:{line.number}: goes back from update {last} to {line.update} (a resumed run): "
                f"{len(later)} earlier lines from update {line.update} on are left out"
            )
            for key in later:
                del kept[key]
        last = line.update
        key = line.subset, line.update
        before = kept.pop(key, line)
        if not _same(before.values, line.values):
            warn(
                f"{file.name}:{line.number}: other figures of {line.subset} at update {line.update} than on line "
                f"{before.number}: the later ones count"
            )
        kept[key] = line
    if not kept:
        raise InputError(
            f"{file.name}: no line of statistics in it: expected those of fairseq-train --log-format json, "
            f'… {{"epoch": 1, "valid_loss": "7.6", "valid_num_updates": "200", …}}; was it another --log-format?'
        )
    return TrainingLog(file.name, file.hash.short, tuple(kept.values()))


def _statistics(file: TextFile, warn: Callable[[str], None]) -> Iterator[Line]:
    """The lines of statistics; of a damaged one it must be known whether it is the last."""
    damaged: InputError | None = None
    for number, text in enumerate(_lines(file), 1):
        if damaged is not None:
            raise damaged
        match = _STATISTICS.search(text)
        if match is None:
            continue
        try:
            found = json.loads(match[1])
        except (ValueError, RecursionError):
            shown = match[1].decode("utf-8")
            damaged = InputError(
                f"{file.name}:{number}: {shown[:40]}… ends in …{shown[-20:]}: expected a whole JSON object on one "
                f"line; remove the line, if the job was stopped there"
            )
            continue
        if isinstance(found, dict) and (line := _line(found, f"{file.name}:{number}", number)):
            yield line
    if damaged is not None:
        warn(f"{file.name}:{number}: the last line is cut off (is the job running?): it is left out")


def _lines(file: TextFile) -> Iterator[bytes]:
    for chunk in file:
        yield from chunk.split(b"\n")[:-1]


def _line(found: Mapping[str, object], place: str, number: int) -> Line | None:
    """The statistics in a JSON object; None if it says no number of updates: it is something else."""
    keys = [key for key in found if key == _UPDATES or key.endswith(f"_{_UPDATES}")]
    if len(keys) != 1:
        return None
    prefix = keys[0][: -len(_UPDATES)]
    update = _number(found[keys[0]], keys[0], place)
    if update is None or not update.is_integer() or update < 0:
        raise InputError(f"{place}: {keys[0]!r} is {found[keys[0]]!r}: expected a number of updates")
    values = {}
    for key, value in found.items():
        if key in (keys[0], *_COUNTS) or not key.startswith(prefix) or isinstance(value, list):
            continue
        if (read := _number(value, key, place)) is not None:
            values[key[len(prefix) :]] = read if math.isfinite(read) else math.nan
    return Line(number, prefix[:-1] or TRAIN_STEPS, int(update), values)


def _number(value: object, key: str, place: str) -> float | None:
    """A figure of fairseq: a number, mostly as a string; None for null."""
    if value is None:
        return None
    try:
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise InputError(f"{place}: {key!r} is {value!r}: expected a number, as a string or not, or null")


def _same(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return one.keys() == other.keys() and all(
        value == other[key] or (math.isnan(value) and math.isnan(other[key])) for key, value in one.items()
    )


def chosen(table: pd.DataFrame, patterns: Sequence[str], subsets: Iterable[str] | None = None) -> pd.DataFrame:
    """The rows of the metrics that one of ``patterns`` names, in the order of the table.

    Args:
        table: with columns :data:`COLUMNS`.
        patterns: of metrics (``aer_l*_n_awo``, with ``*``, ``?`` and ``[…]``) in any of ``subsets``; or a metric
            of a subset, as it stands in the log (``train_loss``), whatever ``subsets`` says.
        subsets: None takes all but those of training, which are only taken by name.
    """
    metric, subset = table["metric"], table["subset"]
    allowed = ~subset.isin(["train", TRAIN_STEPS]) if subsets is None else subset.isin(list(subsets))
    matches = {name: any(fnmatchcase(name, pattern) for pattern in patterns) for name in metric.unique()}
    matched: pd.Series[bool] = metric.map(matches).astype(bool) & allowed
    return table[matched | (subset + "_" + metric).isin(list(patterns))]


def best(table: pd.DataFrame) -> pd.DataFrame:
    """The best and the last value of each run, subset and metric, in the order of the table.

    Of equal values the earliest is the best.  Values that are not finite do not count; ``best`` is NaN where there is
    none, or where it is not known whether more is better.

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
