"""Token ids: the words that they spell, and the tokens around a sentence: ``</s>``, and tags that name languages."""

from __future__ import annotations

import re
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from fairseq.data.multilingual.multilingual_data_manager import MultilingualDatasetManager
from fairseq.data.multilingual.multilingual_utils import get_lang_tok
from fairseq.tasks.translation_from_pretrained_bart import TranslationFromPretrainedBARTTask
from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask
from torch import Tensor

from alignment_eval.errors import InputError, UsageError, printable, shown
from alignment_eval.maps.sentence import SentenceSide, detect_mark, with_marks, word_indices
from alignment_eval.reading import content_hash

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


@dataclass(frozen=True, eq=False)
class Spelling:
    """What ids spell: an unknown subword has lost its marker, so ``<unk>`` may end a word or stand inside of one.

    Attributes:
        side: the tokens and their words, if each unknown token ends its word.
        other: the same if none does.
        unknown: how many tokens are unknown.
    """

    side: SentenceSide
    other: SentenceSide
    unknown: int

    @property
    def certain(self) -> bool:
        """Whether the words are those of the text, wherever unknown tokens end one."""
        return bool(np.array_equal(self.side.words, self.other.words))


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

    def spell(self, ids: Tensor) -> Spelling:
        """The tokens and words that ``ids``, possibly with padding, spell."""
        numbers = ids.tolist()
        unknown = [number == self.dictionary.unk() for number in numbers]
        tokens = [self.dictionary[number] for number in numbers]
        side = self.side(numbers, tokens)
        other = self.side(numbers, with_marks(tokens, unknown, self.mark)) if any(unknown) else side
        return Spelling(side, other, sum(unknown))

    def side(self, ids: Sequence[int], tokens: Sequence[str]) -> SentenceSide:
        """The ``tokens`` of these ids, which may be spelled in another way than the dictionary's, and their words."""
        special = [number in self.specials for number in ids]
        return SentenceSide(tuple(tokens), word_indices(tokens, self.mark, special))


class UnknownTokens:
    """Counts the ``tokens`` of sentence pairs by side, and how many of them are ``unknown``."""

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()

    def add(self, side: str, tokens: int, unknown: int) -> None:
        """Count a side of a pair."""
        self.tokens[side] += tokens
        self.unknown[side] += unknown

    def update(self, other: UnknownTokens) -> None:
        """Count what another one has counted."""
        self.tokens.update(other.tokens)
        self.unknown.update(other.unknown)

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
            f"unknown to the model so far: {', '.join(shares)}; check that language, tokenisation, case (--lowercase) "
            f"and BPE codes are those of its training"
        )


# ---- the tokens around a sentence pair


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


@dataclass(frozen=True)
class Tags:
    """How a model that reads raw text is told its languages."""

    tokens: Sequence[str]  #: the tags, which belong to no word
    around: SpecialTokens  #: the tokens around a sentence pair, tags among them
    direction: str | None  #: what they say, ``de-en``, with a profile for each; None: there are no tags

    @classmethod
    def of(cls, task: Any, target_tag: str | None = None) -> Tags:
        """Those of a task's model; one of Marian's is told a target language as stated (:func:`source_tag`).

        Raises:
            InputError: the options of a multilingual task do not go together.
            UsageError: the dictionary has no such tag, or several and none is stated.
        """
        dictionary, source, target = task.source_dictionary, task.cfg.source_lang, task.cfg.target_lang
        tokens, around = language_tags(task), special_tokens(task)
        if tokens:
            return cls(tokens, around, f"{source}-{target}")
        if (tag := source_tag(dictionary, target_tag, target)) is None:
            return cls((), around, None)
        return cls((tag,), replace(around, source_prefix=(dictionary.index(tag),)), f"{source}-{tag.strip('<>[]_')}")


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


def language_tags(task: Any) -> Sequence[str]:
    """The tokens that tell the model of ``task`` the languages, ``__de__`` or ``[de]``; they belong to no word."""
    if isinstance(task, TranslationMultiSimpleEpochTask):  # every kind of data has its own
        style, specs = task.args.lang_tok_style, task.args.langtoks_specs
        return [get_lang_tok(language, style, spec) for spec in specs for language in task.langs]
    return [f"[{language}]" for language in task.langs] if isinstance(task, TranslationFromPretrainedBARTTask) else ()


def special_tokens(task: Any) -> SpecialTokens:
    """What the model of ``task`` reads around a sentence pair of the task's languages.

    Raises:
        InputError: the options of a multilingual task do not go together.
    """
    if isinstance(task, TranslationMultiSimpleEpochTask):
        return _of_multilingual(task)
    if isinstance(task, TranslationFromPretrainedBARTTask):  # the tag after </s>, and before the decoder's first input
        dictionaries = task.source_dictionary, task.target_dictionary
        languages = task.args.source_lang, task.args.target_lang
        tags = [dictionary.index(f"[{language}]") for dictionary, language in zip(dictionaries, languages)]
        before = (dictionaries[0].bos(),) if getattr(task.args, "prepend_bos", False) else ()
        source, target = ((dictionary.eos(), tag) for dictionary, tag in zip(dictionaries, tags))
        return SpecialTokens(before, source, before, target, tags[1])
    return SpecialTokens.untagged(task.target_dictionary.eos())


def _of_multilingual(task: Any) -> SpecialTokens:
    """Tags before the sides, or in the place of ``</s>``."""
    args, manager = task.args, task.data_manager
    encoder_spec, decoder_spec = args.langtoks["main"]
    try:
        of_source = manager.get_encoder_langtok(args.source_lang, args.target_lang, encoder_spec)
        of_target = manager.get_decoder_langtok(args.target_lang, decoder_spec)
    except AssertionError as error:  # fairseq adds the tags of --langtoks-specs only
        raise InputError(
            f"{printable(str(error), 120)}: --langtoks {shown(args.langtoks['main'])} and --langtoks-specs "
            f"{shown(args.langtoks_specs)} do not go together; give those of the training"
        ) from error
    eos = task.target_dictionary.eos()
    before = [() if tag is None else (tag,) for tag in (of_source, of_target)]
    if args.lang_tok_replacing_bos_eos:
        return SpecialTokens((), before[0] or (eos,), (), (eos,), eos if of_target is None else of_target)
    return SpecialTokens(before[0], (eos,), before[1], (eos,), eos)


def check_languages(task: type[Any], args: Namespace) -> None:
    """Check that the models of a class of tasks with ``args`` have the languages of these.

    Raises:
        UsageError: they lack one.
    """
    if issubclass(task, TranslationMultiSimpleEpochTask):
        pairs = args.lang_pairs.split(",") if isinstance(args.lang_pairs, str) else args.lang_pairs
        known = Namespace(langs=args.langs, lang_dict=args.lang_dict, lang_pairs=pairs)
        languages = MultilingualDatasetManager.load_langs(known)
        origin = "--langs, --lang-dict or --lang-pairs"
    elif not args.langs:
        raise UsageError("--langs is missing; give the languages of the pretrained model, in its order")
    else:
        languages, origin = args.langs.split(","), "--langs"
    for option, language in (("--source-lang", args.source_lang), ("--target-lang", args.target_lang)):
        if language is not None and language not in languages:
            near = get_close_matches(language, languages, n=5, cutoff=0.3) or languages[:5]
            raise UsageError(
                f"{option} {language} is not one of the model's {len(languages)} languages ({origin}), such as "
                f"{', '.join(near)}"
            )
