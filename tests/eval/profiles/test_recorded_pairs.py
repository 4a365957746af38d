from dataclasses import replace

import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions, ExtractionOptions
from alignment_eval.profiles.of_records import directed_pairs
from alignment_eval.records.store import Records

OPTIONS = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.3")
BOTH = BidirectionalOptions("product")


@pytest.fixture
def runs(tmp_path, make_sentence, make_records):
    """Sentences 3, 1, 0, 2 in that order, with a worse hypothesis of 1; the other direction has no maps of 2."""
    sentences = [make_sentence(k) for k in (3, 1, 0, 2)]
    worse = replace(make_sentence(9), id=1, rank=1)
    back = [make_sentence(k, status="too long" if k == 2 else "ok") for k in range(4)]
    forward = make_records(tmp_path / "forward", [*sentences[:2], worse, *sentences[2:]], nbest=2)
    return Records(forward), Records(make_records(tmp_path / "back", back))


def ids(pairs):
    return [forward.sentence.id for forward, _ in pairs]


def test_pairs_of_the_word_table_come_first(runs):
    method = AlignmentMethod(OPTIONS, word_table_passes=1, word_table_pairs=2)
    assert ids(list(directed_pairs(runs[0], None, method, "word", None))) == [1, 0, 3, 2]


def test_errors_of_the_reverse_name_it(runs):
    method = AlignmentMethod(OPTIONS, replace(OPTIONS, heads="7"), BOTH)
    with pytest.raises(InputError, match=r"back: .*layer 7"):
        list(directed_pairs(runs[0], runs[1], method, "word", None))
