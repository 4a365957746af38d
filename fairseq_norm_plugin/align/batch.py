"""Aligns tables of sentence pairs batch by batch, in any process: for Spark, Dask, datasets and Ray Data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import torch

from alignment_eval.alignment import TYPES, Alignment
from alignment_eval.errors import InputError, UsageError, printable, shown
from alignment_eval.profiles.chosen import OF_TEXT, AlignmentOptions
from alignment_eval.profiles.profile import NO_PROFILE
from fairseq_norm_plugin.model.aligner import Aligner, choose
from fairseq_norm_plugin.model.load import check_known, load
from fairseq_norm_plugin.text.pair import SentencePair

#: The columns of an alignment that a batch gets; its text is in the batch.
_COLUMNS = ("source_spans", "target_spans", "links", "confidences", "status")
_ARROW = (pa.Table, pa.RecordBatch)


class AlignBatch:
    """Aligns batches of sentence pairs, each pair by itself, by the models' profiles.

    An object holds options only and can be pickled.  Each process loads the models when it aligns its first batch.

    Args:
        path: the checkpoint, as for :func:`fairseq_norm_plugin.load`.
        *args: more arguments of that function: ``data``, ``source_lang``, ``target_lang``, ``bpe_codes``.
        profile: a profile's file; default: the one beside each checkpoint.
        table: the file of a lexical table, or ``none``; default: that of the profile.
        max_tokens: tokens of a batch in the model, pads included.
        device: where the models run; default: a GPU if this process sees one, else the processor.
        columns: the columns of source and target.
        **options: more arguments of :func:`fairseq_norm_plugin.load`, such as ``reverse_path``.

    Raises:
        UsageError: :func:`load` has no such option, ``max_tokens`` is below 1, ``profile`` is ``none``, or ``table`` is
            ``text``.
    """

    def __init__(
        self,
        path: str | Path,
        *args: Any,
        profile: str | Path | None = None,
        table: str | Path | None = None,
        max_tokens: int = AlignmentOptions.max_tokens,
        device: str | None = None,
        columns: tuple[str, str] = ("source", "target"),
        **options: Any,
    ) -> None:
        if str(profile) == NO_PROFILE:
            raise UsageError("profile none: a single batch cannot choose the maps for all; give a profile's file")
        if table == OF_TEXT:
            raise UsageError("table text: a single batch cannot count the table for all; give the file of one")
        check_known(options)
        self._model = (path, *args), options
        self._options = AlignmentOptions(profile=profile, table=table, max_tokens=max_tokens)
        self._device = device
        self._columns = columns

    def __getstate__(self) -> dict[str, Any]:
        """The options, without loaded models."""
        return {name: value for name, value in vars(self).items() if name != "aligner"}

    def __call__(self, batch: Any) -> Any:
        """Align the pairs of a batch.

        Args:
            batch: a ``pyarrow.Table`` or ``RecordBatch``, a ``pandas.DataFrame``, or a mapping of columns.

        Returns:
            A batch of the same kind and the same rows, with the column ``id`` if the batch has one, and with ``links``
            ([[i, j], …]), ``confidences`` (one for each link), ``source_spans`` and ``target_spans`` of the words
            ([[start, end], …]), and ``status`` (``ok``, or why the pair has no links: it is empty, too long, no text,
            or raised an error, which does not harm the other pairs).
        """
        names = list(batch.schema.names if isinstance(batch, _ARROW) else batch)
        pairs = dict(enumerate(zip(*_columns(batch, names, self._columns))))
        rows = [pair.to_row() for pair in align_separately(self.aligner, pairs).values()]
        found = {name: [row[name] for row in rows] for name in _COLUMNS}
        kept = {"id": batch["id"]} if "id" in names else {}
        if isinstance(batch, _ARROW):
            arrays = {name: pa.array(values, TYPES[name]) for name, values in found.items()}
            return type(batch).from_pydict({**kept, **arrays})
        return pd.DataFrame({**kept, **found}, batch.index) if isinstance(batch, pd.DataFrame) else {**kept, **found}

    @cached_property
    def aligner(self) -> Aligner:
        """The models of this process, ready to align.

        Raises:
            InputError: a file cannot be used, or a model has no profile; it cannot choose its maps on a batch, or each
                batch would have others.
        """
        args, options = self._model
        model = load(*args, profile=self._options.profile, **options)
        model.to(self._device or ("cuda" if torch.cuda.is_available() else "cpu"))
        for profile in (member.profile for member in model.both if self._options.profile is None):
            if not profile.is_file():
                raise InputError(f"{profile}: no such profile, which a batch needs; make one with norm-align calibrate")
        return Aligner(choose(self._options, model.both), model.both, self._options)


def _columns(batch: Any, known: Sequence[str], names: Sequence[str]) -> list[list[Any]]:
    """The values of columns of a batch, which has those that are ``known``; all of the same length."""
    for name in names:
        if name not in known:
            raise InputError(f"the batch has no column {name}, only {', '.join(map(shown, known))}; name the columns")
    columns = [batch[name].to_pylist() if isinstance(batch, _ARROW) else list(batch[name]) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"columns {', '.join(names)} of a batch have different lengths: expected a value in each row")
    return columns


def align_separately(aligner: Aligner, pairs: Mapping[int, tuple[Any, Any]]) -> dict[int, Alignment]:
    """Align source-target pairs of raw lines, by id; they are sorted by length together.

    If they cannot be aligned together, each half is aligned by itself, and so on, until the pairs that fail are found.
    What is no text gets the status ``not text``.
    """
    texts = {id_: pair for id_, pair in pairs.items() if all(isinstance(side, str) for side in pair)}
    aligned = _align_or_halve(aligner, texts)
    return {id_: aligned.get(id_) or Alignment("", "", (), (), [], status="not text") for id_ in pairs}


def _align_or_halve(aligner: Aligner, pairs: Mapping[int, tuple[str, str]]) -> dict[int, Alignment]:
    try:
        pipelines = aligner.models[0].pipelines
        read = [SentencePair(*(line.read(own) for line, own in zip(pipelines, pair))) for pair in pairs.values()]
        return dict(zip(pairs, aligner.align(0, read)))
    except (MemoryError, torch.OutOfMemoryError):  # of no single pair
        raise
    except Exception as error:
        if len(pairs) == 1:
            (id_,) = pairs
            reason = printable((str(error) or type(error).__name__)[:300])
            return {id_: Alignment(*pairs[id_], (), (), [], status=f"failed: {reason}")}
    items, middle = list(pairs.items()), len(pairs) // 2
    return _align_or_halve(aligner, dict(items[:middle])) | _align_or_halve(aligner, dict(items[middle:]))
