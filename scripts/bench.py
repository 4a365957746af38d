"""Measure what everything costs: ``python scripts/bench.py [GROUP …] [--runs N]``, in the root of the repository.

Ours and the baseline alternate; a table has medians, with the range over runs, and the ratios of neighbouring runs.
What scripts/demo.sh leaves lies in out/bench (make bench).
"""

import argparse
import inspect
import io
import itertools
import logging
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq.models.transformer import TransformerModel
from fairseq.modules import MultiheadAttention
from fairseq.trainer import Trainer
from fairseq_cli import generate
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import BertConfig, BertModel

import fairseq_norm_plugin as fnp
import fairseq_norm_plugin.tasks
from alignment_eval.command_line import CommandParser
from alignment_eval.maps.sentence import KINDS, block_kinds
from fairseq_norm_plugin.capture import recorder
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions, swap_attention
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, DECODER_SELF
from fairseq_norm_plugin.capture.recorder import layer_capture
from fairseq_norm_plugin.formulas.block import Block
from fairseq_norm_plugin.formulas.kinds import head_map, layer_map
from fairseq_norm_plugin.model.model import Model, length_batches
from fairseq_norm_plugin.text.pair import SentencePair

DATA, TEXT, CHECKPOINT = "out/bench/bin", Path("data/demo/demo"), "data/demo/checkpoint.pt"
PLUGIN = ["--user-dir", "fairseq_norm_plugin", "--task", "translation_norm"]
#: A line of a table, by column.
Row = dict[str, str]
#: What is measured, without arguments.
Job = Callable[[], object]


def row(what: str, unit: str, ours: Sequence[float], baseline: Sequence[float] = ()) -> Row:
    """Medians with the range over runs, and the same for the ratios, run by run; a baseline may be missing."""
    sides = {"ours": ours, "baseline": baseline, "ratio": [a / b for a, b in zip(ours, baseline)]}
    return {"what": what, "unit": unit, **{name: spread(values) for name, values in sides.items()}}


def spread(values: Sequence[float]) -> str:
    """Median (least–most), three significant digits."""
    return f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})" if values else ""


def timed(what: str, ours: Job, baseline: Job, runs: int) -> Row:
    """CPU seconds of this process, all threads, after a first call of each, which may fill caches."""
    for job in (ours, baseline):
        job()
    return row(what, "s CPU", *alternate(partial(cpu_seconds, ours), partial(cpu_seconds, baseline), runs))


def alternate(ours: Callable[[], float], baseline: Callable[[], float], runs: int) -> tuple[list[float], list[float]]:
    """Measure both ``runs`` times, alternating, so that a drift of the machine's speed affects both equally."""
    values: tuple[list[float], list[float]] = ([], [])
    sides = [(values[0], ours), (values[1], baseline)]
    for run in range(runs):
        for side, measure in sides if run % 2 else reversed(sides):
            side.append(measure())
    return values


def cpu_seconds(job: Job) -> float:
    """CPU seconds of this process, all threads, that one call takes."""
    start = time.process_time()
    job()
    return time.process_time() - start


_LAUNCHER = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
sys.exit(status)
"""


def process(*command: object) -> tuple[float, float]:
    """Run ``command`` to its end; its CPU seconds, and its largest resident size in MiB."""
    # A small process in between, because the largest resident size counts from the fork and this process may be large.
    line = [sys.executable, "-c", _LAUNCHER, *map(str, command)]
    child = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if child.returncode:
        raise RuntimeError(child.stderr[-2000:])
    seconds, peak = map(float, child.stdout.split())
    return seconds, peak


def configured(*words: str) -> Any:
    """The configuration of ``fairseq-train`` with these options, for a Transformer on the demo's data."""
    words = (DATA, "--arch", "transformer", "--criterion", "label_smoothed_cross_entropy", *words)
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), list(words)))


BATCH, LENGTH, DIM = 32, 50, 512
#: Of a step: B · beam, and steps a run.
HYPOTHESES, STEPS = 160, 100


def blocks(args: argparse.Namespace) -> Iterator[Row]:
    """Each kind of map of every block of a Transformer, against a plain teacher-forced forward pass of that model.

    One encoder and one decoder layer, random, 8 heads, d 512, without output layer; 32 pairs of 50 tokens, one thread.
    The extra cost is the ratio less one, in forward passes.  Before it 100 steps of beam search of 160 hypotheses: the
    attention call with the norms of the printed layer against fairseq's own, keys, values and the factor cached from
    the step before.
    """
    torch.manual_seed(0)
    cfg = configured("--encoder-layers", "1", "--decoder-layers", "1")
    model = tasks.setup_task(cfg.task).build_model(cfg.model).eval()
    swap_attention(model)
    source, target = (torch.randint(4, 1000, (BATCH, LENGTH)) for _ in range(2))
    lengths = torch.full((BATCH,), LENGTH)
    plain = partial(model, src_tokens=source, src_lengths=lengths, prev_output_tokens=target, features_only=True)
    with torch.inference_mode():
        yield attention_call(model, args.runs)
    cases: dict[str, Callable[[Block], object]] = {"all attention kinds, heads too": attention_maps}
    cases.update((kind, partial(layer_map, kind=kind)) for kind in block_kinds())
    with torch.no_grad():
        for name, compute in cases.items():
            types = [block for block in BLOCK_TYPES if not (name.startswith("ff") and block == DECODER_SELF)]
            mapped = partial(listening, model, plain, [MapCapture(block, [0], compute) for block in types])
            yield timed(f"forward pass with {name}", mapped, plain, 1 if name.startswith("ff") else args.runs)


def attention_call(model: TransformerModel, runs: int) -> Row:
    """CPU seconds of many steps of the encoder-decoder attention of a layer."""
    attention = norm_attentions(model, DECODER_CROSS)[-1]
    query, source = torch.randn(1, HYPOTHESES, DIM), torch.randn(LENGTH, HYPOTHESES, DIM)
    capture = layer_capture("attn_n", attention.site.number, None)

    def steps(called: MultiheadAttention, captures: Sequence[MapCapture[Any]], caches: dict[str, Any]) -> None:
        for _ in range(STEPS):
            called(query, source, source, incremental_state=caches, static_kv=True)
            for each in captures:
                each.take()

    ours = partial(steps, attention, [capture], {})
    stock = partial(steps, deepcopy(attention).__prepare_scriptable__(), [], {})
    with capturing([attention], capture):
        return timed("attention call with attn_n of the layer", ours, stock, runs)


def attention_maps(block: Block) -> None:
    """Compute all attention kinds of layer and heads, and throw them away."""
    for kind in (kind for kind in block_kinds() if kind.startswith("attn")):
        layer_map(block, kind)
        if KINDS[kind].heads:
            head_map(block, kind)


def listening(model: TransformerModel, plain: Job, captures: list[MapCapture[object]]) -> None:
    """A forward pass that ``captures`` listen to."""
    with capturing(norm_attentions(model), *captures):
        plain()
    for capture in captures:
        capture.take()


_STOCK = [DATA, "--path", CHECKPOINT, "--required-batch-size-multiple", "1", "--cpu", "--num-workers", "0"]
_SEARCH, _FORCED = [*_STOCK, "--beam", "5", "--print-alignment"], [*_STOCK, "--score-reference"]


def runs(args: argparse.Namespace) -> Iterator[Row]:
    """Whole runs of ``fairseq-generate`` with maps, against stock ``fairseq-generate``; and the size of records.

    Both sides do the same work on the same batches (``--required-batch-size-multiple 1``: stock fairseq would drop the
    rest of the last one).  Times are those of the command's main function in this process, where imports are done;
    memory, the largest resident size, is that of a process of its own.
    """
    # stock fairseq's checkpoints hold objects that torch 2.6 and later loads only when told to
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq's, of Hydra and torch
        searched, forced = (["--norm-records-overwrite", "--norm-records", f"{directory}/{n}"] for n in range(2))
        for what, stock, added in (
            ("--beam 5 --print-alignment, norms of a layer", _SEARCH, ["--norm-layer", "1"]),
            ("the same with --norm-records", _SEARCH, ["--norm-layer", "1", *searched]),
            ("--score-reference --norm-records", _FORCED, forced),
        ):
            ours = [*stock, *PLUGIN, *added]
            yield timed(what, partial(generated, ours), partial(generated, stock), args.runs)
            yield row(what, "MiB", *alternate(partial(peak, ours), partial(peak, stock), args.runs))
        size = sum(part.stat().st_size for part in Path(forced[-1]).glob("part-*"))
        sentences = len(Path(f"{TEXT}.de").read_bytes().splitlines())
        yield row("records of a reference", "kB a sentence", [size / sentences / 1000])


def generated(words: Sequence[str]) -> None:
    """Run fairseq-generate in this process."""
    argv = patch.object(sys, "argv", ["fairseq-generate", *words])
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), argv:
        generate.cli_main()


def peak(words: Sequence[str]) -> float:
    """MiB of fairseq-generate in a process of its own."""
    return process(sys.executable, "-m", "fairseq_cli.generate", *words)[1]


MONITORED = ("translation_norm", "--aer-gold", f"test={TEXT}.talp", "--aer-gold-base", "1", "--valid-subset", "test")


def monitor(args: argparse.Namespace) -> Iterator[Row]:
    """The cost of monitoring: validation of a gold subset with and without it, and a training step with either task.

    The text is the demo's 60 sentence pairs; the maps are those of all layers, both kinds and settings.
    """
    for what, extra in {"AER": [], "AER and mixing ratios": ["--aer-mixing", "attnres_n,attnresln_n"]}.items():
        trainer = trainer_of(*MONITORED, *extra)
        iterator = trainer.task.get_batch_iterator(trainer.task.dataset("test"), max_tokens=4000)
        batches, own = list(iterator.next_epoch_itr(shuffle=False)), trainer.task._monitor
        ours, stock = (partial(validate, trainer, batches, used) for used in (own, None))
        yield timed(f"validation with {what}", ours, stock, args.runs)
    trainers = trainer_of(*MONITORED), trainer_of("translation")
    dataset = trainers[0].task.dataset("test")
    batch = dataset.collater([dataset[number] for number in range(50)])
    ours, stock = (partial(trainer.train_step, [batch]) for trainer in trainers)
    yield timed("training step of 50 sentences", ours, stock, args.runs)


def validate(trainer: Any, batches: list[Any], used: Any) -> None:
    """Validate all batches, with the monitor ``used`` or None."""
    trainer.task._monitor = used
    with metrics.aggregate(new_root=True):
        for batch in batches:
            trainer.valid_step(batch)


def trainer_of(task_name: str, *extra: str) -> Any:
    """A trainer of the bundled model, with a task that has the demo's sentences."""
    shared = ("--cpu", "--max-tokens", "4000", "--num-workers", "0", "--optimizer", "adam", "--lr", "1e-9")
    cfg = configured("--task", task_name, *shared, *extra)
    task = tasks.setup_task(cfg.task)
    (model,), _ = checkpoint_utils.load_model_ensemble([CHECKPOINT], task=task)
    criterion = task.build_criterion(cfg.criterion)  # before the data, which get their gold by then
    task.load_dataset("test")
    return Trainer(cfg, task, model, criterion)


PAIRS = 2000
NORM_ALIGN = [sys.executable, "-m", "fairseq_norm_plugin.align.cli", "--path", "demo", "--tokenizer", "none", "--cpu"]


def raw_text(args: argparse.Namespace) -> Iterator[Row]:
    """Word alignments of raw text: ``norm-align`` with both bundled models by ``--dtype``, against eflomal.

    Each run is a process of its own, on one thread, and its imports are counted.  The text is the first 2,000 pairs of
    ``--text``; without it the demo's, again and again, where words are looked up less often than in other text.
    eflomal, with ``--eflomal-python``, aligns in both directions without symmetrisation, all pairs of ``--text``,
    because it takes longer a pair of a short text.
    """
    whole = [Path(f"{args.text or TEXT}.{language}") for language in ("de", "en")]
    eflomal: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        text = [first_pairs(file, Path(directory)) for file in whole]
        if args.eflomal_python:
            pairs = len(whole[0].read_bytes().splitlines())
            files = ["-s", whole[0], "-t", whole[1], "-f", f"{directory}/forward", "-r", f"{directory}/reverse"]
            command = [args.eflomal_python.with_name("eflomal-align"), "--overwrite", *files]
            eflomal = [1000 * process(*command)[0] / pairs for _ in range(args.runs)]
        for dtype in ("float32", "bfloat16"):
            words = [*NORM_ALIGN, "--source-text", text[0], "--target-text", text[1], "-o", f"{directory}/links"]
            measured = [process(*words, "--overwrite", "--dtype", dtype) for _ in range(args.runs)]
            milliseconds = [1000 * seconds / PAIRS for seconds, _ in measured]
            yield row(f"--dtype {dtype}", "ms CPU a pair", milliseconds, eflomal)
            yield row(f"--dtype {dtype}", "MiB", [size for _, size in measured])


def first_pairs(file: Path, folder: Path) -> Path:
    """A file of the first pairs, of all pairs again and again if there are fewer."""
    lines = file.read_bytes().splitlines(keepends=True)
    made = folder / file.name
    made.write_bytes(b"".join(itertools.islice(itertools.cycle(lines), PAIRS)))
    return made


def raw_lines(args: argparse.Namespace) -> list[list[str]]:
    """The lines of both sides of the text of raw_text."""
    with tempfile.TemporaryDirectory() as directory:
        files = (first_pairs(Path(f"{args.text or TEXT}.{language}"), Path(directory)) for language in ("de", "en"))
        return [file.read_text("utf-8").splitlines() for file in files]


#: The products of matrices, as torch names them.
PRODUCTS = (torch.ops.aten.addmm.default, torch.ops.aten.mm.default, torch.ops.aten.bmm.default)


class Products(TorchDispatchMode):
    """Counts the products of matrices in the block, by operation and by the shapes, strides and types of the inputs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: Counter[tuple[Any, ...]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in PRODUCTS:
            self.counts[(func, *((each.shape, each.stride(), each.dtype) for each in args))] += 1
        return func(*args, **(kwargs or {}))

    def seconds(self) -> float:
        """CPU seconds of these products alone, on random numbers."""
        total = 0.0
        for (func, *inputs), count in self.counts.items():
            made = [torch.empty_strided(size, stride, dtype=dtype).normal_() for size, stride, dtype in inputs]
            total += count * min(cpu_seconds(partial(func, *made)) for _ in range(3))
        return total


def passes(args: argparse.Namespace) -> Iterator[Row]:
    """The passes of both bundled models over the text of raw_text, against the products of matrices in them alone.

    Then against an encoder of mBERT's shape, with random numbers (12 layers, d 768), as simalign runs it: a pass over
    each side, and the similarities of layer 8.  It reads every tenth pair, as many tokens as our model, in batches of
    the same size.  All in float32, on one thread, without imports, without links.
    """
    model = fnp.load("demo", tokenizer=None if args.text else "none")
    calls: list[tuple[Any, ...]] = []
    maps = Model.maps

    def run() -> None:
        for call in calls:
            maps(*call)

    def recorded(*call: Any) -> Any:
        calls.append(call)
        return maps(*call)

    with patch.object(Model, "maps", recorded), redirect_stderr(io.StringIO()):
        model.align(*raw_lines(args))
    with Products() as products:
        run()
    ours, alone = alternate(partial(cpu_seconds, run), products.seconds, args.runs)
    yield row("passes against their products alone", "s CPU", ours, alone)
    pairs = [pair for own, batch, *_ in calls if own is calls[0][0] for pair in batch.values()][::10]
    encoder = BertModel(BertConfig(vocab_size=120_000)).eval()  # type: ignore[no-untyped-call]
    mbert = [cpu_seconds(partial(similarities, encoder, pairs)) for _ in range(args.runs)]
    each = [[1000 * seconds / count for seconds in of] for of, count in ((ours, PAIRS), (mbert, len(pairs)))]
    yield row("passes against an encoder of mBERT's shape", "ms CPU a pair", *each)


@torch.inference_mode()
def similarities(encoder: BertModel, pairs: Sequence[SentencePair]) -> None:
    """The similarities of the tokens of pairs in layer 8 of an encoder, which reads random tokens."""
    for batch in length_batches(dict(enumerate(pairs)), 2000):
        hidden = []
        for side in (0, 1):
            lengths = torch.tensor([len(pair[side].ids) for pair in batch.values()])
            mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
            found = encoder(torch.randint(1000, mask.shape), attention_mask=mask, output_hidden_states=True)
            hidden.append(found.hidden_states[8])
        torch.bmm(hidden[0], hidden[1].transpose(1, 2))


def directions(args: argparse.Namespace) -> Iterator[Row]:
    """Both bundled models at once, by Python's ``align``, on two threads of this process against one thread.

    The text is that of raw_text.  Both directions compute while a pass of each is between its first and its last layer.
    """
    model = fnp.load("demo", tokenizer=None if args.text else "none")
    text = raw_lines(args)
    shares = []

    def seconds(threads: int) -> float:
        torch.set_num_threads(threads)
        with redirect_stderr(io.StringIO()), times_of_passes() as found:
            start = time.perf_counter()
            model.align(*text)
            end = time.perf_counter()
        torch.set_num_threads(1)
        if threads > 1:
            shares.append(together(found) / (end - start))
        return end - start

    two, one = alternate(partial(seconds, 2), partial(seconds, 1), args.runs)
    yield row("two threads against one", "s wall", two, one)
    yield row("share of the time in which both compute", "", shares)


@contextmanager
def times_of_passes() -> Iterator[list[tuple[int, float, float]]]:
    """The passes of models in the block: thread, beginning and end."""
    found = []

    @contextmanager
    def timed_capturing(*args: Any, **options: Any) -> Iterator[None]:
        start = time.perf_counter()
        with capturing(*args, **options):
            yield
        found.append((threading.get_ident(), start, time.perf_counter()))

    with patch.object(recorder, "capturing", timed_capturing):
        yield found


def together(found: Sequence[tuple[int, float, float]]) -> float:
    """The seconds in which passes of two threads overlap."""
    pairs = itertools.combinations(found, 2)
    return sum(max(0.0, min(a[2], b[2]) - max(a[1], b[1])) for a, b in pairs if a[0] != b[0])


#: Groups in the order in which they run.
GROUPS = {group.__name__: group for group in (blocks, runs, monitor, raw_text, passes, directions)}


def main() -> None:
    parser = CommandParser(prog="bench.py", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="alternating runs of each side (default: 5)")
    parser.add_argument("--text", type=Path, metavar="PREFIX", help="raw text: PREFIX.de, PREFIX.en (default: demo)")
    parser.add_argument("--eflomal-python", type=Path, metavar="FILE", help="raw_text: an interpreter with eflomal")
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{platform.platform()}, Python {platform.python_version()}, torch {torch.__version__}")
    for name in args.groups or GROUPS:
        group = GROUPS[name]
        print("", inspect.getdoc(group), pd.DataFrame(group(args)).to_string(index=False), sep="\n", flush=True)


if __name__ == "__main__":
    main()
