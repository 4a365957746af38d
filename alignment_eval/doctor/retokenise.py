"""Maps the tokens of a text to the words of the same text in another tokenisation, by their common characters.

This covers subword tokens and cases such as ``do n't`` for ``don't``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product, zip_longest

from alignment_eval.links.table import LinkTable

#: The tokens of each line.
Lines = Iterable[Sequence[str]]
#: For each token of each line, the numbers of its words; empty in a line that is not the same text.
TokenWords = Sequence[Sequence[range]]


def token_words(tokens: Lines, words: Lines) -> Iterator[Sequence[range]]:
    """Find the words of each token, line by line, through their characters.

    Case, subword markers and Moses' escapes (``&apos;``, ``@-@``) are ignored.  A token without characters, such as
    SentencePiece's lone ``▁``, belongs to the next word.

    Args:
        tokens: a text.
        words: the same text in another tokenisation, with the same number of lines.
    """
    return map(_line, tokens, words)


def _line(tokens: Sequence[str], words: Sequence[str]) -> list[range]:
    spelled, of_words = [*map(_letters, tokens)], [*map(_letters, words)]
    owners = [number for number, word in enumerate(of_words) for _ in word]  # the word of each character
    if "".join(spelled) != "".join(of_words) or not owners:
        return [range(0)] * len(tokens)
    found, start = [], 0
    for part in spelled:
        its = owners[start : start + max(len(part), 1)] or owners[-1:]
        found.append(range(its[0], its[-1] + 1))
        start += len(part)
    return found


@lru_cache(maxsize=2**16)
def _letters(token: str) -> str:
    bare = re.sub("^▁+|^##|@@$", "", token)
    return html.unescape(bare).replace("@-@", "-").lower()


def words_of_tokens(links: LinkTable, source: TokenWords, target: TokenWords, base: int = 0) -> LinkTable:
    """Turn links between tokens into links between words: two words are linked if any of their tokens are.

    Links of tokens that are not in the texts are dropped.  ``base`` is the number of the first token and word.
    """
    made = []
    for sentence, *sides in zip_longest(links.each_sentence(), source, target, fillvalue=()):
        words = [dict(enumerate(side, base)) for side in sides]
        made.append(
            {
                (i + base, j + base)
                for first, second in sentence
                for i, j in product(words[0].get(first, ()), words[1].get(second, ()))
            }
        )
    return LinkTable.of(made[: links.sentences])
