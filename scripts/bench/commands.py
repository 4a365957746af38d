"""What ``align-eval`` costs: a sweep, the score of a large file, the import, the help.

Everything is made up here, each command runs in a process of its own, and times are its CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from measure import Comparison, Process, alternate, process
from numpy.typing import NDArray

from alignment_eval.maps.sentence import DEFAULT_KINDS, SentenceMaps, SentenceSide
from alignment_eval.records.store import RunInfo, arrow_schema, to_table
from fairseq_norm_plugin.output.shard_parts import IfExists, ShardParts

GROUP = "align-eval"
SENTENCES, LAYERS, HEADS = 508, 6, 8
SCORED_LINES = 10**6
#: Words of a sentence, as on the 508 German-English pairs of Vilar et al.; 1.3 subwords each.
MEAN_WORDS, DEVIATION, MOST_WORDS = 20, 9.5, 40
_BATCH = 32
_QUANTITIES = ("head_attn_w", "transformed_norm", "layer_attn_n")
_ALIGN_EVAL = (sys.executable, "-m", "alignment_eval")
#: What a sweep imports.
_MODULES = ("extraction.extract", "formats.reading", "records.store", "scoring.aer", "scoring.sweep")
_PLAIN_SCORE = Path(__file__).with_name("plain_score.py")


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    """Measure all; ``options`` has ``runs``."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as directory:
        yield from _sweep(Path(directory), rng, options.runs)
        yield _score(Path(directory), rng, options.runs)
    yield _import(options.runs)
    times = [process([*_ALIGN_EVAL, "--help"]).cpu for _ in range(options.runs)]
    yield Comparison(GROUP, "`align-eval --help`", "", "s CPU", times, reach="≤ 0.5 s")


def _sweep(directory: Path, rng: np.random.Generator, runs: int) -> Iterator[Comparison]:
    records, gold = directory / "records", directory / "sweep.talp"
    words = _lengths(rng, SENTENCES)
    gold.write_text("\n".join(_gold_line(rng, pair) for pair in words) + "\n")
    write_records(records, [_sentence(rng, id_, pair) for id_, pair in enumerate(words)])
    command = [*_ALIGN_EVAL, "sweep", str(records), "--gold", str(gold), "--gold-base", "0", "--overwrite"]
    taken = [process([*command, "--out", str(directory / "out")]) for _ in range(runs)]
    what = f"`align-eval sweep`, {SENTENCES} sentences, {LAYERS} layers × {HEADS} heads, 2 kinds, settings and rules"
    yield Comparison(GROUP, what, "", "s CPU", [run.cpu for run in taken], reach="≤ 10 s", note=_wall(taken))
    yield Comparison(GROUP, f"{what}: largest resident size", "", "MiB", [run.peak for run in taken], reach="≤ 1 GB")


def _score(directory: Path, rng: np.random.Generator, runs: int) -> Comparison:
    files = [directory / name for name in ("gold.talp", "hypothesis.pharaoh")]
    lines = [_gold_line(rng, pair) for pair in _lengths(rng, 10_000)]
    for path, written in zip(files, (lines, [_hypothesis_line(rng, line) for line in lines])):
        path.write_text("\n".join(written) + "\n")
    gold, hypothesis = map(str, files)
    ours = [*_ALIGN_EVAL, "score", "--gold", gold, "--gold-base", "0", hypothesis, "--format", "json"]
    plain = [sys.executable, str(_PLAIN_SCORE), gold, hypothesis]
    both = json.loads(_output(ours))["aer"], float(_output(plain))
    if both[0] != both[1]:
        raise RuntimeError(f"AER {both[0]} of align-eval, {both[1]} of plain Python: expected the same")
    for path in files:
        path.write_text(path.read_text() * (SCORED_LINES // 10_000))
    times = alternate(lambda: process(ours).cpu, lambda: process(plain).cpu, runs)
    what = f"`align-eval score`, {SCORED_LINES} lines"
    return Comparison(GROUP, what, "sets of plain Python", "s CPU", *times, reach="≤ 0.2")


def _import(runs: int) -> Comparison:
    ours, pandas = (
        _importing(modules) for modules in (", ".join(f"alignment_eval.{name}" for name in _MODULES), "pandas")
    )
    ours(), pandas()  # the disk's cache is warm for both
    times = alternate(ours, pandas, runs)
    beyond = statistics.median(a - b for a, b in zip(*times))
    what = f"importing what a sweep needs ({', '.join(_MODULES)})"
    return Comparison(
        GROUP, what, "pandas alone", "s CPU", *times, reach="≤ 0.3 s beyond pandas", note=f"{beyond:.2f} s beyond"
    )


def _importing(modules: str) -> Callable[[], float]:
    return lambda: process([sys.executable, "-c", f"import {modules}"]).cpu


def _wall(taken: Sequence[Process]) -> str:
    return f"{statistics.median(run.wall for run in taken):.1f} s by the clock"


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _lengths(rng: np.random.Generator, sentences: int) -> NDArray[np.int64]:
    """Numbers of source and target words of ``sentences`` pairs, [sentences, 2]."""
    source = rng.normal(MEAN_WORDS, DEVIATION, sentences)
    pairs = np.stack([source, source * rng.normal(1.05, 0.15, sentences)], axis=1)
    return np.clip(pairs.round(), 1, MOST_WORDS).astype(np.int64)


def _gold_line(rng: np.random.Generator, words: NDArray[np.int64]) -> str:
    """A talp line with one link per target word, near the diagonal; one of four is only possible."""
    source, target = _diagonal(rng, words)
    marks = rng.choice(["-", "-", "-", "p"], words[1])
    return " ".join(f"{i}{mark}{j}" for i, mark, j in zip(source, marks, target))


def _hypothesis_line(rng: np.random.Generator, gold: str) -> str:
    """The links of a talp line as a Pharaoh line, one of four with another source word."""
    links = [link.replace("p", "-").split("-") for link in gold.split()]
    wrong = rng.random(len(links)) < 0.25
    return " ".join(f"{int(i) + 2 * other}-{j}" for (i, j), other in zip(links, wrong))


def _diagonal(rng: np.random.Generator, words: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    target = np.arange(words[1])
    near = target * words[0] / words[1] + rng.normal(0, 1, words[1])
    return np.clip(near.round(), 0, words[0] - 1).astype(int).tolist(), target.tolist()


def _sentence(rng: np.random.Generator, id_: int, words: NDArray[np.int64]) -> SentenceMaps:
    """A sentence pair of random maps: rows that a few source tokens share most of, as those of a trained model."""
    source, target = (_side(rng, int(count)) for count in words)
    T, S = len(target.tokens), len(source.tokens)
    arrays = {
        "head_attn_w": rng.dirichlet(np.full(S, 0.1), size=(LAYERS, HEADS, T)),
        "transformed_norm": rng.gamma(4, 0.25, size=(LAYERS, HEADS, S)),
        "layer_attn_n": rng.gamma(0.5, 1, size=(LAYERS, T, S)),
    }
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    return SentenceMaps(id_, source, target, tuple(range(LAYERS)), arrays=arrays)


def _side(rng: np.random.Generator, words: int) -> SentenceSide:
    pieces = 1 + rng.poisson(0.3, words)
    indices = np.append(np.repeat(np.arange(words), pieces), -1).astype(np.int32)
    ends = indices[1:] != indices[:-1]
    tokens = [f"w{word}" if end else f"w{word}@@" for word, end in zip(indices[:-1], ends)]
    return SentenceSide((*tokens, "</s>"), indices)


def write_records(directory: Path, sentences: Sequence[SentenceMaps]) -> None:
    """Write the records of a finished run, as the plugin does."""
    info = RunInfo(
        signature={"model": "synthetic"},
        kinds=DEFAULT_KINDS,
        layers=tuple(range(LAYERS)),
        heads=HEADS,
        size=len(sentences),
        nbest=1,
        shard=0,
        shards=1,
    )
    schema = arrow_schema(info, _QUANTITIES)
    parts = ShardParts(directory, info, schema, IfExists())
    for start in range(0, len(sentences), _BATCH):
        parts.write(to_table(sentences[start : start + _BATCH], schema))
    parts.finish()
