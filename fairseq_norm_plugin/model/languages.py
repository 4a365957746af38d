"""The languages of a model, and fairseq's task of a checkpoint's own task for one direction of them."""

from __future__ import annotations

import io
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary
from fairseq.data.multilingual.multilingual_data_manager import MultilingualDatasetManager
from fairseq.tasks import TASK_REGISTRY
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from alignment_eval.errors import InputError, UsageError, printable, shown
from alignment_eval.reading import read_once
from fairseq_norm_plugin.checkpoints.files import Release
from fairseq_norm_plugin.checkpoints.read import MULTILINGUAL, TAGGED, Pair, task_name
from fairseq_norm_plugin.text.tokens import check_languages
from fairseq_norm_plugin.transformers.files import dictionary_text

#: Options of multilingual tasks that may be stated, and override those of the checkpoint; and the tag of other models.
LANGUAGE_OPTIONS = ("langs", "lang_dict", "lang_pairs", "fixed_dictionary", "target_tag")


def find_languages(
    stated: tuple[str | None, str | None], profiled: tuple[str, str] | None, data: Path, options: Any
) -> tuple[str, str]:
    """Source and target language: as stated; else of the model's profile, if what is stated agrees with it.

    Else they are of binarised data in ``data``, or of the checkpoint if their dictionaries are there.
    """
    source, target = stated
    if source and target:
        return source, target
    if profiled and all(own in (None, other) for own, other in zip(stated, profiled)):
        return profiled
    try:
        detected = _detect_languages(data)
    except InputError:
        own = [getattr(options, name, None) for name in ("source_lang", "target_lang")]
        if not all(own):
            raise
        missing = [file for language in own if not (file := data / f"dict.{language}.txt").is_file()]
        if len(missing) == 1:
            raise InputError(
                f"{missing[0]}: no such file, but the model was trained from {own[0]} to {own[1]}; copy it"
            ) from None
        if missing:
            raise
        detected = str(own[0]), str(own[1])
    return source or detected[0], target or detected[1]


def _detect_languages(data: Path) -> tuple[str, str]:
    """The languages of the binarised data in a directory (``test.de-en.de.idx``); other names say nothing."""
    names = [path.name for path in data.iterdir()] if data.is_dir() else []
    matches = (re.fullmatch(r"[^.]+\.([^.-]+)-([^.-]+)\.(\1|\2)(\.(idx|bin))?", name) for name in names)
    pairs = sorted({(match[1], match[2]) for match in matches if match})
    if len(pairs) != 1:
        words = sorted(match[1] for name in names if (match := re.fullmatch(r"dict\.([^.]+)\.txt", name)))
        if not pairs and len(words) == 2:
            raise InputError(
                f"{data}: has dictionaries of {words[0]} and {words[1]}, but which is the source? give both: "
                f"-s {words[0]} -t {words[1]} or -s {words[1]} -t {words[0]} (source_lang and target_lang in Python)"
            )
        found = ", ".join("-".join(pair) for pair in pairs) or "no binarised data"
        raise InputError(f"{data}: found {found} to detect the languages from; give both (-s, -t)")
    return pairs[0]


def trained_pairs(options: Any) -> list[str]:
    """The language pairs that a multilingual model was trained on; none if its task is another."""
    pairs = getattr(options, "lang_pairs", None) if task_name(options) == MULTILINGUAL else None
    return pairs.split(",") if isinstance(pairs, str) else list(pairs or ())


def setup_task(release: Release, languages: Pair, stated: Mapping[str, str]) -> Any:
    """fairseq's task for a direction of a checkpoint; ``stated`` are some of :data:`LANGUAGE_OPTIONS`.

    Raises:
        InputError: a dictionary or a list of languages is missing, or the model was not trained in this direction.
        UsageError: what is stated does not suit the model.
    """
    name = task_name(release.cfg.task)
    if name not in TAGGED:
        cfg = TranslationConfig(data=str(release.data), source_lang=languages[0], target_lang=languages[1])
        read = partial(_dictionary, release, load=_read_dictionary)
        return TranslationTask(cfg, *map(read, release.dictionary_files(languages)))
    if (tag := stated.get("target_tag")) is not None:
        raise UsageError(f"target_tag={shown(tag)}: this model takes its languages from -s and -t; omit target_tag")
    task, args = TASK_REGISTRY[name], _arguments(name, release, languages, stated)
    if name == MULTILINGUAL:
        _check_trained(release.cfg.task, languages, stated, args)
        args.langtoks = {**(args.langtoks or {})}
        args.lang_dict = _language_file(args.lang_dict, stated.get("lang_dict"), release.data)
        if not (args.langs or args.lang_dict):
            args.langs = _trained_languages(release.cfg.task) or None
        args.lang_pairs = args.lang_pairs or ["-".join(languages)]
    check_languages(task, args)
    source, target = release.dictionary_files(languages, stated.get("fixed_dictionary"))
    if name == MULTILINGUAL:
        two = source != target  # else fairseq loads it once
        args.fixed_dictionary = None if two else source
        args.source_dict, args.target_dict = (source, target) if two else (None, None)
        made = task(args, *MultilingualDatasetManager.prepare(partial(_dictionary, release), args))
    else:
        made = task(args, *(_dictionary(release, file) for file in (source, target)))
    made.cfg = made.args = args  # as other tasks have it
    return made


_read_dictionary = read_once(TranslationTask.load_dictionary)


def _dictionary(release: Release, file: str, load: Callable[[str], Any] = TranslationTask.load_dictionary) -> Any:
    """A dictionary, of a file or of a model of Transformers; a task with tags adds them, so it needs a new one."""
    if file not in release.dictionaries:
        return load(file)
    return Dictionary.load(io.StringIO(dictionary_text(release.dictionaries[file]), newline=None))


def _arguments(name: str, release: Release, languages: Pair, stated: Mapping[str, str]) -> Namespace:
    """The options of a task: its defaults, the checkpoint's, and what is stated."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    TASK_REGISTRY[name].add_args(parser)
    args, options = parser.parse_args([str(release.data)]), release.cfg.task
    trained = dict(options.items() if hasattr(options, "items") else vars(options))
    vars(args).update({option: trained[option] for option in vars(args).keys() & trained}, **stated, seed=1, task=name)
    if stated.get("langs"):
        args.lang_dict = None
        if name == MULTILINGUAL:
            args.langs = stated["langs"].split(",")
    elif stated.get("lang_dict"):
        args.langs = None
    args.data, (args.source_lang, args.target_lang) = str(release.data), languages
    return args


def _check_trained(options: Any, languages: Pair, stated: Mapping[str, str], args: Namespace) -> None:
    """Check that a multilingual model was trained in a direction, with its languages in the order of ``args``."""
    pairs, name = trained_pairs(options), "-".join(languages)
    if pairs and name not in pairs and not stated.get("lang_pairs"):
        some = ", ".join(pairs[:5]) + (", …" if len(pairs) > 5 else "")
        raise InputError(
            f"the model was not trained from {languages[0]} to {languages[1]} (its pairs: {some}); give one of them "
            f"with -s and -t, or use it so by --model-option lang_pairs={name}"
        )
    trained = _trained_languages(options)
    if args.langs and list(args.langs) != trained and sorted(args.langs) == sorted(trained):
        raise UsageError(
            f"langs={printable(','.join(args.langs), 80)}: the model was trained with these languages in another "
            f"order, {printable(','.join(trained), 80)}: omit langs"
        )


def _trained_languages(options: Any) -> list[str]:
    """The languages in the order of the training, as far as the checkpoint says; not if a file has them."""
    if named := getattr(options, "langs", None):
        return list(named)
    # without a list fairseq sorts those of the pairs; stated pairs would give the tags other embeddings
    pairs = [] if getattr(options, "lang_dict", None) else trained_pairs(options)
    return sorted({language for pair in pairs for language in pair.split("-")})


def _language_file(named: str | None, stated: str | None, data: Path) -> str | None:
    """The list of languages: as stated, or the file next to the dictionaries that a checkpoint names by its path."""
    if named is None or stated is not None:
        return named
    beside = data / Path(named).name
    if not beside.is_file():
        raise InputError(
            f"{beside}: no such file, but the checkpoint was trained with {shown(named)}, whose order decides the tags "
            f"of languages; give --model-option lang_dict=FILE or langs=LANG,LANG,…"
        )
    return str(beside)
