"""How fairseq's translation tasks tell a model the languages of a pair: tags in the text, and the tokens around it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from fairseq.data.multilingual.multilingual_data_manager import MultilingualDatasetManager
from fairseq.data.multilingual.multilingual_utils import get_lang_tok
from fairseq.tasks.translation_from_pretrained_bart import TranslationFromPretrainedBARTTask
from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask

from alignment_eval.errors import InputError, UsageError, printable, shown
from fairseq_norm_plugin.text.tokens import SpecialTokens, source_tag


@dataclass(frozen=True)
class Tags:
    """How a model that reads raw text is told its languages."""

    tokens: Sequence[str]  #: the tags, which belong to no word
    around: SpecialTokens  #: the tokens around a sentence pair, tags among them
    direction: str | None  #: what they say, ``de-en``, with a profile for each; None: there are no tags

    @classmethod
    def of(cls, task: Any, target_tag: str | None = None) -> Tags:
        """Those of a task's model; one of Marian's is told a target language as stated (tokens.source_tag).

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
