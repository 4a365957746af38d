"""Published figures of gold sets, from the stored outputs of the aligners."""

import pytest

from alignment_eval.links.files import ReadOptions, read_gold, read_hypothesis, read_texts
from alignment_eval.links.formats import GoldSentence, transpose
from alignment_eval.scoring.aer import aer, count, score
from alignment_eval.scoring.diagnosis import diagnose, doubts
from alignment_eval.scoring.significance import Resampling, compare_all, confidence

pytestmark = pytest.mark.shared

GOLD = "data/gold/vilar508/alignment.talp"
GIZA = "data/baselines/giza/test.deen.talp"
FILES = [
    f"test.deen.{name}talp"
    for name in ("", "reverse.", "intersection.", "union.", "grow-diagonal.", "grow-diagonal-final.")
]


@pytest.fixture(scope="module")
def gold(shared):
    return read_gold(shared / GOLD, ReadOptions(base="1", warn=pytest.fail))


@pytest.fixture(scope="module")
def texts(shared):
    return read_texts(shared / "data/gold/vilar508/test.de", shared / "data/gold/vilar508/test.en")


def hypothesis(path, texts=None):
    return read_hypothesis(path, ReadOptions(swap="reverse" in path.name, warn=pytest.fail), texts)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("aligner", ["giza", "fastalign"])
def test_rows_of_the_published_table(shared, published, gold, aligner, name):
    folder = shared / "data/baselines" / aligner
    rows = published(folder)
    # a stored file that the list above forgets would go untested
    assert {path.name for path in folder.glob("*.talp")} == set(FILES)
    result = score(hypothesis(folder / name).each_links(), gold)
    for ours, theirs in zip((result.aer, result.precision, result.recall), rows[name]):
        assert abs(100 * ours - theirs) <= 0.1 + 1e-9
    # The stored files differ from those that were scored by 1, 1 and -4 links in the two directions and their
    # intersection (giza), so by 1 + 1 + 4 in the union.
    allowed = 6 if (aligner, name) == ("giza", "test.deen.union.talp") else 5
    assert abs(int(result.counts.hypothesis) - rows[name][3]) <= allowed


@pytest.mark.parametrize(
    ("name", "aer"),
    [("ro-en-wpt248", 20.75), ("ja-en-kftt582", 37.36), ("zh-en-tsinghua450", 13.31), ("hansards447", 4.07)],
)
def test_links_that_awesome_align_published(shared, name, aer):
    """Its README says 20.7, 37.4, 13.4 and 4.1."""
    folder = shared / "data/gold" / name
    (path,) = folder.glob("gold.*")
    truth = read_gold(path, ReadOptions(base="0" if name == "hansards447" else "1", warn=pytest.fail))
    result = score(hypothesis(folder / "awesome-align.pharaoh").each_links(), truth)
    assert round(100 * result.aer, 2) == aer


def test_gold_counts(shared, gold):
    assert (len(gold), gold.sure, gold.possible - gold.sure) == (508, 9613, 921)
    dev = read_gold(shared / "data/gold/cmu150/dev.talp", ReadOptions(base="1", warn=pytest.fail))
    # 2,843 and 1,063 stand in the file: 5 and 3 of them are duplicates, 2 pairs are both sure and possible
    assert (len(dev), dev.sure, dev.possible - dev.sure) == (150, 2843 - 5, 1063 - 3 - 2)


def percent(result):
    return round(100 * result.aer, 1)


def test_figures_of_wrong_readings(shared, gold):
    giza, truth = list(hypothesis(shared / GIZA).each_links()), list(gold)
    right = score(giza, truth)
    assert percent(right) == 21.0
    from_1 = read_gold(shared / GOLD, ReadOptions(base="0-unused", warn=pytest.fail))
    assert percent(score(giza, from_1)) == 62.7
    assert percent(score(map(transpose, giza), truth)) == 81.5
    assert percent(score(giza, [GoldSentence(sentence.possible) for sentence in truth])) == 24.0
    assert percent(score(giza, [GoldSentence(sentence.sure) for sentence in truth])) == 21.8
    assert round(100 * float(aer(right.per_sentence).mean()), 1) == 19.7  # of each sentence


def test_no_stored_file_raises_a_false_alarm(shared, gold, texts):
    paths = sorted((shared / "data/baselines").glob("*/*.talp"))
    assert len(paths) == 14
    for path in paths:
        links = hypothesis(path, texts)
        assert doubts(links, gold) is None
        found = diagnose(links, gold)
        assert found.explanation is None
        assert round(100 * found.diagonal, 1) == 74.3


def test_links_of_another_text(shared, tmp_path):
    """Some lines fit some sentences by chance, but they do not choose each other."""
    (tmp_path / "h").write_text("".join((shared / GIZA).read_text().splitlines(keepends=True)[:150]))
    gold = read_gold(shared / "data/gold/cmu150/dev.talp", ReadOptions(base="1"))
    assert "no other reading of the files explains it" in (doubts(hypothesis(tmp_path / "h"), gold) or "")


def test_interval_and_comparison(shared, gold):
    """A sentence bootstrap of this gold gives about 1.2 points either way; GIZA++ and fast_align differ by far more."""
    giza, fast_align = (
        count(hypothesis(shared / f"data/baselines/{name}/{FILES[0]}").each_links(), gold)
        for name in ("giza", "fastalign")
    )
    interval = confidence(giza, Resampling(1000))["aer"]
    assert 100 * (interval.high - interval.low) / 2 == pytest.approx(1.2, abs=0.2)
    difference = compare_all([giza, fast_align], Resampling(1000))[0, 1]["aer"]
    assert difference.p_bootstrap == difference.p_randomisation == 1 / 1001
    assert round(100 * difference.delta, 1) == 7.5  # 28.4 - 21.0, before rounding
