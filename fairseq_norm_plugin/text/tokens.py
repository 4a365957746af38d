"""Turns token ids into the tokens and words that records hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from torch import Tensor

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import SentenceSide
from alignment_eval.maps.subwords import detect_mark, with_marks, word_indices


def dictionary_mark(dictionary: Any, option: str) -> str:
    """The subword marker ``option``, or with ``auto`` the one detected from a fairseq dictionary."""
    return detect_mark(dictionary.symbols[dictionary.nspecial :]) if option == "auto" else option


def special_ids(dictionary: Any, tags: Iterable[str] = ()) -> frozenset[int]:
    """The ids of tokens that belong to no word: ``</s>``, ``<s>``, padding, and the ``tags`` in the dictionary."""
    known = {dictionary.index(tag) for tag in tags} - {dictionary.unk()}
    return frozenset({dictionary.eos(), dictionary.bos(), dictionary.pad()} | known)


@dataclass(frozen=True)
class Frame:
    """The special tokens around the tokens of a sentence, as ids: ``</s>``, ``<s>``, language tags."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class Frames:
    """What a model reads around a sentence pair.

    Attributes:
        source: of the source.
        target: of the target; a search forces what is before it and ends with the last token of what is after it.
        first: the decoder's first input.
    """

    source: Frame
    target: Frame
    first: int

    @property
    def ids(self) -> set[int]:
        """All these tokens."""
        return {self.first, *(i for of in (self.source, self.target) for i in (*of.before, *of.after))}

    @property
    def is_plain(self) -> bool:
        """Whether these are the frames of :meth:`plain`, without tags."""
        return self == self.plain(self.first)

    @classmethod
    def plain(cls, eos: int) -> Frames:
        """Both sides end in ``</s>``, and the decoder starts with it."""
        return cls(Frame((), (eos,)), Frame((), (eos,)), eos)


@dataclass(frozen=True, eq=False)
class Spelling:
    """The tokens and words that token ids spell.

    Attributes:
        side: tokens and words.
        unknown: how many of the tokens are not in the dictionary.
        certain: whether the words are those of the text; false if ``<unk>`` may stand for a piece of a word.
    """

    side: SentenceSide
    unknown: int
    certain: bool


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The vocabulary of one side.

    Attributes:
        dictionary: fairseq's dictionary.
        stated_mark: the subword marker, one of alignment_eval.maps.subwords.MARKS, or ``auto``.
        specials: the ids that belong to no word (:func:`special_ids`).
    """

    dictionary: Any
    stated_mark: str
    specials: Collection[int]

    @cached_property
    def mark(self) -> str:
        """The subword marker, detected from the dictionary if ``stated_mark`` is ``auto``."""
        return dictionary_mark(self.dictionary, self.stated_mark)

    def spell(self, ids: Tensor, text: Sequence[str] | None = None, cut: bool = False) -> Spelling:
        """The tokens and words that ``ids`` spell, with the help of the sentence's ``text`` if it is given.

        An unknown piece has lost its marker: ``<unk>`` looks like the end of a word, but the piece may have been the
        middle of one.  The text tells what it was.  It may have two forms:

        - the tokens that were binarised: known tokens must be equal, and the unknown ones are taken from the text;
        - words: the unknown pieces are read with or without the marker, whichever gives the text's number of words.

        Args:
            ids: token ids, possibly with padding.
            text: tokens or words of the sentence, without special ones; default: unknown.
            cut: whether ``ids`` may be only the beginning of the text (``--truncate-source``).
        """
        numbers = ids.tolist()
        special = [number in self.specials for number in numbers]
        unknown = [number == self.dictionary.unk() for number in numbers]
        tokens = [self.dictionary[number] for number in numbers]
        plain = self._side(tokens, special)
        marked = self._side(with_marks(tokens, unknown, self.mark), special) if any(unknown) else plain
        by_ids = Spelling(plain, sum(unknown), certain=plain.words.tolist() == marked.words.tolist())
        if text is None:
            return by_ids
        forms = [form for form in text if self.dictionary.index(form) not in self.specials]
        ordinary = [number for number, is_special in zip(numbers, special) if not is_special]
        first = forms[: len(ordinary)] if cut else forms
        if [self.dictionary.index(form) for form in first] == ordinary:
            if self.mark == "▁" and len(first) > 1 and not any(form.startswith("▁") for form in first):
                return by_ids  # tokens of one word and several words look the same here
            rest = iter(first)
            known = [token if is_special else next(rest) for token, is_special in zip(tokens, special)]
            return replace(by_ids, side=self._side(known, special), certain=True)
        return _by_number_of_words(by_ids, marked, len(forms), len(ordinary), cut)

    def _side(self, tokens: Sequence[str], special: Sequence[bool]) -> SentenceSide:
        return SentenceSide(tuple(tokens), word_indices(tokens, self.mark, special))


def _by_number_of_words(by_ids: Spelling, marked: SentenceSide, words: int, tokens: int, cut: bool) -> Spelling:
    """The extreme case that has ``words`` words: either no unknown token had a marker, or all had one."""
    for side in (by_ids.side, marked):
        if side.word_count == words:
            return replace(by_ids, side=side, certain=True)
    fewest, most = sorted((by_ids.side.word_count, marked.word_count))
    if fewest < words < most or (cut and words > most):
        return by_ids
    raise InputError(
        f"the line has {words} words, but the binarised sentence has {most} words in {tokens} tokens; give its words, "
        f"or the tokens that were binarised"
    )
