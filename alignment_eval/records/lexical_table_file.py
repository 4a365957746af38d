"""Lexical table files: Parquet tables with the columns source word, target word and weight.

The weight of a row with two words is the sum of their evidence
(:attr:`alignment_eval.extraction.lexical_table.LexicalTable.sums`).
The weight of a row with one word, the other empty, is the number of times that the word occurs in the text.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.extraction.lexical_table import LexicalTable, WordCounts
from alignment_eval.files import new_file
from alignment_eval.schema import Count, ForeignFile

VERSION = 1
SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("weight", pa.float64(), nullable=False),
    ]
)
_WORDS = ["source", "target"]
_METADATA = b"alignment_eval.lexical_table"
_ADVICE = "give one that norm-align calibrate wrote"


def write_lexical_table(path: str | Path, lexical_table: LexicalTable, signature: str) -> None:
    """Write a lexical table and its ``signature``: what it was counted on, and how.  If this fails, no file is left."""
    if not lexical_table.pairs:
        raise InputError(f"{path}: cannot write a lexical table without sentence pairs; no pair has maps")
    about = {"version": VERSION, "pairs": lexical_table.pairs, "signature": signature}
    sides = (lexical_table.source, lexical_table.target)
    width = len(lexical_table.source.counts)
    # rows with both words, then those with a source word, then those with a target word; the last number is no word
    none = [len(side.numbers) for side in sides]
    numbers = [lexical_table.cells % width, lexical_table.cells // width]
    codes = [
        np.concatenate([numbers[0], np.arange(none[0]), np.full(none[1], none[0])]),
        np.concatenate([numbers[1], np.full(none[0], none[1]), np.arange(none[1])]),
    ]
    columns = [pa.array([*side.numbers, ""]).take(pa.array(of)) for side, of in zip(sides, codes)]
    weights = np.concatenate([lexical_table.sums, *(side.counts[:-1] for side in sides)], dtype=np.float64)
    schema = SCHEMA.with_metadata({_METADATA: json.dumps(about, ensure_ascii=False)})
    table = pa.Table.from_arrays([*columns, pa.array(weights)], schema=schema)
    with new_file(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", use_dictionary=_WORDS, write_page_checksum=True)


def read_lexical_table(path: str | Path) -> LexicalTable:
    """Read a lexical table file."""
    file = ForeignFile(str(path), "a lexical table file", _ADVICE)
    table = file.table(SCHEMA)
    header = file.decode((table.schema.metadata or {}).get(_METADATA, b""), _Header, version=VERSION)
    if not len(table):
        raise file.error("no rows")
    weights = np.from_dlpack(table["weight"].combine_chunks())  # to_numpy would import pandas
    (sources, source), (targets, target) = (_numbered(table[side]) for side in _WORDS)
    width = len(sources) + 1
    rows = target * width + source
    if len(np.unique(rows)) < len(rows):
        raise file.error("duplicate rows")
    no_source, no_target = source == len(sources), target == len(targets)
    cells = ~(no_source | no_target)
    order = np.argsort(rows[cells])
    return LexicalTable(
        WordCounts(sources, _counts(source[no_target], weights[no_target], len(sources), file)),
        WordCounts(targets, _counts(target[no_source], weights[no_source], len(targets), file)),
        rows[cells][order],
        weights[cells][order].astype(np.float32),
        header.pairs,
        str(path),
    )


class _Header(msgspec.Struct):
    """What the metadata of a lexical table file hold."""

    version: int
    pairs: Count
    signature: str


def _numbered(column: pa.ChunkedArray) -> tuple[dict[str, int], NDArray[np.int64]]:
    """The words of a column with their numbers, and the number of each row; the empty word comes last."""
    encoded = column.combine_chunks().dictionary_encode()
    words = encoded.dictionary.to_pylist()
    numbers = {word: number for number, word in enumerate(filter(None, words))}
    of_words = np.array([numbers.get(word, len(numbers)) for word in words], dtype=np.int64)
    return numbers, of_words[np.from_dlpack(encoded.indices)]


def _counts(
    numbers: NDArray[np.int64], weights: NDArray[np.float64], size: int, file: ForeignFile
) -> NDArray[np.int64]:
    """How often each of ``size`` words occurs in the text, and a final 0."""
    whole = (weights >= 1) & (weights < 2**53) & (weights == np.floor(weights))
    counts = np.zeros(size + 1, dtype=np.int64)
    if whole.all():
        counts[numbers] = weights
    if not (counts[:-1] > 0).all() or counts[-1]:
        raise file.error("words without a count, or with a count that is not a whole number")
    return counts
