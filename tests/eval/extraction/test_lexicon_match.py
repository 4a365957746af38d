from __future__ import annotations

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.lexicon import Lexicon, check_match, count_lexicon
from alignment_eval.maps.sentence import PairWords
from tests.facts import facts

GERMAN = [f"wort{number}" for number in range(50)]
ENGLISH = [f"word{number}" for number in range(50)]
#: 100 running words on each side.
TEXT: list[PairWords] = [(GERMAN, ENGLISH), (GERMAN, ENGLISH)]


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return count_lexicon([(words, np.ones((50, 50))) for words in TEXT], 1, 1)[0]


def changed(words: list[str], count: int, to: str = "{}?") -> list[str]:
    return [to.format(word) if k < count else word for k, word in enumerate(words)]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (
            (changed(GERMAN, 26), ENGLISH),
            "of the text's 100 source words, 52 (52%) are not in the lexicon",
        ),
        ((GERMAN, changed(ENGLISH, 40)), "of the text's 100 target words, 80 (80%) are not"),
        ((ENGLISH, GERMAN), "source words, 100 (100%) are not in the lexicon … of the same languages"),
        (
            (GERMAN, [word.capitalize() for word in ENGLISH[:3]] + ENGLISH[3:]),
            "the lexicon: of … 100 target words, 6 (6%) are in the lexicon in another case only",
        ),
    ],
    ids=["source", "target", "languages exchanged", "case"],
)
def test_other_text(lexicon: Lexicon, pair: PairWords, message: str) -> None:
    with pytest.raises(InputError, match=facts(message)):
        check_match(lexicon, [pair, pair])


def test_text_like_its_own(lexicon: Lexicon) -> None:
    check_match(lexicon, TEXT)
    check_match(lexicon, iter([]))
    half = (changed(GERMAN, 25), changed(ENGLISH, 25))
    check_match(lexicon, [half, half])
    # known in upper case only: up to 5 %
    check_match(lexicon, [(GERMAN, changed(ENGLISH, 5, "W{}").copy()), (GERMAN, ENGLISH)])
    few = ([word.upper() for word in GERMAN[:2]], [word.upper() for word in ENGLISH[:5]])
    check_match(lexicon, [few, (GERMAN, ENGLISH), (GERMAN, ENGLISH)])
