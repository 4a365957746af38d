"""What a part may hold is bounded before it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.records import store
from alignment_eval.records.store import Records
from alignment_eval.schema import table
from tests.eval.records.edited_parts import PART, column, edited
from tests.facts import facts

Factory = Callable[..., SentenceMaps]
Writer = Callable[..., Path]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": True}])
def test_a_row_group_that_grows(
    tmp_path: Path,
    make_sentence: Factory,
    make_records: Writer,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
) -> None:
    """A small file that would fill the memory is refused before its values are read."""
    wide = column("head_attn_w", np.zeros(2**21, np.float32))
    directory = edited(make_records(tmp_path, [make_sentence(0)]), wide, compression="zstd", **options)
    assert (directory / PART).stat().st_size < 20_000
    monkeypatch.setattr(table, "MAX_GROUP_BYTES", 2**23)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    text = "column … is encoded as 'RLE_DICTIONARY'" if options else "a row group takes … at most 8388608"
    with pytest.raises(InputError, match=facts(text)):
        list(Records(directory))


def test_a_sentence_that_would_be_refused_is_not_written(
    make_sentence: Factory, make_records: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_MAX_SENTENCE_BYTES", 100)
    with pytest.raises(InputError, match=facts("sentence 0 … at most 100 … --max-source-positions")):
        make_records(tmp_path, [make_sentence(0)])
