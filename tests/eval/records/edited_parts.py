"""Records with a part that was changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PART = "part-00000-of-00001-00000.parquet"


def edited(directory: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> Path:
    """Change the table of a part; its manifest stays."""
    table = pq.read_table(directory / PART)
    changed = change(table).replace_schema_metadata(table.schema.metadata)
    pq.write_table(changed, directory / PART, **{"use_dictionary": False, **options})
    return directory


def column(name: str, value: Any, type_: pa.DataType | None = None) -> Callable[[pa.Table], pa.Table]:
    """Replace the value of a column in a table of one row."""

    def change(table: pa.Table) -> pa.Table:
        array = pa.array([value], type=type_ or table.schema.field(name).type)
        return table.set_column(table.schema.get_field_index(name), name, array)

    return change
