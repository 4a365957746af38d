"""``--ray``: Ray Data reads Parquet files, ``AlignBatch`` aligns, Ray Data writes Parquet files."""

from __future__ import annotations

import argparse
import math
import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset

from alignment_eval.errors import InputError, printable, say, warn_on_stderr
from alignment_eval.files import OwnFiles, check_directory, file_hash, new_directory
from fairseq_norm_plugin.align.arguments import model_options
from fairseq_norm_plugin.model.align import signed
from fairseq_norm_plugin.model.align_batch import AlignBatch
from fairseq_norm_plugin.model.direction import Direction
from fairseq_norm_plugin.model.text_check import SAMPLE, check_parallel
from fairseq_norm_plugin.text.lines import first_pairs, parquet_files, type_of_ids
from fairseq_norm_plugin.text.tokenise import SentencePair
from fairseq_norm_plugin.text.tokens import UnknownTokens

#: Rows that an actor aligns together.
_BATCH = 1000
#: What Ray reads when it is imported: no network call for statistics of usage.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_MARK = "_SUCCESS"
_OWN_FILES = OwnFiles("norm-align --ray", re.compile(rf"{_MARK}|.*\.parquet"))


def run(args: argparse.Namespace) -> None:
    """Align the Parquet files of ``args`` on a Ray cluster, each pair alone."""
    check_directory(args.output, args.overwrite, _OWN_FILES)
    ray = _import_ray()
    paths = parquet_files(args.text)
    if type_of_ids(paths) is None:
        raise InputError(f"{args.text}: no column id, and Ray keeps no order of rows: expected an id in each row")
    options = {
        **model_options(args),
        "profile": args.profile,
        "table": args.table,
        "max_tokens": args.max_tokens,
        "device": "cpu" if args.cpu or args.dtype == "int8" else None,
    }
    # what is wrong with the models or the first pairs is said here, where it is seen
    batches = AlignBatch(**{**options, "device": "cpu"})
    aligner = batches.aligner
    _check_text(first_pairs(paths, SAMPLE), aligner.directions, args.force)
    start = time.monotonic()
    connected = ray.is_initialized()
    try:
        if not connected:
            _start(ray)
        with new_directory(args.output, args.overwrite, _OWN_FILES) as directory:
            verified = pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
            files = [str(Path(path).resolve()) for path in paths]
            pairs = ray.data.read_parquet(files, fragment_scan_options=verified)
            links = pairs.select_columns(["id", "source", "target"]).map_batches(
                AlignBatch,
                fn_constructor_kwargs=options,
                batch_format="pyarrow",
                batch_size=_BATCH,
                **_actors(args, ray),
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
    facts = [model.facts for model in batches.model.with_reverse]
    say(signed(facts, map(file_hash, paths), size, batches.chosen.fields))


def _check_text(pairs: Sequence[tuple[str, str]], directions: Sequence[Direction], force: bool) -> None:
    """Warn of a text that does not suit the models, by its first pairs; refuse unrelated lines, unless ``force``."""
    source, target = directions[0].pipelines
    read = [SentencePair(source.read(line), target.read(other)) for line, other in pairs]
    unknown = UnknownTokens()
    for pair in read:
        for name, side in zip(("source", "target"), directions[0].encode(pair)):
            unknown.add(name, len(side.ids), side.unknown)
    if warning := unknown.warning():
        warn_on_stderr(warning)
    check_parallel(enumerate(read), directions, force)


def _import_ray() -> Any:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise InputError(
            f"--ray: the package ray cannot be imported ({error}); install it with pip install 'ray[data]'"
        ) from error
    # the newer reader lists files in threads; without aiohttp, one may find a half-imported module of fsspec
    ray.data.DataContext.get_current().use_datasource_v2 = False
    return ray


def _start(ray: Any) -> None:
    try:
        ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
    except Exception as error:  # Ray raises plain exceptions
        raise InputError(f"--ray: Ray cannot be started ({_reason(error)}); try again") from error


def _actors(args: argparse.Namespace, ray: Any) -> dict[str, Any]:
    """How many actors align, and what each reserves: one for each GPU, or for each processor without GPUs."""
    resources = ray.cluster_resources()
    gpus = 0 if args.cpu else int(resources.get("GPU", 0))
    actors = args.ray or gpus or max(1, int(resources.get("CPU", 1)))
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
        warn_on_stderr(f"sentence pairs that are {reason}: {count}, without links")
    return size


def _reason(error: BaseException) -> str:
    """The reason of an error that Ray raised: the error of an actor, if one caused it."""
    inner: Any = error
    while inner is not None:
        if isinstance(inner, InputError):
            return str(inner)
        inner = getattr(inner, "cause", None) or inner.__cause__
    return f"{type(error).__name__}: {printable(str(error).strip().splitlines()[-1], 300)}"
