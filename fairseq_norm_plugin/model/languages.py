"""The norm task of a checkpoint's own task, for one direction of its languages."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairseq.tasks import TASK_REGISTRY

from alignment_eval.errors import InputError, UsageError, printable, shown
from fairseq_norm_plugin.checkpoints.files import dictionary_files
from fairseq_norm_plugin.checkpoints.options import MULTILINGUAL, PRETRAINED
from fairseq_norm_plugin.text.tokens import source_tag

#: Pairs that a message shows.
_SHOWN = 5


@dataclass(frozen=True)
class Languages:
    """The direction in which a model is used, and what is stated of its languages.

    Attributes:
        source: source language.
        target: target language.
        data: the directory of the dictionaries.
        stated: some of :data:`~fairseq_norm_plugin.model.load.LANGUAGE_OPTIONS`.
    """

    source: str
    target: str
    data: Path
    stated: Mapping[str, str | None]

    @property
    def exchanged(self) -> Languages:
        """The other direction."""
        return replace(self, source=self.target, target=self.source)

    @property
    def place(self) -> tuple[Path, tuple[str, str]]:
        """The directory of the dictionaries, and their languages."""
        return self.data, (self.source, self.target)

    @property
    def pair(self) -> str:
        """``source-target``."""
        return f"{self.source}-{self.target}"


def task_name(options: Any) -> str:
    """The name of the task that a checkpoint was trained with, without the ending of norm tasks."""
    return str(getattr(options, "_name", None) or getattr(options, "task", "")).removesuffix("_norm")


def is_language_tagged(options: Any) -> bool:
    """Whether the models of a checkpoint's task read their languages as tags."""
    return task_name(options) in (MULTILINGUAL, PRETRAINED)


def trained_pairs(options: Any) -> list[str]:
    """The language pairs that a multilingual model was trained on; none if its task is another."""
    pairs = getattr(options, "lang_pairs", None) if task_name(options) == MULTILINGUAL else None
    return pairs.split(",") if isinstance(pairs, str) else list(pairs or ())


def setup_task(options: Any, languages: Languages) -> Any:
    """The norm task for a direction of a checkpoint; ``options`` are of the task that it was trained with."""
    name = task_name(options)
    if name not in (MULTILINGUAL, PRETRAINED):
        return _translation(languages)
    if (tag := languages.stated.get("target_tag")) is not None:
        raise UsageError(f"target_tag={shown(tag)}: this model takes its languages from -s and -t; omit target_tag")
    task, args = TASK_REGISTRY[f"{name}_norm"], _arguments(f"{name}_norm", options, languages)
    fixed = languages.stated.get("fixed_dictionary")
    if name == PRETRAINED:
        task.check_languages(args)
        return task.with_dictionaries(args, dictionary_files(*languages.place, fixed))
    _check_direction(options, languages)
    _check_order(options, args)
    args.langtoks = {**(args.langtoks or {})}
    args.lang_dict = _language_file(args.lang_dict, languages.stated.get("lang_dict"), languages.data)
    if not (args.langs or args.lang_dict):
        args.langs = _trained_languages(options) or None
    args.lang_pairs = args.lang_pairs or [languages.pair]
    task.check_languages(args)
    source, target = dictionary_files(*languages.place, fixed)
    one = source == target  # then fairseq loads it once
    args.fixed_dictionary, args.source_dict, args.target_dict = (
        (str(source), None, None) if one else (None, str(source), str(target))
    )
    return task.setup_task(args)


def _translation(languages: Languages) -> Any:
    from fairseq_norm_plugin.hooks.tasks.translation import TranslationNormConfig, TranslationNormTask

    cfg = TranslationNormConfig(data=str(languages.data), source_lang=languages.source, target_lang=languages.target)
    task = TranslationNormTask
    source, target = (task.load_dictionary(str(file)) for file in dictionary_files(*languages.place))
    made = task(cfg, source, target)
    made.target_tag = source_tag(source, languages.stated.get("target_tag"), languages.target)
    return made


def _arguments(name: str, options: Any, languages: Languages) -> Namespace:
    """The options of the norm task: its defaults, the checkpoint's, and what is stated."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    TASK_REGISTRY[name].add_args(parser)
    args = parser.parse_args([str(languages.data)])
    known = set(vars(args))
    args.seed, args.task = 1, name
    trained = dict(options.items() if hasattr(options, "items") else vars(options))
    for option in known & set(trained):
        if not option.startswith(("norm_", "aer_")):
            setattr(args, option, trained[option])
    for option, value in languages.stated.items():
        if value is not None:
            setattr(args, option, value)
    if languages.stated.get("langs"):
        args.lang_dict = None
        if name.startswith(MULTILINGUAL):
            args.langs = str(args.langs).split(",")
    elif languages.stated.get("lang_dict"):
        args.langs = None
    args.data, args.source_lang, args.target_lang = str(languages.data), languages.source, languages.target
    return args


def _check_direction(options: Any, languages: Languages) -> None:
    pairs = trained_pairs(options)
    if pairs and languages.pair not in pairs and not languages.stated.get("lang_pairs"):
        some = ", ".join(pairs[:_SHOWN]) + (", …" if len(pairs) > _SHOWN else "")
        raise InputError(
            f"the model was not trained from {languages.source} to {languages.target} (its pairs: {some}); give one of "
            f"them with -s and -t, or --model-option lang_pairs={languages.pair} to use it in this direction all the "
            f"same"
        )


def _trained_languages(options: Any) -> list[str]:
    """The languages in the order of the training, as far as the checkpoint says; not if a file has them."""
    if named := getattr(options, "langs", None):
        return list(named)
    # without a list fairseq sorts those of the pairs; stated pairs would give the tags other embeddings
    pairs = [] if getattr(options, "lang_dict", None) else trained_pairs(options)
    return sorted({language for pair in pairs for language in pair.split("-")})


def _check_order(options: Any, args: Namespace) -> None:
    trained = _trained_languages(options)
    if args.langs and list(args.langs) != trained and sorted(args.langs) == sorted(trained):
        raise UsageError(
            f"langs={printable(','.join(args.langs), 80)}: the model was trained with these languages in another "
            f"order, {printable(','.join(trained), 80)}; omit langs, or give that order"
        )


def _language_file(named: str | None, stated: str | None, data: Path) -> str | None:
    """The list of languages: as stated, or the file next to the dictionaries that a checkpoint names by its path."""
    if named is None or stated is not None:
        return named
    beside = data / Path(named).name
    if not beside.is_file():
        raise InputError(
            f"{beside}: no such file, but the checkpoint was trained with {shown(named)}, and the order of the "
            f"languages decides their tags; give the list of the model's languages with --model-option lang_dict=FILE, "
            f"or langs=LANG,LANG,…"
        )
    return str(beside)
