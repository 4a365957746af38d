"""Token ids: special tokens around a sentence, language tags, the words that ids spell, and unknown tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from alignment_eval.errors import InputError, UsageError, printable, shown
from alignment_eval.maps.sentence import UNKNOWN, SentenceSide, detect_mark, with_marks, word_indices
from alignment_eval.reading import TextFile, content_hash

#: A larger share of unknown tokens suggests that the text does not suit the model, such as words instead of subwords.
SUSPICIOUS = 0.05
#: A tag of Marian's models of several target languages.
MARIAN_TAG = re.compile(r">>\S+<<")
#: ``target_tag`` of sources that begin with no tag.
NO_TAG = "none"
#: Forms of tags in the text of other models: <2de>, [de], __de__.
_FORMS = re.compile(r"<\S+>|\[\S+\]|__\S+__")
#: How many tags a message lists.
_LISTED = 40


def special_ids(dictionary: Any, tags: Iterable[str] = ()) -> frozenset[int]:
    """The ids of tokens that belong to no word: ``</s>``, ``<s>``, padding, and the ``tags`` in the dictionary."""
    known = {dictionary.index(tag) for tag in tags} - {dictionary.unk()}
    return frozenset({dictionary.eos(), dictionary.bos(), dictionary.pad()} | known)


@dataclass(frozen=True)
class SpecialTokens:
    """The ids of the special tokens around a sentence pair: ``</s>``, ``<s>``, language tags.

    Attributes:
        source_prefix, source_suffix: before and after the source.
        target_prefix, target_suffix: likewise; a search forces the prefix and ends with the last token of the suffix.
        first: the decoder's first input.
    """

    source_prefix: tuple[int, ...]
    source_suffix: tuple[int, ...]
    target_prefix: tuple[int, ...]
    target_suffix: tuple[int, ...]
    first: int

    @classmethod
    def untagged(cls, eos: int) -> SpecialTokens:
        """Without tags: both sides end in ``</s>``, and the decoder starts with it."""
        return cls((), (eos,), (), (eos,), eos)

    def around(self, which: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Prefix and suffix of the source (``which`` 0) or of the target (1)."""
        source, target = (self.source_prefix, self.source_suffix), (self.target_prefix, self.target_suffix)
        return (source, target)[which]

    @property
    def ids(self) -> set[int]:
        """All these tokens."""
        return {self.first, *self.source_prefix, *self.source_suffix, *self.target_prefix, *self.target_suffix}


def tagged_hash(parameters: str, tokens: SpecialTokens) -> str:
    """Hash of models whose parameters have the hash ``parameters``, and of their language tags."""
    if tokens == SpecialTokens.untagged(tokens.first):
        return parameters
    # profiles hold the hash of this text
    sides = [f"Frame(before={before}, after={after})" for before, after in map(tokens.around, (0, 1))]
    text = f"Frames(source={sides[0]}, target={sides[1]}, first={tokens.first})"
    return f"{parameters}-{content_hash([text.encode()])}"


def source_tag(dictionary: Any, stated: str | None, language: str) -> str | None:
    """The tag that every source begins with: as ``stated``, ``>>…<<`` or its name, else that of the target language.

    None: sources begin with no tag, as :data:`NO_TAG` says.
    """
    if stated == NO_TAG:
        return None
    tags = [symbol for symbol in dictionary.symbols if MARIAN_TAG.fullmatch(symbol)]
    named = language if stated is None else stated
    for tag in (named, f">>{named}<<"):
        if tag in tags or (stated is not None and _FORMS.fullmatch(tag) and tag in dictionary):
            return tag
    if stated is not None:
        raise UsageError(
            f"target_tag={shown(stated)}: the dictionary of the source has no such tag ({list_tags(tags)})"
        )
    if len(tags) > 1:
        raise UsageError(
            f"the model translates into several languages, by the tag of one before each source, but none is of "
            f"{shown(language)}; give --model-option target_tag=TAG ({list_tags(tags)}), or {NO_TAG}"
        )
    return None


def list_tags(tags: list[str]) -> str:
    """Tags in a message."""
    if not tags:
        return "it has none"
    some = " ".join(printable(tag, 40) for tag in tags[:_LISTED]) + (" …" if len(tags) > _LISTED else "")
    return f"{len(tags)} known: {some}"


@dataclass(frozen=True, eq=False)
class Spelling:
    """Tokens and words that ids spell, and how many tokens are unknown.

    ``certain``: the words are those of the text; false if ``<unk>`` may stand for a subword of a word.
    """

    side: SentenceSide
    unknown: int
    certain: bool


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The vocabulary of one side.

    Attributes:
        dictionary: fairseq's dictionary.
        stated_mark: the subword marker, one of alignment_eval.maps.sentence.MARKS, or ``auto``.
        specials: the ids that belong to no word (:func:`special_ids`).
    """

    dictionary: Any
    stated_mark: str
    specials: Collection[int]

    @cached_property
    def mark(self) -> str:
        """The subword marker, detected from the dictionary if ``stated_mark`` is ``auto``."""
        symbols = self.dictionary.symbols[self.dictionary.nspecial :]
        return detect_mark(symbols) if self.stated_mark == "auto" else self.stated_mark

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
        ended = self._side(tokens, special)
        marked = self._side(with_marks(tokens, unknown, self.mark), special) if any(unknown) else ended
        by_ids = Spelling(ended, sum(unknown), certain=ended.words.tolist() == marked.words.tolist())
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
        f"the line has {words} words, but the binarised sentence has {most} words in {tokens} tokens; give its text"
    )


class UnknownTokens:
    """Counts the ``tokens`` of sentence pairs by side, and how many of them are ``unknown``."""

    def __init__(self) -> None:
        self._sentences = self._left_out = 0
        self.tokens: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self._uncertain: Counter[str] = Counter()

    def add(self, side: str, tokens: int, unknown: int) -> None:
        """Count a side of a pair."""
        self.tokens[side] += tokens
        self.unknown[side] += unknown

    def update(self, other: UnknownTokens) -> None:
        """Count what another one has counted."""
        self.tokens.update(other.tokens)
        self.unknown.update(other.unknown)

    def add_pair(self, source: Spelling, target: Spelling) -> None:
        """Count a pair of a binarised text, whose words may be uncertain."""
        self._sentences += 1
        self._left_out += not (source.certain and target.certain)
        for name, side in (("source", source), ("target", target)):
            self.add(name, len(side.side.tokens), side.unknown)
            self._uncertain[name] += not side.certain

    def warning(self) -> str | None:
        """A warning if many tokens so far are unknown, with the shares of all such sides."""
        shares = [
            f"{unknown} of {self.tokens[name]} {name} subwords ({100 * unknown / self.tokens[name]:.1f} %)"
            for name, unknown in self.unknown.items()
            if unknown > SUSPICIOUS * self.tokens[name]
        ]
        if not shares:
            return None
        return (
            f"unknown to the model so far: {', '.join(shares)}; check that language, tokenisation, case and BPE codes "
            f"are those of its training"
        )

    def uncertain_warning(self) -> str | None:
        """A warning if unknown tokens make the words of sentences uncertain."""
        if not self._left_out:
            return None
        options = [f"--norm-{name}-text" for name in ("source", "target") if self._uncertain[name]]
        return (
            f"{self._left_out} of {self._sentences} sentences ({100 * self._left_out / self._sentences:.1f} %) get no "
            f"links, because {UNKNOWN} in them may be a piece of a word, which would shift all later words; give the "
            f"text that was binarised ({', '.join(options)})"
        )


@contextmanager
def errors_at(place: str) -> Iterator[None]:
    """Let the messages of bad input begin with the ``place``, FILE:LINE."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


class SideReader:
    """Reads one side, ``src`` or ``tgt``, of fairseq's data set of ``size`` sentence pairs, with the help of its text.

    ``text`` is the file of the text; without one, the data set may hold the text itself.  ``cut``: a sentence may be
    only the beginning of its text.

    Attributes:
        hash: of the text's content; None: there is no text.
    """

    hash: str | None = None

    def __init__(
        self, vocabulary: Vocabulary, dataset: Any, which: str, text: str | Path | None, size: int, cut: bool
    ) -> None:
        self.vocabulary, self._dataset, self._which, self._cut = vocabulary, dataset, which, cut
        if text is None:
            return
        file = TextFile(text)
        self._lines = [line for _, line in file.lines()]
        self._name, self.hash = file.name, file.hash
        if len(self._lines) != size:
            raise InputError(
                f"{file.name}: the text has {len(self._lines)} lines, but the binarised data has {size} sentences"
            )

    def spell(self, id_: int, ids: Tensor) -> Spelling:
        """The tokens and words that the ``ids`` of sentence ``id_`` spell."""
        if self.hash is not None:
            # separated by ASCII whitespace only; fairseq also separates at others
            tokens = [token.decode() for token in self._lines[id_].split()]
            with errors_at(f"{self._name}:{id_ + 1}"):
                return self.vocabulary.spell(ids, tokens, self._cut)
        try:
            return self.vocabulary.spell(ids, surface(self._dataset, self._which, id_), cut=True)
        except InputError:  # the data set has changed the sentence, so its text does not help with these tokens
            return self.vocabulary.spell(ids)


def side_readers(
    dataset: Any,
    size: int,
    vocabularies: tuple[Vocabulary, Vocabulary],
    texts: tuple[str | Path | None, str | Path | None],
    cut: bool,
) -> tuple[SideReader, SideReader]:
    """Readers of source and target; ``cut``: source sentences may be cut (``--truncate-source``)."""
    (source, target), (source_text, target_text) = vocabularies, texts
    return (
        SideReader(source, dataset, "src", source_text, size, cut),
        SideReader(target, dataset, "tgt", target_text, size, False),
    )


def surface(dataset: Any, which: str, id_: int) -> list[str] | None:
    """The original tokens of the side ``src`` or ``tgt`` of a sentence, if the data set keeps them; else None.

    The data set may be wrapped in another and have tags added.
    """
    while dataset is not None and not hasattr(dataset, which):
        parts = getattr(dataset, "datasets", None)
        dataset = parts[0] if parts else getattr(dataset, "dataset", None)
    texts = getattr(dataset, which, None)
    while texts is not None and not hasattr(texts, "get_original_text"):
        texts = getattr(texts, "dataset", None)
    return None if texts is None else str(texts.get_original_text(id_)).split()
