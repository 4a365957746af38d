from __future__ import annotations

import sys

import pytest

from alignment_eval.errors import UsageError
from fairseq_norm_plugin.hooks import console


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("/usr/bin/fairseq-generate", True),
        ("/site-packages/fairseq_cli/train.py", True),
        ("train.py", False),
        ("/usr/bin/norm-align", False),
        ("-c", False),
        ("", False),
    ],
)
def test_a_program_that_imports_the_plugin_keeps_its_tracebacks(program, expected, monkeypatch):
    former = sys.excepthook
    monkeypatch.setattr(sys, "excepthook", former)
    console.set_up(program)
    assert (sys.excepthook is not former) == expected


def test_a_refusal_is_a_sentence_and_another_error_a_traceback(monkeypatch, capsys):
    others = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: others.append(error))
    console.set_up("/usr/bin/fairseq-generate")
    refusal, defect = UsageError("--norm-layer 9: not there"), ValueError("a defect")
    sys.excepthook(UsageError, refusal, None)
    assert capsys.readouterr().err == "fairseq-generate: --norm-layer 9: not there\n"
    sys.excepthook(ValueError, defect, None)
    assert others == [(ValueError, defect, None)]
