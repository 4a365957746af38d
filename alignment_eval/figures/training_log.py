"""Reads the metrics of each validation from a log of fairseq-train: printed or from ``--log-file``, plain or JSON.

A line of statistics is one of these, after its date and tag; the last value says at which update it was logged::

    {"epoch": 1, "test1_loss": "7.6", "test1_aer": "0.4", "test1_num_updates": "200"}
    epoch 001 | valid on 'test1' subset | loss 7.6 | aer 0.4 | num_updates 200
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alignment_eval.errors import InputError
from alignment_eval.links.text import TextFile

if TYPE_CHECKING:
    import pandas as pd

#: Columns of the table; ``value`` is as logged (AER is a fraction), NaN if it was not finite.
COLUMNS = ("run", "subset", "update", "metric", "value")
_UPDATES = "num_updates"
_JSON = re.compile(r'(?:^| \| )(\{".*)')
_PLAIN = re.compile(r"(?:^| \| )epoch [0-9]+ \| (?:valid on '([^']+)' subset \| )?(.*)")


def read_training_log(path: str | Path, run: str, warn: Callable[[str], None]) -> tuple[pd.DataFrame, str]:
    """Read a log of fairseq-train.

    If the number of updates goes back, as after resuming from an earlier checkpoint, the values from that update on are
    dropped and the following lines count.  Of two values of a metric at an update, the later one counts.

    Lines without statistics are ignored.  ``warn`` is called with a sentence about everything that is dropped.

    Returns:
        A table with :data:`COLUMNS`, in the order of the log; and the short hash of the content.
    """
    import pandas as pd

    file = TextFile(path, "the log of fairseq-train")
    values: dict[tuple[str, int, str], float] = {}
    last = 0
    for number, line in file.lines():
        try:
            subset, update, metrics = _statistics(line.decode())
        except (ValueError, RecursionError) as error:  # cut off, as the last line of a job that runs
            warn(f"{file.name}:{number}: no whole line of statistics ({error}): left out")
            continue
        if metrics and update < last:
            warn(
                f"{file.name}:{number}: the run goes back from update {last} to {update} (it was resumed); the earlier "
                f"values from update {update} on are dropped"
            )
            values = {key: value for key, value in values.items() if key[1] < update}
        last = update if metrics else last
        values.update({(subset, update, metric): value for metric, value in metrics.items()})
    if not values:
        raise InputError(
            f"{file.name}: the file has no lines of statistics; give a log of fairseq-train, with lines like "
            f'… {{"epoch": 1, "valid_loss": "7.6", "valid_num_updates": "200", …}}'
        )
    table = pd.DataFrame([(run, *key, value) for key, value in values.items()], columns=list(COLUMNS))
    return table.astype({"value": "float64"}).replace([math.inf, -math.inf], math.nan), file.hash.short


def _statistics(text: str) -> tuple[str, int, dict[str, float]]:
    """Subset, update and metrics of a line; no metrics if it is another kind of line."""
    fields: dict[str, Any] = {}
    if match := _JSON.search(text):
        logged = json.loads(match[1])
        subset = next((key.removesuffix(f"_{_UPDATES}") for key in logged if key.endswith(f"_{_UPDATES}")), None)
        fields = {key[len(subset) + 1 :]: logged[key] for key in logged if subset and key.startswith(f"{subset}_")}
    elif match := _PLAIN.search(text):
        subset = match[1] or "train"
        fields = dict(field.split(" ", 1) for field in match[2].split(" | ") if " " in field)
    if _UPDATES not in fields:
        return "", 0, {}
    values = {key: float(str(value)) for key, value in fields.items() if value not in (None, "None")}
    update = values.pop(_UPDATES, math.nan)
    if not (update.is_integer() and update >= 0):
        raise ValueError(f"{_UPDATES} is {fields[_UPDATES]}: expected a number of updates")
    return str(subset), int(update), values
