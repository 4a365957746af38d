"""Records with a part that was changed, hash and all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.records.manifest import Part, read_manifests

PART = "part-00000-of-00001-00000.parquet"


def edited(directory: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> Path:
    """Change the table of a part, and its hash in the manifest."""
    pq.write_table(change(pq.read_table(directory / PART)), directory / PART, **{"use_dictionary": False, **options})
    (manifest,) = read_manifests(directory, "records")
    replace(manifest, parts=(Part.of(directory / PART, 1),)).write(directory)
    return directory


def column(name: str, value: Any, type_: pa.DataType | None = None) -> Callable[[pa.Table], pa.Table]:
    """Replace the value of a column in a table of one row."""

    def change(table: pa.Table) -> pa.Table:
        found = table.schema.field(name)
        array = pa.array([value], type=type_ or found.type)
        return table.set_column(table.schema.get_field_index(name), name, array)

    return change
