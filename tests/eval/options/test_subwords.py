from __future__ import annotations

import argparse

import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.options.alignments import add_text_arguments
from alignment_eval.options.subwords import add_subword_arguments, subwords_of
from tests.facts import facts


@pytest.fixture
def parse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s").write_text("a@@ b c\n\n")
    (tmp_path / "t").write_text("x\ny@@ z\n")
    (tmp_path / "short").write_text("x\n")
    (tmp_path / "mixed").write_text("▁x ▁y\nz\n")

    def read(*arguments):
        parser = argparse.ArgumentParser()
        add_text_arguments(parser)
        add_subword_arguments(parser)
        return subwords_of(parser.parse_args(arguments))

    return read


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (["s"], UsageError, "--source-subwords … --target-subwords … both or neither"),
        (["s", "--target-subwords", "t", "--target", "t"], UsageError, "--source-subwords … --target"),
        (["s", "--target-subwords", "short"], InputError, "s has 2 lines … short has 1"),
        (["s", "--target-subwords", "mixed"], InputError, "s, mixed … @@ … ▁ … --subword-mark"),
    ],
)
def test_refused(parse, arguments, kind, message):
    with pytest.raises(kind, match=facts(message)):
        parse("--source-subwords", *arguments)
