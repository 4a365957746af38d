"""Writes tables as CSV whose texts no spreadsheet takes for formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: What a formula begins with (https://owasp.org/www-community/attacks/CSV_Injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV without its index; a text that a spreadsheet would evaluate begins with an apostrophe."""
    return str(table.astype(object).map(_harmless).to_csv(index=False))


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
