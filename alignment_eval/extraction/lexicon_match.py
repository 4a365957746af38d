"""Checks that a lexicon matches the text it is used for: same languages, same preprocessing."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

from alignment_eval.errors import InputError
from alignment_eval.extraction.bidirectional import PairWords
from alignment_eval.extraction.lexicon import Lexicon, Vocabulary

#: The number of sentence pairs of a text that are checked.
SAMPLE = 1000
#: A side with fewer running words is not checked.
FEW_WORDS = 100

#: The largest share of running words that may be unknown.  Of other Europarl text a lexicon of 20,000 pairs does not
#: know 6 %, one of 100 pairs 40 %, and one with source and target exchanged 45 to 62 %.
MOST_UNKNOWN = 0.5
#: The largest share that may be known in another case only.  Of cased text it is 10 to 22 % for a lowercased lexicon.
MOST_OTHER_CASE = 0.05


def check_match(lexicon: Lexicon, pairs: Iterable[PairWords]) -> None:
    """Check that a lexicon has the languages and the preprocessing of a text.

    Args:
        lexicon: the lexicon.
        pairs: words of the text; a side with fewer than :data:`FEW_WORDS` running words is not checked.

    Raises:
        InputError: it has not.
    """
    for name, known, words in zip(("source", "target"), (lexicon.source, lexicon.target), zip(*pairs)):
        counts = Counter(itertools.chain.from_iterable(words))
        total = sum(counts.values())
        if total >= FEW_WORDS and (problem := _problem(counts, known, total)):
            raise InputError(
                f"{lexicon.name}: of the text's {total} {name} words, {problem}; give a lexicon that was counted on "
                f"text of the same languages, tokenisation and case"
            )


def _problem(words: Counter[str], known: Vocabulary, total: int) -> str | None:
    unknown = {word: count for word, count in words.items() if word not in known.numbers}
    if (count := sum(unknown.values())) > MOST_UNKNOWN * total:
        return f"{count} ({count / total:.0%}) are not in the lexicon"
    folded = {word.casefold() for word in known.numbers}
    if (count := sum(n for word, n in unknown.items() if word.casefold() in folded)) > MOST_OTHER_CASE * total:
        return f"{count} ({count / total:.0%}) are in the lexicon in another case only"
    return None
