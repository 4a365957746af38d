"""Maps subword tokens to words, by the markers of subword-nmt, SentencePiece and WordPiece.

A *word index* array has one entry per token: the word that the token belongs to, from 0, or -1 for a special token.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.links.formats import GoldSentence, Link, Links

#: The subword markers.  ``@@`` joins a subword to the next one, ``##`` to the previous one, ``▁`` begins a word.
MARKS = ("@@", "▁", "##", "none")
#: fairseq's token for a subword that is not in the dictionary.
UNKNOWN = "<unk>"
#: A word without characters: SentencePiece's blank alone.
UNSPELLED = "▁"
#: For each word of a sentence, the positions of its subwords.
Pieces = Sequence[Sequence[int]]
#: Marks of subwords; what Moses escapes or marks.
_SUBWORD, _ESCAPE = re.compile(r"\S@@(?: |$)|(?:^| )▁\S"), re.compile(r"(?:^| )(?:&(?:apos|quot|#91|#93|#124);|@\W@ )")
#: Lines look prepared if more than this share of them have such marks.
_PREPARED = 0.1
_MARKED = {"@@": f"{UNKNOWN}@@", "▁": f"▁{UNKNOWN}", "##": f"##{UNKNOWN}"}


def word_indices(tokens: Sequence[str], mark: str, special: Sequence[bool] | None = None) -> NDArray[np.int32]:
    """Number the words that subword ``tokens`` spell.

    ``▁`` works with and without SentencePiece's dummy prefix: the first ordinary token begins word 0 with or without
    the marker, and a lone ``▁`` begins a word that the next subwords continue.

    ``special`` is true where a token is special; None: no token is.  A special token ends the word before it.
    """
    if mark not in MARKS:
        raise InputError(f"unknown subword marker {mark!r}; choose one of {', '.join(MARKS)}")
    words = np.full(len(tokens), -1, dtype=np.int32)
    word = -1
    open_word = False  # whether the next token continues the current word, unless its marker says otherwise
    for i, token in enumerate(tokens):
        if special is not None and special[i]:
            open_word = False
            continue
        marked = token.startswith(mark)
        word += not open_word or (mark == "▁" and marked) or (mark == "##" and not marked) or mark == "none"
        open_word = mark != "@@" or token.endswith("@@")
        words[i] = word
    return words


def with_marks(tokens: Sequence[str], unknown: Sequence[bool], mark: str) -> list[str]:
    """The ``tokens`` as if each ``unknown`` one had the marker ``mark``.

    Words are certain if they are the same with and without these markers: each unknown token decides only one boundary,
    so what holds in both extreme cases holds in every case between them.
    """
    return [_MARKED.get(mark, token) if lost else token for token, lost in zip(tokens, unknown)]


def detect_mark(vocabulary: Iterable[str]) -> str:
    """Detect the subword marker of a vocabulary from its entries."""
    entries = list(vocabulary)
    counts = {
        "@@": sum(len(entry) > 2 and entry.endswith("@@") for entry in entries),
        "▁": sum(len(entry) > 1 and entry.startswith("▁") for entry in entries),
        "##": sum(len(entry) > 2 and entry.startswith("##") for entry in entries),
    }
    # A corpus may hold a stray "##abc", but a scheme in use marks a large part of its vocabulary.
    used = [mark for mark, count in counts.items() if count > 0.02 * len(entries)]
    if len(used) > 1:
        raise InputError(
            f"the vocabulary of {len(entries)} entries mixes subword markers "
            f"({', '.join(f'{m} on {counts[m]}' for m in used)}); specify one"
        )
    return used[0] if used else "none"


def marks_of_tools(lines: Sequence[str]) -> tuple[str, str]:
    """What shows that lines were cut into subwords, and that Moses escaped them; each empty if nothing does."""
    cut, escaped = (sum(mark.search(line) is not None for line in lines) for mark in (_SUBWORD, _ESCAPE))
    fewest, size = _PREPARED * len(lines), len(lines)
    return (
        f"in {cut} of {size} sampled lines words end in @@ or begin with ▁" if cut > fewest else "",
        f"{escaped} of {size} sampled lines have Moses' escapes, such as &apos; or @-@" if escaped > fewest else "",
    )


def word_strings(tokens: Sequence[str], words: Sequence[int] | NDArray[np.int32]) -> list[str]:
    """The words that subword ``tokens`` spell, for any marker; a lone ``▁`` before more subwords is dropped."""
    spelled: dict[int, str] = {}
    for token, word in zip(tokens, words):
        if word >= 0:
            spelled[int(word)] = spelled.get(int(word), "") + bare_piece(token)
    return [spelled[word] or UNSPELLED for word in sorted(spelled)]


def bare_piece(token: str) -> str:
    """What a subword spells, for any marker; empty for a lone ``▁``, while ``##`` and ``@@`` alone may be words."""
    return "" if token == UNSPELLED else token.lstrip("▁").removeprefix("##").removesuffix("@@") or token


def is_punctuation(word: str) -> bool:
    """Whether all characters are punctuation (Unicode categories P…); symbols such as $, + and ^ are not."""
    return all(unicodedata.category(character).startswith("P") for character in word)


def word_pieces(tokens: Sequence[str], mark: str) -> list[list[int]]:
    """The positions of the subwords of each word, for a sentence in subwords, none of them special."""
    pieces: list[list[int]] = []
    for position, word in enumerate(word_indices(tokens, mark).tolist()):
        if word == len(pieces):
            pieces.append([])
        pieces[word].append(position)
    return pieces


def subword_links(links: GoldSentence, source: Pieces, target: Pieces) -> GoldSentence:
    """The links between subwords: each subword of a word has all links of the word."""
    confidence = links.confidence
    return GoldSentence(
        _pairs(links.sure, source, target),
        _pairs(links.possible, source, target),
        confidence and {cell: p for link, p in confidence.items() for cell in _pairs([link], source, target)},
    )


def _pairs(links: Iterable[Link], source: Pieces, target: Pieces) -> Links:
    return frozenset(pair for i, j in links for pair in product(source[i], target[j]))
