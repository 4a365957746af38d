from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.formats.checks import Texts
from alignment_eval.formats.detection import parse_hypothesis_file
from alignment_eval.formats.reading import ReadOptions, read_gold, read_hypothesis, read_texts
from tests.eval.formats.samples import gold, written
from tests.facts import facts, says


def fail_on_warning(message: str) -> None:
    raise AssertionError(message)


def test_naacl_sentences_without_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1 1\n4 1 1\n")
    warnings: list[str] = []
    texts = Texts("s", np.full(6, 9), "t", np.full(6, 9))
    result = read_gold(path, None, texts, warnings.append)
    assert result.links.to_sentences() == [gold("0-0"), gold(), gold(), gold("0-0"), gold(), gold()]
    assert len(warnings) == 1
    assert says(warnings[0], f"{path}: 4 of 6 sentences … sentence 2")


GENERATE_OUTPUT = """\
2024-01-02 10:00:00 | INFO | fairseq_cli.generate | loading model(s)
S-1\tein kleines haus
T-1\ta small house
H-1\t-0.25\ta small house
D-1\t-0.25\ta small house
P-1\t-0.2 -0.3 -0.1 -0.4
A-1\t0-0 1-1 2-2
H-1\t-0.75\tsmall house
A-1\t1-0 2-1
S-0\tja
H-0\t-0.1\tyes
A-0\t0-0
H-0\t-0.9\tno
A-0\t
Generate test with beam=5: BLEU4 = 12.3
"""


def test_output_of_fairseq_generate_with_nbest(tmp_path: Path) -> None:
    path = written(tmp_path, GENERATE_OUTPUT, "generate-test.txt")
    warnings: list[str] = []
    result = read_hypothesis(path, warn=warnings.append)
    assert result.file.format == "fairseq"
    assert result.links.possible.to_sentences() == [{(0, 0)}, {(0, 0), (1, 1), (2, 2)}]
    assert len(warnings) == 1
    assert says(warnings[0], "A- lines link tokens … --source and --target")
    lengths = np.array([3, 3])
    read_hypothesis(path, None, Texts("s", lengths, "t", lengths), fail_on_warning)


def test_smallest_confidence(tmp_path: Path) -> None:
    path = written(tmp_path, "0-0:0.5 1-1:0.25\n\n0-0:0.75 0-0:0.1\n")
    assert parse_hypothesis_file(path).format == "scored"
    result = read_hypothesis(path, ReadOptions(min_confidence=0.5))
    assert result.links.possible.to_sentences() == [{(0, 0)}, frozenset(), {(0, 0)}]
    plain = written(tmp_path, "0-0\n", "plain")
    with pytest.raises(InputError, match=facts("plain: … no scores … --hyp-min-confidence 0.5")):
        read_hypothesis(plain, ReadOptions(min_confidence=0.5))


def test_texts_of_unequal_length(tmp_path: Path) -> None:
    source, target = written(tmp_path, "a\nb\n", "s"), written(tmp_path, "a\nb\nc\n", "t")
    with pytest.raises(InputError, match=facts(f"{source} has 2 lines … {target} has 3")):
        read_texts(source, target)


@pytest.mark.parametrize(("text", "sentences"), [("0-0\n", 1), ("0-0\n\n\n", 3), ("1 1 1\n3 1 1\n", 3)])
def test_as_many_lines_as_the_texts(tmp_path: Path, text: str, sentences: int) -> None:
    texts = Texts("test.de", np.array([5, 5]), "test.en", np.array([5, 5]))
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=facts(f"{path}: … {sentences} sentences … test.de has 2 lines")):
        read_gold(path, None, texts)
