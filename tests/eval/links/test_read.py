import os
from pathlib import Path

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.files import file_hash
from alignment_eval.links.checks import Texts
from alignment_eval.links.read import ReadOptions, read_gold, read_hypothesis
from tests.eval.links.samples import gold, written
from tests.facts import facts, says


def test_naacl_sentences_without_lines(tmp_path):
    path = written(tmp_path, "1 1 1\n4 1 1\n")
    warnings = []
    texts = Texts("s", np.full(6, 9), "t", np.full(6, 9))
    result = read_gold(path, None, texts, warnings.append)
    assert list(result) == [gold("0-0"), gold(), gold(), gold("0-0"), gold(), gold()]
    assert len(result) == 6
    assert len(warnings) == 1
    assert says(warnings[0], f"{path}: 4 of 6 sentences")


GENERATE_OUTPUT = """\
2024-01-02 10:00:00 | INFO | fairseq_cli.generate | loading model(s)
S-1\tein kleines haus
H-1\t-0.25\ta small house
A-1\t0-0 1-1 2-2
A-1\t1-0 2-1
A-0\t0-0
A-0\t
Generate test with beam=5: BLEU4 = 12.3
"""


def test_output_of_fairseq_generate_with_nbest(tmp_path):
    path = written(tmp_path, GENERATE_OUTPUT, "generate-test.txt")
    warnings = []
    result = read_hypothesis(path, warn=warnings.append)
    assert result.file.format == "fairseq"
    assert list(result.each_links()) == [{(0, 0)}, {(0, 0), (1, 1), (2, 2)}]
    assert len(warnings) == 1
    assert says(warnings[0], "A- lines link tokens … --source and --target")
    lengths = np.array([3, 3])
    read_hypothesis(path, None, Texts("s", lengths, "t", lengths), pytest.fail)


@pytest.mark.parametrize("options", [ReadOptions(base="1"), ReadOptions(base="1", swap=True)])
def test_a_file_and_a_pipe_are_read_as_often_as_asked(tmp_path, options):
    text = "1-2\n\n3-3 2p1\n"
    expected = [gold("0-1"), gold(), gold("2-2", "1-0")]
    if options.swap:
        expected = [gold("1-0"), gold(), gold("2-2", "0-1")]
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    for path in (written(tmp_path, text), Path(f"/dev/fd/{reading}")):
        file = read_gold(path, options)
        assert [list(file), list(file)] == [expected] * 2
        assert file.file.hash == file_hash(text.encode())
    os.close(reading)


def test_a_blank_last_line_is_named(tmp_path):
    texts = Texts("test.de", np.array([5, 5]), "test.en", np.array([5, 5]))
    path = written(tmp_path, "0-0\n1-1\n\n")
    with pytest.raises(InputError, match=facts(f"3 sentences … the last line of {path} is blank")):
        read_gold(path, None, texts)
    with pytest.raises(InputError, match=facts("the last line of test.en is blank")):
        Texts("test.de", np.array([5, 5]), "test.en", np.array([5, 5, 0]))


@pytest.mark.parametrize(("text", "sentences"), [("0-0\n", 1), ("0-0\n\n\n", 3), ("1 1 1\n3 1 1\n", 3)])
def test_as_many_lines_as_the_texts(tmp_path, text, sentences):
    texts = Texts("test.de", np.array([5, 5]), "test.en", np.array([5, 5]))
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=facts(f"{path}: … {sentences} sentences … test.de has 2 lines")):
        read_gold(path, None, texts)
