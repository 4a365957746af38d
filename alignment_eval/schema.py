"""What files of others may hold: JSON is read against types, Parquet tables against schemas.

Whatever is wrong with a file becomes one sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.errors import InputError, printable, shown

#: A number of things, or one of them counted from 0.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
T = TypeVar("T")


@dataclass(frozen=True)
class ForeignFile:
    """A file that anyone may have written: its name, what it should be, and what to do if it is something else."""

    name: str
    what: str
    advice: str

    def error(self, problem: str) -> InputError:
        """The error for this problem."""
        return InputError(f"{self.name}: damaged, or not {self.what} ({problem}); {self.advice}")

    @contextmanager
    def parquet(self) -> Iterator[pq.ParquetFile]:
        """The Parquet file, open; whatever is wrong with it becomes one sentence."""
        try:
            with pq.ParquetFile(self.name, page_checksum_verification=True) as opened:
                yield opened
        except FileNotFoundError as error:
            raise InputError(f"{self.name}: cannot read the file (no such file); {self.advice}") from error
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise self.error(printable(str(error), 200)) from error

    def table(self, known: pa.Schema) -> pa.Table:
        """The columns of the Parquet file that ``known`` has, checked."""
        with self.parquet() as opened:
            table = opened.read(columns=known.names)
        check_columns(table.schema, known, self)
        for batch in table.to_batches():
            check_values(batch, known, self)
        return table

    def decode(self, content: bytes | str, type_: type[T], **version: int) -> T:
        """The value of type ``type_`` that the JSON ``content`` holds.

        ``version``: the key that holds the version of the format, and the version that this program reads.
        """
        try:
            value = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:  # the last: nested too deeply
            raise self.error(str(error)) from error
        for key, known in version.items():
            if isinstance(value, dict) and type(value.get(key)) is int and value[key] != known:
                raise self.error(f"{key} is {shown(value[key])}: expected version {known}")
        return self.convert(value, type_)

    def convert(self, value: Any, type_: type[T], path: str = "") -> T:
        """The value of type ``type_`` that decoded JSON holds; ``path`` is its place in the content."""
        try:
            return msgspec.convert(value, type_, dec_hook=_of_text)
        except msgspec.ValidationError as error:
            problem, _, place = str(error).partition(" - at `$")
            place = f"{path}{place.rstrip('`')}".lstrip(".") or "the content"
            raise self.error(f"{printable(place, 200)}: {printable(problem, 200)}") from error


def _of_text(type_: type[T], text: Any) -> T:
    """The value of a type that files hold as text."""
    if not isinstance(text, str):
        raise TypeError("Expected `str`")
    return type_(text)  # type: ignore[call-arg]


def check_columns(found: pa.Schema, expected: pa.Schema, file: ForeignFile) -> None:
    """Check the names and types of columns, in any order."""
    types = dict(zip(expected.names, expected.types))
    for name, type_ in zip(found.names, found.types):
        known = types.pop(name, None)
        if known != type_:
            wanted = "no such column, or only one" if known is None else known
            raise file.error(f"column {shown(name)} has type {type_}: expected {wanted}")
    for name, type_ in types.items():
        raise file.error(f"column {shown(name)} is missing: expected type {type_}")


def check_values(batch: pa.RecordBatch, expected: pa.Schema, file: ForeignFile, signed: Collection[str] = ()) -> None:
    """Check the values of columns of the right types; only floats of the columns ``signed`` may be below 0."""
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        raise file.error(printable(str(error), 200)) from error
    for name, column in zip(batch.schema.names, batch.columns):
        values = column.values if pa.types.is_list(column.type) else column
        nullable = values is column and expected.field(name).nullable
        if not nullable and (column.null_count or values.null_count):
            raise file.error(f"column {name} has null values")
        if pa.types.is_floating(values.type):
            floats = np.from_dlpack(values.drop_null() if nullable else values)  # to_numpy would import pandas
            wrong = ~np.isfinite(floats) | (False if name in signed else floats < 0)
            if wrong.any():
                expected = "a finite number" if name in signed else "a finite number, 0 or more"
                raise file.error(f"column {name} has the value {floats[wrong][0]}: expected {expected}")
