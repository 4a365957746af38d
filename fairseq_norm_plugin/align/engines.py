"""Aligns tables of sentence pairs batch by batch, in any process: for Spark, Dask, datasets, Ray Data and ``--ray``."""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import torch

from alignment_eval.alignment import Alignment
from alignment_eval.errors import InputError, UsageError, printable, say, shown, warn_user
from alignment_eval.files import check_directory, new_directory
from alignment_eval.links.files import TYPES
from alignment_eval.profiles.chosen import OF_TEXT, AlignmentOptions
from alignment_eval.profiles.profile import NO_PROFILE
from alignment_eval.reading import file_hash
from fairseq_norm_plugin.align.job import Job
from fairseq_norm_plugin.model.aligner import Aligner, aligner_of, signed
from fairseq_norm_plugin.model.load import check_known, load
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.model.text_check import SAMPLE, check_parallel
from fairseq_norm_plugin.text.lines import first_pairs, parquet_files, type_of_ids
from fairseq_norm_plugin.text.pair import SentencePair
from fairseq_norm_plugin.text.tokens import UnknownTokens

#: The columns of an alignment that a batch gets; its text is in the batch.
_COLUMNS = ("source_spans", "target_spans", "links", "confidences", "status")
_ARROW = (pa.Table, pa.RecordBatch)
#: Rows that an actor aligns together.
_BATCH = 1000
#: What Ray reads when it is imported: no network call for statistics of usage.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_MARK = "_SUCCESS"
_OWN_FILES = re.compile(rf"{_MARK}|.*\.parquet")


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
        return {name: value for name, value in vars(self).items() if name not in ("aligner", "model")}

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
    def model(self) -> NormModel:
        """The models of this process.

        Raises:
            InputError: a file cannot be used.
        """
        args, options = self._model
        model = load(*args, profile=self._options.profile, **options)
        return model.to(self._device or ("cuda" if torch.cuda.is_available() else "cpu"))

    @cached_property
    def aligner(self) -> Aligner:
        """The models of this process, ready to align.

        Raises:
            InputError: a file cannot be used, or a model has no profile; it cannot choose its maps on a batch, or each
                batch would have others.
        """
        for member in self.model.directions:
            profile = member.direction.profile
            if self._options.profile is None and not profile.is_file():
                raise InputError(f"{profile}: no such profile, which a batch needs; make one with norm-align calibrate")
        return aligner_of(self._options, self.model.directions)


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


def _read_pair(aligner: Aligner, source: str, target: str) -> SentencePair:
    pipelines = aligner.directions[0].pipelines
    return SentencePair(pipelines[0].read(source), pipelines[1].read(target))


def _align_or_halve(aligner: Aligner, pairs: Mapping[int, tuple[str, str]]) -> dict[int, Alignment]:
    try:
        lines = {id_: _read_pair(aligner, *pair) for id_, pair in pairs.items()}
        return {alignment.id: alignment for alignment in aligner.align([lines.items()])}
    except (MemoryError, torch.OutOfMemoryError):  # of no single pair
        raise
    except Exception as error:
        if len(pairs) == 1:
            (id_,) = pairs
            reason = printable((str(error) or type(error).__name__)[:300])
            return {id_: Alignment(*pairs[id_], (), (), [], status=f"failed: {reason}")}
    items, middle = list(pairs.items()), len(pairs) // 2
    return _align_or_halve(aligner, dict(items[:middle])) | _align_or_halve(aligner, dict(items[middle:]))


def run(job: Job) -> None:
    """Align the Parquet files of a job on a Ray cluster, each pair alone."""
    check_directory(job.output, job.overwrite, _OWN_FILES)
    ray = _import_ray()
    (place,) = job.paths
    paths = parquet_files(place)
    if type_of_ids(paths) is None:
        raise InputError(f"{place}: no column id, and Ray keeps no order: expected an id in each row")
    options = {
        **job.models,
        "table": job.options.table,
        "max_tokens": job.options.max_tokens,
        "device": "cpu" if job.on_cpu else None,
    }
    # what is wrong with the models or the first pairs is said here, where it is seen
    batches = AlignBatch(**{**options, "device": "cpu"})
    _check_text(first_pairs(paths, SAMPLE[1]), batches.aligner, job.options.force)
    start = time.monotonic()
    connected = ray.is_initialized()
    try:
        if not connected:
            try:
                ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
            except Exception as error:  # Ray raises plain exceptions
                raise InputError(f"--ray: Ray cannot be started ({_reason(error)}); try again") from error
        with new_directory(job.output, job.overwrite, _OWN_FILES) as directory:
            verified = pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
            files = [str(Path(path).resolve()) for path in paths]
            pairs = ray.data.read_parquet(files, fragment_scan_options=verified)
            links = pairs.select_columns(["id", "source", "target"]).map_batches(
                AlignBatch,
                fn_constructor_kwargs=options,
                batch_format="pyarrow",
                batch_size=_BATCH,
                **_actors(job, ray),
            )
            links.write_parquet(str(directory.resolve()))
            size = _check(directory)
            (directory / _MARK).touch()
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise InputError(f"--ray: {_reason(error)}") from error
    finally:
        if not connected:
            ray.shutdown()
    seconds = time.monotonic() - start
    say(f"norm-align: {size} sentences in {seconds:.1f} s, {size / seconds:.1f} sentences/s")
    say(signed(batches.model.directions, map(file_hash, paths), size, batches.aligner.chosen.fields))


def _check_text(pairs: Sequence[tuple[str, str]], aligner: Aligner, force: bool) -> None:
    """Warn of a text that does not suit the models, by its first pairs; refuse unrelated lines, unless ``force``."""
    direction, unknown = aligner.directions[0], UnknownTokens()
    read = [_read_pair(aligner, *pair) for pair in pairs]
    for pair in read:
        for name, side in zip(("source", "target"), direction.encode(pair)):
            unknown.add(name, len(side.ids), side.unknown)
    if warning := unknown.warning():
        warn_user(warning)
    check_parallel(enumerate(read), aligner.directions, force)


def _import_ray() -> Any:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise InputError(f"--ray: the package ray cannot be imported ({error}): pip install 'ray[data]'") from error
    # the newer reader lists files in threads; without aiohttp, one may find a half-imported module of fsspec
    ray.data.DataContext.get_current().use_datasource_v2 = False
    return ray


def _actors(job: Job, ray: Any) -> dict[str, Any]:
    """How many actors align, and what each reserves: one for each GPU, or for each processor without GPUs."""
    resources = ray.cluster_resources()
    gpus = 0 if job.on_cpu else int(resources.get("GPU", 0))
    actors = job.actors or gpus or max(1, int(resources.get("CPU", 1)))
    pool = ray.data.ActorPoolStrategy(min_size=1, max_size=actors)
    # several actors may share a GPU: much of the work of each is on a processor
    return {"compute": pool, **({"num_gpus": 1 / math.ceil(actors / gpus)} if gpus else {"num_cpus": 1})}


def _check(directory: Path) -> int:
    """Report the pairs without links; returns the number of pairs."""
    batches = pyarrow.dataset.dataset(directory, format="parquet").to_batches(columns=["status"])
    statuses: Counter[str] = Counter()
    for batch in batches:
        statuses.update(batch["status"].to_pylist())
    size = statuses.total()
    if not statuses.pop("ok", 0):
        reasons = ", ".join(reason for reason, _ in statuses.most_common(1)) or "there are no rows"
        raise InputError(f"none of {size} sentence pairs could be aligned: {printable(reasons, 300)}")
    for reason, count in statuses.items():
        warn_user(f"sentence pairs that are {reason}: {count}, without links")
    return size


def _reason(error: BaseException) -> str:
    """The reason of an error that Ray raised: the error of an actor, if one caused it."""
    inner: Any = error
    while inner is not None:
        if isinstance(inner, InputError):
            return str(inner)
        inner = getattr(inner, "cause", None) or inner.__cause__
    return f"{type(error).__name__}: {printable(str(error).strip().splitlines()[-1], 300)}"
