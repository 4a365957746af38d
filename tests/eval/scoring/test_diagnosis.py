import numpy as np
import pytest

from alignment_eval.links.files import ReadOptions, read_gold, read_hypothesis
from alignment_eval.links.formats import format_links, transpose
from alignment_eval.scoring.aer import Counts, score
from alignment_eval.scoring.diagnosis import diagnose, diagonal, doubts, explains
from tests.eval.links.samples import gold as gold_sentence
from tests.facts import says

EXCHANGE = "exchange the hypothesis with align-eval convert --from-swap --to pharaoh"


def hypothesis(folder, sentences, base=0, **options):
    path = folder / "hyp"
    path.write_text("".join(f"{format_links(links, base)}\n" for links in sentences))
    return read_hypothesis(path, ReadOptions(base="0-unused", advise="{} --hyp-{}".format, **options))


def gold(folder, sentences, base=0, **options):
    path = folder / "gold"
    path.write_text("".join(f"{format_links(sentence.possible, base, sentence.sure)}\n" for sentence in sentences))
    return read_gold(path, ReadOptions(base="0-unused", **options))


@pytest.mark.parametrize(("beyond", "either", "warned"), [(10, 0, False), (11, 0, True), (18, 6, False), (19, 6, True)])
def test_few_links_beyond_the_gold_or_many_either_way_are_no_sign(tmp_path, beyond, either, warned):
    """More than 10, and more than four times those that are beyond either way."""
    truth = gold(tmp_path, [gold_sentence("2-9")] * (beyond + either))
    links = [{(8, 1)}] * beyond + [{(10, 10)}] * either
    assert ("exchanged (" in (doubts(hypothesis(tmp_path, links), truth) or "")) == warned


def counts(*rows):
    """Of so many sentences so many links of 10 are right."""
    right = np.array([hits for number, hits in rows for _ in range(number)])
    size = np.full(len(right), 10)
    return Counts(size, size, right, right)


def of_100(hits):
    """Of 20 sentences so many links of 100 are right."""
    return Counts(*(np.full(20, 100),) * 2, *(np.full(20, hits),) * 2)


@pytest.mark.parametrize(
    ("before", "after", "explained"),
    [
        (counts((10, 0)), counts((10, 3)), True),
        (counts((9, 0)), counts((9, 10)), False),  # too few sentences
        (counts((20, 9)), counts((16, 10), (4, 9)), True),
        (counts((30, 4), (14, 10)), counts((30, 10), (14, 9)), False),  # 30 of 44 are better
        (counts((12, 0), (4, 10)), counts((12, 10), (4, 9)), False),  # 8 more are better than worse
        (of_100(95), of_100(100), False),  # 5 points
    ],
)
def test_what_counts_as_an_explanation(before, after, explained):
    assert explains(before, after) == explained


@pytest.mark.parametrize(("possible", "links"), [("0-0 1-5", "0-0 0-1 0-2 1-3 1-4 1-5"), ("5-1", "1-0 4-1"), ("", "")])
def test_diagonal(possible, links):
    assert diagonal(gold_sentence("", possible)) == gold_sentence(links).sure


#: Neither symmetric, nor alike from line to line, nor diagonal.
SENTENCES = [
    gold_sentence(" ".join(f"{(5 * k + n) % 7}-{(3 * k * k + n * n) % 11}" for k in range(6)), f"{n % 7}-{n % 5}")
    for n in range(40)
]
LINKS = [sentence.sure for sentence in SENTENCES]


def test_right_files_are_not_explained(tmp_path):
    truth = gold(tmp_path, SENTENCES)
    found = diagnose(hypothesis(tmp_path, LINKS), truth)
    assert (found.explanation, found.readings[0].changes, found.readings[0].aer) == (None, (), 0)
    assert [reading.aer for reading in found.readings[1:]] == sorted(reading.aer for reading in found.readings[1:])
    assert found.diagonal == score(map(diagonal, SENTENCES), SENTENCES).aer
    assert says(doubts(hypothesis(tmp_path, LINKS), truth), "AER 0")
    same = read_gold(tmp_path / "hyp", ReadOptions(base="0"))
    assert says(doubts(hypothesis(tmp_path, LINKS), same), "gold and hypothesis have the same content")
    near = hypothesis(tmp_path, [LINKS[0] - {min(LINKS[0])}, *LINKS[1:]])
    assert doubts(near, truth) is None


@pytest.mark.parametrize(
    ("base", "swap", "moved", "changes"),
    [
        (1, False, LINKS, ("give --hyp-base 1",)),
        (0, True, LINKS, (f"{EXCHANGE} or give --gold-swap",)),
        (1, True, LINKS, ("give --hyp-base 1", f"{EXCHANGE} or give --gold-swap")),
        (0, False, [*LINKS[:20], *LINKS[21:], ()], ("insert 1 line into the hypothesis at about line 21",)),
        (0, False, [*LINKS[:20], (), *LINKS[20:39]], ("remove 1 line from the hypothesis at about line 21",)),
        (1, False, [(), *LINKS], ("give --hyp-base 1", "remove 1 line from the hypothesis at about line 1")),
    ],
)
def test_what_explains_an_aer(tmp_path, base, swap, moved, changes):
    links = [transpose(links) if swap else links for links in moved]
    wrong, truth = hypothesis(tmp_path, links, base), gold(tmp_path, SENTENCES)
    found = diagnose(wrong, truth)
    assert tuple(change.split(" (or correct")[0] for change in found.explanation.changes) == changes
    assert found.explanation.aer < 0.2 < found.readings[0].aer  # some lines are the same
    warning = doubts(wrong, truth) if len(wrong) == len(truth) else None
    assert warning is None or found.explanation.changes[-1] in warning


def test_few_sentences_are_explained_if_half_of_them_are_better(tmp_path):
    for number in (1, 5, 9):
        truth = gold(tmp_path, SENTENCES[:number])
        assert diagnose(hypothesis(tmp_path, LINKS[:number]), truth).explanation is None
        turned = diagnose(hypothesis(tmp_path, map(transpose, LINKS[:number])), truth)
        assert turned.explanation.changes == (f"{EXCHANGE} or give --gold-swap",)


def test_of_three_sentences_two_must_be_better(tmp_path):
    """Exchanged, only the first of these is another."""
    truth = gold(tmp_path, [gold_sentence("0-1"), *[gold_sentence("0-0")] * 2])
    turned = hypothesis(tmp_path, [{(1, 0)}, {(0, 0)}, {(0, 0)}])
    assert diagnose(turned, truth).explanation is None


def test_an_only_line_is_not_shifted(tmp_path):
    """Shifted out of the file, it would be no line at all."""
    readings = diagnose(hypothesis(tmp_path, [{(0, 1)}]), gold(tmp_path, [gold_sentence("0-3")])).readings
    assert {reading.changes for reading in readings} == {(), (f"{EXCHANGE} or give --gold-swap",)}


def test_a_poor_alignment_is_not_explained(tmp_path):
    truth = gold(tmp_path, SENTENCES)
    poor = hypothesis(tmp_path, [{(0, j) for j in range(11)}] * 40)
    assert diagnose(poor, truth).explanation is None
    assert says(doubts(poor, truth), "is above … of a diagonal; no other reading")
    assert says(doubts(hypothesis(tmp_path, [()] * 40), truth), "AER 100.00 % is above … it has no links")
