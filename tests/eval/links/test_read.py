"""A file is read as it was meant: base, direction, texts; else a message says how to read it."""

import os
from pathlib import Path

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.links.files import ReadOptions, Texts, read_gold, read_hypothesis
from alignment_eval.links.formats import transpose
from alignment_eval.reading import content_hash
from tests.eval.links.samples import gold, written
from tests.facts import facts, says


def lengths(source, target):
    return Texts("test.de", np.array(source), "test.en", np.array(target))


class Reader:
    """Reads sentences of links written with a base, and keeps the warnings."""

    def __init__(self, folder):
        self.folder, self.warnings = folder, []

    def __call__(self, sentences, first=0, read=read_gold, texts=None, **options):
        lines = (" ".join(f"{i + first}-{j + first}" for i, j in links) for links in sentences)
        path = written(self.folder, "".join(f"{line}\n" for line in lines), "x")
        return read(path, ReadOptions(**options, warn=self.warnings.append), texts)


@pytest.fixture
def reader(tmp_path):
    return Reader(tmp_path)


def diagonals(count):
    """Sentences whose word k is linked to word k."""
    return [[(k, k) for k in range(4)]] * count


@pytest.mark.parametrize("base", [0, 1])
def test_stated_base(reader, base):
    result = reader(diagonals(30), base, base=str(base))
    assert (result.base, list(result.each_links())) == (base, [frozenset(links) for links in diagonals(30)])
    assert reader.warnings == []


@pytest.mark.parametrize(
    ("sentences", "base", "read", "stated", "message"),
    [
        ([[(2, 2)], [(1, 0)]], 0, read_gold, None, "0-based … index 0 … x:2 … give base 0"),
        (diagonals(20), 1, read_gold, None, "1-based … 20 sentences use index 1 … give base 1"),
        (diagonals(4), 1, read_hypothesis, None, "0-based … none of its 4 sentences … give base 1"),
        # final marks alone: index 0 is never used, but index 1 is not either
        ([[(7, 8)]] * 20, 0, read_hypothesis, "0", "0-based … none of its 20 sentences … give base 1"),
    ],
)
def test_a_base_that_is_concluded_or_doubtful_is_a_warning(reader, sentences, base, read, stated, message):
    found = reader(sentences, base, read, base=stated)
    assert found.base == (0 if "0-based" in message else 1)
    assert next(found.each_links()) == {(i + base - found.base, j + base - found.base) for i, j in sentences[0]}
    (warning,) = reader.warnings
    assert says(warning, f"x: … {message}")


def test_no_index_1_is_no_sign_of_base_1(reader):
    reader([[(7, 8)]] * 19, 0, read_hypothesis, base="0")
    reader([[]] * 30, 0, read_hypothesis)
    assert reader.warnings == []


@pytest.mark.parametrize(
    ("sentences", "written_base", "read", "stated", "message"),
    [
        (diagonals(19), 1, read_gold, None, "x: … only 19 … give base 0 or give base 1"),
        ([[(3, 3)], [(0, 1)]], 0, read_gold, "1", "x:2: … index 0 … 1-based … give base 0"),
        (diagonals(5), 1, read_gold, "0", "x: … 0-based … 5 sentences … give base 1 … give base 0-unused"),
    ],
)
def test_a_base_that_the_indices_contradict(reader, sentences, written_base, read, stated, message):
    with pytest.raises(InputError, match=facts(message)):
        reader(sentences, written_base, read, base=stated)
    result = reader(diagonals(5), 1, read, base="0-unused")
    assert (result.base, next(result.each_links())) == (0, frozenset((k, k) for k in range(1, 5)))
    assert result.bases == {1}


@pytest.mark.parametrize("link", [(0, 2), (2, 0), (0, 3), (3, 0)])
def test_no_other_reading_is_advised_unless_all_links_fit_it(reader, link):
    """A link beyond the side of either word; a link of index 0 or beyond the end does not count from 1."""
    for links in ([link, (2, 2)], [link, (1, 1)]):
        with pytest.raises(InputError, match="give the texts that it was made from"):
            reader([links], 0, read_hypothesis, base="0-unused", texts=lengths([2], [2]))


def test_link_outside_the_texts(reader):
    message = "x:2: link 0-3 … 4 words in test.de and 3 in test.en … 1 of 2 links … 0-based … tokenisation"
    with pytest.raises(InputError, match=facts(message)):
        reader([[(3, 2)], [(0, 3)]], base="0", texts=lengths([4, 4], [3, 3]))


def test_swapped_direction_is_seen_by_the_texts(reader):
    turned, stated = [[(4, 1), (0, 0)], [(3, 0)]], {"base": "1", "texts": lengths([2, 2], [5, 5])}
    message = "x:1: link 5-2 … 2 words in test.de and 5 in test.en … 2 of 3 links … exchanged … give swap"
    with pytest.raises(InputError, match=facts(message)):
        reader(turned, 1, **stated)
    result = reader(turned, 1, **stated, swap=True)
    assert list(result.each_links()) == [transpose(links) for links in turned]
    right = [sorted(transpose(links)) for links in turned]
    with pytest.raises(InputError, match=facts("x:1: link 2-5 … exchanged … omit swap")):
        reader(right, 1, **stated, swap=True)


def test_naacl_sentences_without_lines(tmp_path):
    path, warnings = written(tmp_path, "1 1 1\n4 1 1\n"), []
    result = read_gold(path, ReadOptions(warn=warnings.append), lengths([9] * 6, [9] * 6))
    assert list(result) == [gold("0-0"), gold(), gold(), gold("0-0"), gold(), gold()]
    assert len(result) == 6
    (warning,) = warnings
    assert says(warning, f"{path}: 4 of 6 sentences")
    whole = written(tmp_path, "1 1 1\n2 1 1\n"), ReadOptions(warn=pytest.fail), lengths([9] * 2, [9] * 2)
    assert len(read_gold(*whole)) == 2


def test_sentences_of_fairseq_count_from_0(tmp_path):
    path = written(tmp_path, "A-1\t0-3\nA-0\t0-0\n")
    with pytest.raises(InputError, match=facts("x.talp: sentence 1: link 0-3 … tokenisation")):
        read_hypothesis(path, texts=lengths([2, 2], [2, 2]))


def test_index_0_of_naacl_may_be_null(tmp_path):
    for text, line in (("1 0 1\n1 1 1\n", 1), ("1 10 1\n\n2 1 0 S\n", 3)):
        with pytest.raises(InputError, match=facts(f"x.talp:{line}: … index 0 … NULL … awk … give base 0")):
            read_gold(written(tmp_path, text))


@pytest.mark.parametrize("swap", [False, True])
def test_a_file_and_a_pipe_are_read_as_often_as_asked(tmp_path, swap):
    text = "1-2\n\n3-3 2p1\n"
    expected = [gold("1-0"), gold(), gold("2-2", "0-1")] if swap else [gold("0-1"), gold(), gold("2-2", "1-0")]
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    for path in (written(tmp_path, text), Path(f"/dev/fd/{reading}")):
        file = read_gold(path, ReadOptions(base="1", swap=swap))
        assert [list(file), list(file)] == [expected] * 2
        assert file.hash == content_hash([text.encode()])
    os.close(reading)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("0-0\n", "has 1 sentences, but test.de has 2 lines"),
        ("0-0\n1-1\n\n", "has 3 sentences, but … the last line of … is blank"),
    ],
)
def test_as_many_lines_as_the_texts(tmp_path, text, fact):
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=facts(f"{path} {fact}")):
        read_gold(path, texts=lengths([5, 5], [5, 5]))
    with pytest.raises(InputError, match=facts("test.de has 2 lines, but test.en has 3 … test.en is blank")):
        lengths([5, 5], [5, 5, 0])
