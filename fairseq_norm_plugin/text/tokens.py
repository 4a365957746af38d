"""Token ids: the special ones around a sentence, and the tokens and words that ids spell."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from alignment_eval.errors import InputError
from alignment_eval.links.text import TextFile
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
        certain: whether the words are those of the text; false if ``<unk>`` may stand for a subword of a word.
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

        An unknown subword has lost its marker: ``<unk>`` looks like the end of a word, but it may have been the middle
        of one.  The text tells what it was.  It may have two forms:

        - the tokens that were binarised: known tokens must be equal, and the unknown ones are taken from the text;
        - words: the unknown subwords are read with or without the marker, whichever gives the text's number of words.

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


class TextLines:
    """The sentences of a text, one per line.

    Attributes:
        name: the file.
        hash: the hash of its content.
    """

    def __init__(self, path: str | Path, size: int) -> None:
        file = TextFile(path)
        self._lines = [line for _, line in file.lines()]
        self.name, self.hash = file.name, file.hash.short
        if len(self._lines) != size:
            raise InputError(
                f"{self.name}: the text has {len(self._lines)} lines, but the binarised data has {size} sentences; "
                f"give the text of that data, line by line"
            )

    def tokens(self, id_: int) -> list[str]:
        """The tokens of sentence ``id_``, separated by ASCII whitespace only; fairseq also separates at others."""
        return [token.decode() for token in self._lines[id_].split()]


@dataclass(frozen=True, eq=False)
class SideReader:
    """Reads one side of the sentences of a data set.

    Attributes:
        vocabulary: the vocabulary of its ids.
        dataset: fairseq's data set of sentence pairs, which may hold the text itself (:func:`surface`).
        which: ``src`` or ``tgt``.
        text: its text, if given.
        cut: whether a sentence may be only the beginning of its text.
    """

    vocabulary: Vocabulary
    dataset: Any
    which: str
    text: TextLines | None = None
    cut: bool = False

    def spell(self, id_: int, ids: Tensor) -> Spelling:
        """The tokens and words that the ``ids`` of sentence ``id_`` spell."""
        if self.text is None:
            return self._by_data(id_, ids)
        try:
            return self.vocabulary.spell(ids, self.text.tokens(id_), self.cut)
        except InputError as error:
            raise InputError(f"{self.text.name}:{id_ + 1}: {error}") from error

    def _by_data(self, id_: int, ids: Tensor) -> Spelling:
        forms = surface(self.dataset, self.which, id_)
        try:
            return self.vocabulary.spell(ids, forms, cut=True)
        except InputError:  # the data set has changed the sentence, so its text does not help with these tokens
            return self.vocabulary.spell(ids)


def side_readers(
    dataset: Any,
    size: int,
    vocabularies: tuple[Vocabulary, Vocabulary],
    texts: tuple[str | Path | None, str | Path | None],
    cut: bool,
) -> tuple[SideReader, SideReader]:
    """Readers of source and target.

    Args:
        dataset: fairseq's data set of sentence pairs.
        size: its number of sentences.
        vocabularies: of source and target.
        texts: files of source and target text, if given.
        cut: whether source sentences may be cut (``--truncate-source``).
    """
    source, target = (
        SideReader(vocabulary, dataset, which, None if path is None else TextLines(path, size), cut and which == "src")
        for vocabulary, which, path in zip(vocabularies, ("src", "tgt"), texts)
    )
    return source, target


def surface(dataset: Any, which: str, id_: int) -> list[str] | None:
    """The original tokens of a sentence, if the data set keeps them (``--dataset-impl raw``); else None.

    Args:
        dataset: a data set of sentence pairs, which may be wrapped in another and have tags added.
        which: ``src`` or ``tgt``.
        id_: the sentence.
    """
    while dataset is not None and not hasattr(dataset, which):
        parts = getattr(dataset, "datasets", None)
        dataset = parts[0] if parts else getattr(dataset, "dataset", None)
    texts = getattr(dataset, which, None)
    while texts is not None and not hasattr(texts, "get_original_text"):
        texts = getattr(texts, "dataset", None)
    return None if texts is None else str(texts.get_original_text(id_)).split()
