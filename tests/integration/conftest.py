"""An invented parallel corpus, binarised by fairseq-preprocess, and checkpoints that fairseq trains on it."""

import contextlib
import copy
import hashlib
import io
import logging
import os
import random
import subprocess
import sys
import warnings
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.registry import REGISTRIES
from fairseq_cli import generate, interactive, preprocess, train
from omegaconf import DictConfig

import fairseq_norm_plugin.tasks  # noqa: F401  # lets stock fairseq, too, load checkpoints in this process
from alignment_eval import commands as align_eval
from alignment_eval.commands.sweep import configurations, sweep
from alignment_eval.errors import print_warnings
from alignment_eval.links.files import ReadOptions, read_gold
from alignment_eval.records import Records
from fairseq_norm_plugin.align import cli as norm_align
from fairseq_norm_plugin.analyze import cli as norm_analyze
from tests.demo import DEMO, written

ROOT = Path(__file__).resolve().parents[2]
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
# how fairseq calls Hydra and torch
FAIRSEQ_WARNINGS = (
    r"hydra\.experimental\.\w+\(\) is no longer experimental",
    r"\s*The version_base parameter is not specified",
    r"In 'config': Usage of deprecated keyword in package header",
    r"\s*'config' is validated against ConfigStore schema",
    r"\s*The strict flag in the compose API",
    r"`torch\.cuda\.amp\.autocast\(args\.\.\.\)`",
)
SYLLABLES = ("ba", "ki", "lo", "mu", "ne", "ra", "su", "ti")


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Tiny products in several threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run_command(*words, cwd=ROOT, check=True, **env):
    """A command as a user gives it, in this environment."""
    env = {**os.environ, "PATH": PATH, "OMP_NUM_THREADS": "1", **env}
    result = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True, env=env, check=False)
    if check:
        assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result


@pytest.fixture(scope="session")
def command():
    return run_command


def invented_pairs(count, seed, longest=9):
    """Pairs of an invented language: words of one to three ``@@`` pieces; the target is the source backwards."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(count):
        words = [[rng.choice(SYLLABLES) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, longest))]
        target = [[syllable[::-1] for syllable in reversed(word)] for word in reversed(words)]
        pairs.append(tuple(" ".join("@@ ".join(word) for word in side) for side in (words, target)))
    return pairs


@pytest.fixture(scope="session")
def texts():
    """train, valid, test of 60, 11, 12 pairs, test1-test4 of 1, 5, 7, 9; test5 of 6, of which pair 3 has 84 tokens."""
    long_pair = (" ".join(["ba@@ ki lo"] * 28), " ".join(["ol ik@@ ab"] * 28))
    return [
        *(invented_pairs(count, seed) for seed, count in enumerate((60, 11, 12, 1, 5, 7, 9))),
        [*invented_pairs(3, 8), long_pair, *invented_pairs(2, 10)],
    ]


PROGRAMS = {
    "align-eval": align_eval.main,
    "fairseq-generate": generate.cli_main,
    "fairseq-preprocess": preprocess.cli_main,
    "fairseq-train": train.cli_main,
    "norm-align": norm_align.main,
    "norm-analyze": norm_analyze.main,
}


def run_program(name, *words, check=True, merged=False):
    """One of :data:`PROGRAMS` in this process, which takes seconds less than a new one; logging stays as it was.

    ``merged``: standard error goes to standard output.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    err = out if merged else err
    root = logging.getLogger()
    loggers = [root, *map(logging.getLogger, ("fairseq", "fontTools", "hydra"))]
    levels, handlers, arguments = [logger.level for logger in loggers], root.handlers[:], sys.argv
    root.handlers.clear()
    sys.argv = [name, *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), without_fairseqs_warnings():
            status = PROGRAMS[name]() or 0
    except SystemExit as end:
        status = end.code
    finally:
        sys.argv, root.handlers[:] = arguments, handlers
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)
    printed, said = (stream.buffer.getvalue().decode() for stream in (out, err))
    assert status == 0 or not check, printed[-3000:] + said[-3000:]
    return SimpleNamespace(returncode=status, stdout=printed, stderr=said)


@pytest.fixture(scope="session")
def program():
    """Run a program in this process: its ``returncode``, ``stdout`` and ``stderr``."""
    return run_program


def binarise(directory, texts):
    """Write ``texts`` as text0, text1, ... and binarise them to ``bin``."""
    prefixes = [str(directory / f"text{i}") for i in range(len(texts))]
    for prefix, pairs in zip(prefixes, texts):
        for lang, side in zip(("xx", "yy"), zip(*pairs)):
            Path(f"{prefix}.{lang}").write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    run_program(
        *("fairseq-preprocess", "-s", "xx", "-t", "yy", "--trainpref", prefixes[0], "--validpref", prefixes[1]),
        *("--testpref", ",".join(prefixes[2:]), "--destdir", directory / "bin", "--joined-dictionary"),
    )


def demo_binarised(directory, source, target):
    """Lines in pieces as fairseq-preprocess makes them for the models: a directory with the subset ``test``."""
    for language, side in (("de", source), ("en", target)):
        written(directory / f"test.{language}", side)
    words = ["-s", "de", "-t", "en", "--testpref", directory / "test", "--destdir", directory / "bin"]
    run_program("fairseq-preprocess", *words, "--srcdict", DEMO / "dict.de.txt", "--tgtdict", DEMO / "dict.en.txt")
    return directory / "bin"


@pytest.fixture(scope="session")
def data(texts, made_once):
    """``texts``, binarised."""
    return made_once("text", lambda directory: binarise(directory, texts)) / "bin"


def training_words(data, directory, *extra, arch="transformer", task="translation", seed=1, updates=8):
    words = [data, "--task", task, "--arch", arch, "--cpu", "--seed", seed, "--save-dir", directory]
    if "transformer" in arch:
        for side in ("encoder", "decoder")[arch == "transformer_lm" :]:
            words += [f"--{side}-layers", 2, f"--{side}-embed-dim", 32, f"--{side}-ffn-embed-dim", 48]
            words += [f"--{side}-attention-heads", 4]
    words += ["--optimizer", "adam", "--lr", "0.005", "--max-tokens", 400, "--max-update", updates, "--num-workers", 0]
    words += ["--log-format", "simple", "--no-epoch-checkpoints", "--save-interval", 1000]
    words += [] if "--valid-subset" in extra else ["--disable-validation"]
    return [str(w) for w in [*words, *extra]]


@contextlib.contextmanager
def without_fairseqs_warnings():
    with warnings.catch_warnings():
        for message in FAIRSEQ_WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        print_warnings("it")  # as fairseq's commands do with the plugin
        yield


COMPOSED = {}


def config_of(args):
    """What fairseq's convert_namespace_to_omegaconf gives; it takes half the time of a small run, so once a kind."""
    kind = tuple(getattr(args, name, None) for name in ("task", "arch", *REGISTRIES))
    if kind not in COMPOSED:
        COMPOSED[kind] = convert_namespace_to_omegaconf(args)
    cfg, given = copy.deepcopy(COMPOSED[kind]), dict(vars(args))
    for group in cfg.values():
        if isinstance(group, DictConfig):
            for name in group:
                value = getattr(args, name, group[name])
                group[name] = float(value) if isinstance(group[name], float) and value is not None else value
        elif isinstance(group, Namespace):  # of what has no dataclass
            vars(group).update(given)
    return cfg


def training_config(*words, **fields):
    """The command line of fairseq-train, parsed: (Namespace, config)."""
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=training_words(*words, **fields))
    with without_fairseqs_warnings():
        return args, config_of(args)


@pytest.fixture(scope="session")
def train_config(data, tmp_path_factory):
    def make(*extra, **fields):
        return training_config(data, tmp_path_factory.mktemp("none"), *extra, **fields)

    return make


@pytest.fixture(scope="session")
def trained(request, made_once):
    """Train a tiny model in this process, on ``data`` unless told other, once a name, and give its last checkpoint."""

    def make(name, *extra, data=None, **fields):
        data = data or request.getfixturevalue("data")
        key = hashlib.sha256(repr((name, extra, data, fields)).encode()).hexdigest()[:16]

        def run(directory):
            with without_fairseqs_warnings():
                # the optimizer's state would be two thirds of a file that many commands read
                train.main(training_config(data, directory, "--no-save-optimizer-state", *extra, **fields)[1])

        return made_once(f"{''.join(filter(str.isalnum, name))}-{key}", run) / "checkpoint_last.pt"

    return make


@pytest.fixture(scope="session")
def checkpoint(trained):
    """A Transformer trained by the stock task, long enough to translate to various lengths."""
    return trained("stock", updates=100)


class Output:
    """The standard output of a fairseq-generate run."""

    def __init__(self, text):
        self.text = text

    def lines(self, *kinds):
        """(id, kind, content) of the lines of these kinds (hypotheses by default), by id; of an id, in their order."""
        found = []
        for line in self.text.splitlines():
            head, _, content = line.partition("\t")
            kind, _, id_ = head.partition("-")
            if kind in (kinds or ("H", "D", "P")) and id_.isdecimal():
                found.append((int(id_), kind, content))
        return sorted(found, key=lambda item: item[0])


def in_process(main, parser, words):
    # a data loader's worker process takes 5 s to be gone
    args = options.parse_args_and_arch(parser, input_args=[str(w) for w in (*words, "--num-workers", 0)])
    out = io.StringIO()
    with contextlib.redirect_stdout(out), without_fairseqs_warnings():
        main(config_of(args))
    return Output(out.getvalue())


def run_generate(*words):
    """fairseq-generate in this process: no start-up to wait for."""
    parser = options.get_generation_parser()
    parser.add_argument("--arch", "-a", default="wav2vec2")
    return in_process(generate.main, parser, [*words, "--cpu"])


@pytest.fixture(scope="session", name="run_generate")
def _run_generate():
    return run_generate


def layer_aers(records, gold):
    """The AER of each layer map by ``align-eval sweep``, under the names of monitoring: rows of its table."""
    options = configurations(["attn_w", "attn_n"], ["awo", "awi"], ["kobayashi2020"], ["allow"])
    table = sweep(Records(records).best(), list(read_gold(gold, ReadOptions(base="1"))), options)[0]
    layers = table[(table["level"] == "layer") & (table["null"] == "allow")]
    return {f"aer_l{row.layer}_{row.kind[-1]}_{row.setting}": row for row in layers.itertuples()}


@pytest.fixture(scope="session")
def stock(data, checkpoint):
    """Run fairseq's own translation task, with a batching that loses no sentence."""

    def run(*extra, path=checkpoint, data=data):
        return run_generate(data, "--path", path, "--task", "translation", "--required-batch-size-multiple", 1, *extra)

    return run


@pytest.fixture(scope="session")
def norm(data, checkpoint):
    """Run the plugin's task, with the batching of ``stock``."""

    def run(*extra, path=checkpoint, data=data):
        words = ["--user-dir", ROOT / "fairseq_norm_plugin", "--task", "translation_norm"]
        return run_generate(data, "--path", path, *words, "--required-batch-size-multiple", 1, *extra)

    return run


@pytest.fixture
def norm_interactive(data, checkpoint, tmp_path):
    """Run fairseq-interactive under the plugin on some source lines."""

    def run(lines, *extra):
        (tmp_path / "input").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        words = [data, "--path", checkpoint, "--user-dir", ROOT / "fairseq_norm_plugin", "--task", "translation_norm"]
        words += ["--cpu", "--input", tmp_path / "input", *extra]
        parser = options.get_interactive_generation_parser()
        return in_process(interactive.main, parser, words)

    return run
