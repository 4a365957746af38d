"""Whether a lexicon is of text like the one that it is used for: of the same languages and preprocessing."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

from alignment_eval.errors import InputError
from alignment_eval.extraction.bidirectional import Words
from alignment_eval.extraction.lexicon import Lexicon, Vocabulary

#: How many sentence pairs of a text are compared.
SAMPLE = 1000
#: Fewer running words of a side say nothing.
FEW_WORDS = 100

#: The largest share of running words that may be unknown; of other Europarl text, 6 % are to a lexicon of 20,000 pairs
#: and 40 % to one of 100, and 45 to 62 % if source and target are exchanged.
MOST_UNKNOWN = 0.5
#: The largest share that may be known in another case only: 10 to 22 % of cased text are to a lowercased lexicon.
MOST_OTHER_CASE = 0.05


def check_match(lexicon: Lexicon, pairs: Iterable[Words]) -> None:
    """Check that a lexicon is of the languages and of the preprocessing of a text.

    Args:
        lexicon: the lexicon.
        pairs: words of the text; a side of fewer than :data:`FEW_WORDS` running words is not checked.

    Raises:
        InputError: it is not.
    """
    for name, known, words in zip(("source", "target"), (lexicon.source, lexicon.target), zip(*pairs)):
        counts = Counter(itertools.chain.from_iterable(words))
        total = sum(counts.values())
        if total >= FEW_WORDS and (problem := _problem(counts, known, total)):
            raise InputError(
                f"{lexicon.name}: of the text's {total} {name} words, {problem}: expected a lexicon of the same "
                f"languages, tokenisation and case; count one on such text"
            )


def _problem(words: Counter[str], known: Vocabulary, total: int) -> str | None:
    unknown = {word: count for word, count in words.items() if word not in known.numbers}
    if (count := sum(unknown.values())) > MOST_UNKNOWN * total:
        return f"{count} ({count / total:.0%}) are not in this lexicon"
    folded = {word.casefold() for word in known.numbers}
    if (count := sum(n for word, n in unknown.items() if word.casefold() in folded)) > MOST_OTHER_CASE * total:
        return f"{count} ({count / total:.0%}) are in this lexicon in another case only"
    return None
