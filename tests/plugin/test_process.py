"""What commands do before they import torch and fairseq, and how many threads a pass takes."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from alignment_eval.errors import UsageError
from fairseq_norm_plugin.environment import enough_threads, executors, set_up_command

ROOT = Path(__file__).resolve().parents[2]
LINES = {
    "align.cli": [
        ["--help"],
        ["--bpe", "none"],
        ["--path", "x", "-o", "y", "--text", "z", "--rule", "two-way=2"],
        ["calibrate", "--help"],
    ],
    "analyze.cli": [["--help"], ["data"]],
    "convert": [["--help"], ["bird"]],
}


def test_command_lines_are_parsed_before_torch_is_imported():
    """Help and usage errors took 6 seconds."""
    code = ["import contextlib, sys", "from importlib import import_module"]
    for module, lines in LINES.items():
        for words in lines:
            call = f"import_module('fairseq_norm_plugin.{module}').main({words})"
            code.append(f"with contextlib.suppress(SystemExit): {call}")
    code.append("assert not set(sys.modules) & {'torch', 'fairseq', 'pandas', 'matplotlib'}")
    code.append("import os; assert os.environ['OMP_WAIT_POLICY'] == 'passive'")  # which torch reads once it comes
    program = "\n".join(code)
    unset = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=unset)
    assert done.returncode == 0, done.stderr
    for shown in ("--source-text", "--reverse-path", "--mixing-kinds", "translation models"):
        assert shown in done.stdout
    for named in ("--path", "two-way", "--output", "bird"):
        assert named in done.stderr


def test_a_command_imports_fairseq_without_what_it_does_not_use():
    """And a program that imports these libraries afterwards gets them whole, and keeps its log as it was.

    fairseq's modules set the root logger up when they are imported first.
    """
    program = (
        "import logging, sys; from fairseq_norm_plugin.environment import importing\n"
        "with importing(): from fairseq_norm_plugin import load\n"
        "assert not {name for name in sys.modules if name.startswith(('sklearn', 'scipy'))}\n"
        "print(logging.root.level, logging.root.handlers)\n"
        "import scipy.stats; print(scipy.stats.norm.cdf(0))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("30 []\n0.5\n", "")


@pytest.mark.parametrize("registers", [False, True])
def test_an_import_registers_nothing(registers):
    """Not even after fairseq; its ``--user-dir`` does, and so does one call."""
    program = (
        "from argparse import Namespace; from pathlib import Path; import fairseq.utils, fairseq.tasks, sys\n"
        "before, tasks = sys.excepthook, set(fairseq.tasks.TASK_REGISTRY)\n"
        f"if {registers}: fairseq.utils.import_user_module(Namespace(user_dir='fairseq_norm_plugin'))\n"
        "import fairseq_norm_plugin\n"
        f"assert (set(fairseq.tasks.TASK_REGISTRY) > tasks) == {registers}\n"
        "fairseq_norm_plugin.register()\n"
        "assert 'translation_norm' in fairseq.tasks.TASK_REGISTRY; assert sys.excepthook is before"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("/usr/bin/fairseq-generate", "fairseq-generate: --norm-layer 9: not there\n"),
        ("/site-packages/fairseq_cli/train.py", "train: --norm-layer 9: not there\n"),
        *((program, "") for program in ("train.py", "/usr/bin/norm-align", "-c", "")),
    ],
)
def test_fairseqs_commands_say_a_refusal_in_a_sentence(program, said, monkeypatch, capsys):
    """Other errors, and all errors of other programs that import the plugin, keep their tracebacks."""
    tracebacks = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: tracebacks.append(error))
    set_up_command(program)
    refusal, defect = UsageError("--norm-layer 9: not there"), ValueError("a defect")
    for error in (refusal, defect):
        sys.excepthook(type(error), error, None)
    assert capsys.readouterr().err == said
    assert [error for _, error, _ in tracebacks] == ([defect] if said else [refusal, defect])


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("tokens", "policy", "threads"),
    [(1, "passive", 1), (999, "passive", 1), (1000, "passive", 2), (10**6, "passive", 3), (19_999, "active", 1)],
)
def test_threads_that_a_pass_has_work_for(three_threads, monkeypatch, tokens, policy, threads):
    """Threads that spin while they wait need more of it, and embeddings are none."""
    monkeypatch.setenv("OMP_WAIT_POLICY", policy)
    models = [torch.nn.Linear(1000, 500, bias=False), torch.nn.Linear(1000, 500, bias=False)]
    with enough_threads([*models, torch.nn.Embedding(100_000, 10)], tokens):
        assert torch.get_num_threads() == threads
    with pytest.raises(ValueError, match="no"), enough_threads(models, tokens):
        raise ValueError("no")
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize(("threads", "share", "pools", "of_each"), [(5, True, 2, 2), (1, True, 1, 1), (5, False, 1, 5)])
def test_models_share_the_threads(three_threads, threads, share, pools, of_each):
    meeting = threading.Barrier(pools, timeout=20)

    def job():
        meeting.wait()
        return threading.get_ident(), torch.get_num_threads()

    torch.set_num_threads(threads)
    with executors(2, share) as both:
        results = [future.result() for future in [executor.submit(job) for executor in both]]
    assert len({thread for thread, _ in results} - {threading.get_ident()}) == pools
    assert [number for _, number in results] == [of_each] * 2
    assert torch.get_num_threads() == threads


def test_norm_analyze_registers_the_task_that_it_reads_data_by(tmp_path):
    """A process of its own: tests that run in one process have registered it."""
    program = "import sys; from fairseq_norm_plugin.analyze.cli import main; sys.exit(main())"
    words = ["data", "--path", "missing.pt", "-o", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "missing.pt: no such file" in done.stderr
