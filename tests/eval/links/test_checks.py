import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.links.checks import Texts
from alignment_eval.links.read import ReadOptions, read_gold, read_hypothesis
from alignment_eval.links.sets import transpose
from alignment_eval.links.write import format_pharaoh_line
from tests.facts import facts, says


def diagonals(count, length=4):
    """Sentences whose word k is linked to word k."""
    return [[(k, k) for k in range(length)]] * count


class Reader:
    """Reads links printed with a base, and keeps the warnings."""

    def __init__(self, folder):
        self.path = folder / "x"
        self.warnings = []

    def __call__(self, sentences, written=0, read=read_gold, texts=None, **options):
        self.path.write_text("".join(f"{format_pharaoh_line(links, written)}\n" for links in sentences))
        return read(self.path, ReadOptions(**options), texts, self.warnings.append)


@pytest.fixture
def reader(tmp_path):
    return Reader(tmp_path)


def lengths(source, target):
    return Texts("test.de", np.array(source), "test.en", np.array(target))


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("read", [read_gold, read_hypothesis])
def test_stated_base(reader, base, read):
    result = reader(diagonals(30), base, read, base=str(base))
    assert result.base == base
    assert list(result.each_links()) == [frozenset(links) for links in diagonals(30)]
    assert reader.warnings == []


@pytest.mark.parametrize(
    ("links", "texts", "base", "message"),
    [
        ([[(2, 2)], [(1, 0)]], None, 0, "0-based … index 0 … x:2 … --gold-base 0"),
        (diagonals(20), None, 1, "1-based … 20 sentences use index 1 … --gold-base 1"),
    ],
)
def test_what_shows_the_base_of_gold(reader, links, texts, base, message):
    result = reader(links, base, texts=texts)
    assert (result.base, list(result.each_links())) == (base, [frozenset(sentence) for sentence in links])
    (warning,) = reader.warnings
    assert says(warning, f"{reader.path}: … {message}")


def test_undecidable_base(reader):
    with pytest.raises(InputError, match=facts(f"{reader.path}: … only 19 … --gold-base 0 or --gold-base 1")):
        reader(diagonals(19), 1)


def test_base_0_read_as_1(reader):
    with pytest.raises(InputError, match=facts(f"{reader.path}:2: … index 0 … 1-based … --gold-base 0")):
        reader([[(3, 3)], [(0, 1)]], base="1")


@pytest.mark.parametrize(("read", "role"), [(read_gold, "gold"), (read_hypothesis, "hyp")])
def test_base_1_read_as_0(reader, read, role):
    message = f"{reader.path}: … 0-based … 5 sentences … --{role}-base 1 … --{role}-base 0-unused"
    with pytest.raises(InputError, match=facts(message)):
        reader(diagonals(5), 1, read, base="0")
    result = reader(diagonals(5), 1, read, base="0-unused")
    assert (result.base, next(result.each_links())) == (0, frozenset((k, k) for k in range(1, 5)))


def test_hypothesis_of_base_1_by_default(reader):
    with pytest.raises(InputError, match="give --hyp-base 1"):
        reader(diagonals(5), 1, read_hypothesis)
    assert reader(diagonals(4), 1, read_hypothesis).base == 0
    assert says(reader.warnings[0], "0-based … none of its 4 sentences … --hyp-base 1")
    assert reader(diagonals(20), 1, read_hypothesis, base="auto").base == 1


def test_sparse_hypothesis_of_base_0_is_no_error(reader):
    """Final marks alone: index 0 is never used, but index 1 is not either."""
    marks = [[(7, 8)]] * 20
    assert reader(marks, 0, read_hypothesis, base="0").base == 0
    assert says(reader.warnings[0], "0-based … none of its 20 sentences … --hyp-base 1")
    reader.warnings.clear()
    reader(marks[:19], 0, read_hypothesis, base="0")
    reader([[]] * 30, 0, read_hypothesis)
    assert reader.warnings == []


@pytest.mark.parametrize("link", [(0, 3), (3, 0)])
def test_no_other_reading_is_advised_unless_all_links_fit_it(reader, link):
    """A link beyond the side of either word; a link of index 0 or beyond the end does not count from 1."""
    for links in ([link, (2, 2)], [link, (1, 1)]):
        with pytest.raises(InputError, match="give the texts that the alignment was made from"):
            reader([links], 0, read_hypothesis, base="0-unused", texts=lengths([2], [2]))


def test_link_outside_the_texts(reader):
    message = f"{reader.path}:2: link 0-3 … 4 words in test.de and 3 in test.en … 1 of 2 links … 0-based … tokenisation"
    with pytest.raises(InputError, match=facts(message)):
        reader([[(3, 2)], [(0, 3)]], base="0", texts=lengths([4, 4], [3, 3]))


@pytest.mark.parametrize("base", [0, 1])
def test_swapped_direction_is_seen_by_the_texts(reader, base):
    texts = lengths([2, 2], [5, 5])
    turned = [[(4, 1), (0, 0)], [(3, 0)]]
    message = f"x:1: link {4 + base}-{1 + base} … 2 words in test.de and 5 in test.en … 2 of 3 … convert --from-swap"
    with pytest.raises(InputError, match=facts(message)):
        reader(turned, base, read_hypothesis, base=str(base), texts=texts)
    result = reader(turned, base, read_hypothesis, base=str(base), texts=texts, swap=True)
    assert list(result.each_links()) == [transpose(links) for links in turned]
    right = [sorted(transpose(links)) for links in turned]
    message = f"x:1: link {1 + base}-{4 + base} … 2 words in test.de and 5 in test.en … convert --from-swap"
    with pytest.raises(InputError, match=facts(message)):
        reader(right, base, read_hypothesis, base=str(base), texts=texts, swap=True)
