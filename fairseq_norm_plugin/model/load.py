"""Loads a translation model: its files, its text, its parameters, and the model of the other direction."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from fairseq.utils import import_user_module

from alignment_eval.errors import InputError, UsageError, warn_user
from alignment_eval.extraction.method import MapName, parse_maps
from alignment_eval.maps.words import SETTINGS
from alignment_eval.profiles.chosen import AlignmentOptions, unknown_option
from alignment_eval.profiles.profile import NO_PROFILE, TextRecipe, find_profile
from fairseq_norm_plugin.capture.build import build_model
from fairseq_norm_plugin.capture.layers import DECODER_CROSS
from fairseq_norm_plugin.checkpoints.files import (
    DEMO,
    NO_REVERSE,
    NO_SUBWORDS,
    ModelFiles,
    demo_checkpoints,
    find_files,
    profile_file,
)
from fairseq_norm_plugin.checkpoints.identity import ParameterHash
from fairseq_norm_plugin.checkpoints.read import (
    fairseq_errors,
    languages_of,
    languages_warning,
    read_checkpoint_parts,
)
from fairseq_norm_plugin.checkpoints.stock import TAGGED, task_name
from fairseq_norm_plugin.environment import DTYPES, ignore_noise
from fairseq_norm_plugin.model.direction import Direction
from fairseq_norm_plugin.model.languages import (
    LANGUAGE_OPTIONS,
    Languages,
    find_languages,
    setup_task,
    trained_pairs,
)
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.text.settings import (
    OF_CODES,
    TextSettings,
    check_files,
    exchanged_options,
    names_of,
    options_of,
    pipelines,
    recipe_settings,
    text_settings,
)
from fairseq_norm_plugin.text.tags import Tags
from fairseq_norm_plugin.text.tokens import Vocabulary, special_ids
from fairseq_norm_plugin.transformers.families import read_release

logger = logging.getLogger(__name__)
_DICTIONARY = "give the dict.LANG.txt that the model was trained with, with lines TOKEN COUNT"
_CHECKPOINT = "give a checkpoint that fairseq-train saved, unchanged"
_OF_ALIGNMENTS = frozenset(field.name for field in fields(AlignmentOptions))
#: One file, or two: of source and target.
Codes = str | Path | Sequence[str | Path]


def load(
    path: str | Path,
    data: str | Path | None = None,
    source_lang: str | None = None,
    target_lang: str | None = None,
    bpe_codes: Codes | None = None,
    subword_mark: str = "auto",
    *,
    reverse_path: str | Path | None = None,
    reverse_bpe_codes: Codes | None = None,
    tokenizer: str | None = None,
    lowercase: bool | None = None,
    normalize: str | None = None,
    bpe: str | None = None,
    words: str | tuple[str, str] = "tokens",
    dtype: str = "float32",
    profile: str | Path | None = None,
    user_dir: str | Path | None = None,
    **options: Any,
) -> NormModel:
    """Load a fairseq checkpoint to read maps and alignments from.

    Args:
        path: the checkpoint; several, for an ensemble, separated by colons; or a directory as it was released, with
            checkpoint, dictionaries and subwords, by fairseq or in the format of Transformers (docs/models.md); or
            ``demo``, the bundled German-English model, which comes with its ``reverse_path``.
        data: the directory with ``dict.<lang>.txt`` of both languages; default: ``path``, or the directory of the
            checkpoint if it has dictionaries.
        source_lang: source language; by default detected from binarised data in ``data``, or from the names of the
            dictionaries and the checkpoint.
        target_lang: target language; detected, too, by default.
        bpe_codes: file of subword-nmt or fastBPE codes, or two files, of source and target; sentences are then given in
            words.
        subword_mark: ``@@``, ``▁``, ``##``, ``none``, or ``auto`` (detected from the dictionaries).
        reverse_path: a checkpoint of the other direction; alignments are then made by both models.  A multilingual
            model that was trained in both directions is its own, unless this is ``none``.  Its dictionaries are in
            its directory, or in ``data``.
        reverse_bpe_codes: its codes, one file, or two, of its source (``target_lang``) and target; default:
            ``bpe_codes``.
        tokenizer: a tokenizer of fairseq (``moses``, ``space``, ``nltk``) that sentences go through; ``none``:
            sentences are tokenised.  By default what the model's profile, its directory or the checkpoint says.
        lowercase: whether the model reads lower case; default: as its profile says, else as the sentences are.
        normalize: how sentences are normalised before: ``none``; ``nfc``, composed and without characters that are not
            printed; ``moses``, with plain punctuation, too.  Default: as its profile says.
        bpe: subwords: ``subword_nmt``, ``fastbpe``, ``sentencepiece``, ``tokenizers``, …; ``none``: sentences are
            given in subwords.  By default what the profile, the directory or the checkpoint says.
        words: what the words are that are linked: ``tokens`` of the tokenizer (with SentencePiece, which reads raw
            text, tokens of Moses; without a tokenizer, as ``whitespace``); what ``whitespace`` separates; or
            ``characters``, in scripts without spaces.  One for both languages, or two, of source and target.
        dtype: the type that the model is computed in: ``float32``, ``float16`` or ``bfloat16``.
        profile: the profile of the model of ``path``; default: the one beside the checkpoint; ``none``: neither maps,
            text recipe nor languages are by a profile.
        user_dir: a directory as fairseq's ``--user-dir``, that registers the architecture of the model; its code is
            run.
        **options: fairseq's options of ``tokenizer`` and ``bpe``, such as ``sentencepiece_model``,
            ``moses_no_escape``; and of multilingual tasks: ``langs``, ``lang_dict``, ``lang_pairs``,
            ``fixed_dictionary``, which override those of the checkpoint; and ``target_tag``, the tag that each source
            begins with, of Marian's models of several target languages (``fra`` for ``>>fra<<``; default: that of
            ``target_lang``; ``none``: no tag).

    Examples:
        >>> import fairseq_norm_plugin as fnp
        >>> model = fnp.load("demo")
        >>> model.languages
        ('de', 'en')

    Raises:
        InputError: a file is missing, the checkpoint is unsafe, the model is not an encoder-decoder Transformer, or it
            was not trained in this direction.
        UsageError: nothing says what the subwords are, there are more than two files of codes, options of a reverse
            model without ``reverse_path``, or options of the text that do not go together.
    """
    given = {**options, **{name: value for name, value in locals().items() if name != "options"}}
    check_known(options)
    if user_dir is not None:
        import_user_module(Namespace(user_dir=str(user_dir)))
    if dtype not in DTYPES:
        raise UsageError(f"dtype {dtype}: choose one of {', '.join(DTYPES)}")
    ignore_noise()
    if path == DEMO:
        path, demo_reverse = demo_checkpoints()
        reverse_path = reverse_path or demo_reverse
    if reverse_path is None and reverse_bpe_codes is not None:
        raise UsageError("reverse_bpe_codes without reverse_path: give that checkpoint too")
    if profile not in (None, NO_PROFILE) and not Path(str(profile)).is_file():
        raise InputError(f"{profile}: no such profile; check the path")
    multilingual = {name: str(options.pop(name)) for name in LANGUAGE_OPTIONS if options.get(name) is not None}
    of_text = {"tokenizer": tokenizer, "bpe": bpe, "lowercase": lowercase, "normalize": normalize}
    stated = _Stated(
        (source_lang, target_lang),
        {**options, **of_text, "bpe_codes": _files(bpe_codes)},
        (words, words) if isinstance(words, str) else words,
        subword_mark,
        multilingual,
        dtype,
        profile,
    )
    own = reverse_path is None or str(reverse_path) == str(path)
    model = _load_direction(find_files(path, data), stated, own_reverse=own)
    if not model.text.is_stated:
        raise UsageError(f"{path}: nothing says how its text is cut into subwords: {NO_SUBWORDS}")
    if reverse_path is not None and str(reverse_path) != NO_REVERSE and model.reverse is None:
        reverse = stated.exchanged(model, _files(reverse_bpe_codes))
        own_data = Path(reverse_path).is_dir() or any(Path(str(reverse_path).split(":")[0]).parent.glob("dict.*"))
        files = find_files(reverse_path, None if own_data else model.task.cfg.data)
        model.reverse = _load_direction(files, reverse, model.text.exchanged())
    _warn_of_languages(model)
    model.loaded_by = load, (), given
    return model


def check_known(options: Iterable[str]) -> None:
    """Check the names of further options of :func:`load`."""
    of_text = (each.name for kind in ("tokenizer", "bpe") for name in names_of(kind) for each in options_of(kind, name))
    known = {*list(signature(load).parameters)[:-1], *LANGUAGE_OPTIONS, *OF_CODES, *of_text}
    methods = {
        name: signature(getattr(NormModel, name)).parameters for name in ("align", "translate", "transfer_markup")
    }
    for name in options:
        if name not in known and (
            owners := [method for method in methods if name in {*methods[method], *_OF_ALIGNMENTS}]
        ):
            owner = f"{', '.join(owners[:-1])} and {owners[-1]}" if len(owners) > 1 else owners[0]
            raise UsageError(f"{name}: an option of {owner}, not of load")
        if name not in known:
            raise unknown_option("load", name, known)


@dataclass(frozen=True)
class _Stated:
    """What a caller states of a model: languages, text, words, mark, multilingual options, type, profile."""

    languages: tuple[str | None, str | None]
    text: Mapping[str, Any]
    words: tuple[str, str]
    mark: str
    multilingual: Mapping[str, str]
    dtype: str
    profile: str | Path | None

    @property
    def by_profile(self) -> bool:
        """Whether a profile says what is not stated."""
        return str(self.profile) != NO_PROFILE

    def recipe(self, beside: Path) -> tuple[TextRecipe | None, Path]:
        """The text recipe of the stated profile, or of the one ``beside`` the checkpoint; and its directory."""
        for named in dict.fromkeys((self.profile, None)) if self.by_profile else ():
            profile = find_profile(named, beside)
            if profile is not None and profile.text_recipe is not None:
                return profile.text_recipe, Path(profile.name).parent
        return None, beside.parent

    def exchanged(self, forward: NormModel, codes: Sequence[str]) -> _Stated:
        """The same for the other direction of ``forward``, with ``codes`` of its own if there are any."""
        return replace(
            self,
            languages=forward.languages[::-1],
            multilingual={name: value for name, value in self.multilingual.items() if name != "target_tag"},
            text=exchanged_options(self.text, codes),
            words=self.words[::-1],
            profile=None if self.by_profile else NO_PROFILE,
        )


def _files(codes: Codes | None) -> list[str]:
    """The files of BPE codes; none if there are no codes."""
    return [str(file) for file in ([codes] if isinstance(codes, (str, Path)) else codes or ())]


def _load_direction(
    files: ModelFiles, stated: _Stated, otherwise: TextSettings | None = None, own_reverse: bool = False
) -> NormModel:
    """The model of one direction; with ``own_reverse``, also of the other if it was trained in both.

    If nothing is stated or found of its subwords, they are as ``otherwise`` says.
    """
    if not files.foreign:
        return _direction(files, stated, read_checkpoint_parts(files.members[0]), files.data, otherwise, own_reverse)
    with TemporaryDirectory(prefix="dictionaries-") as place:
        release = read_release(files.data, Path(place), *stated.languages)
        files, stated = replace(files, subwords=release.subwords), replace(stated, languages=release.languages)
        return _direction(files, stated, release.state, Path(place), otherwise, own_reverse)


def _direction(
    files: ModelFiles,
    stated: _Stated,
    state: dict[str, Any],
    dictionaries: Path,
    otherwise: TextSettings | None,
    own_reverse: bool,
) -> NormModel:
    """The model of one direction, of the content of its checkpoint and the directory of its dictionaries."""
    cfg = state["cfg"]
    if "task" not in cfg:
        raise InputError(f"{files.name}: the options name no task; {_CHECKPOINT}")
    recipe = stated.recipe(profile_file(files.checkpoints, None))[0] if None in stated.languages else None
    pair = find_languages(stated.languages, None if recipe is None else recipe.languages, dictionaries, cfg.task)
    languages = Languages(*pair, dictionaries, stated.multilingual)
    with fairseq_errors(f"{files.data}: not the dictionaries of the model", _DICTIONARY):
        task = setup_task(cfg.task, languages)
        tags = Tags.of(task, stated.multilingual.get("target_tag"))
    beside = profile_file(files.checkpoints, tags.direction)
    with fairseq_errors(f"{files.name}: cannot read its options of tokenizer and subwords", _CHECKPOINT):
        subwords_stated = stated.text["bpe"] is not None or stated.text["bpe_codes"]
        recipe, place = stated.recipe(beside)
        profiled = None if recipe is None or subwords_stated else recipe_settings(recipe, place)
        settings, found = text_settings(stated.text, stated.words, stated.mark, files, cfg, profiled)
    settings = settings if otherwise is None or settings.is_stated else otherwise
    if recipe is not None:
        check_files(settings, recipe)
    if profiled is None and (files.found or found):
        logger.info("%s: dictionaries in %s, %s", files.name, files.data, settings.described)
    models, options = [], []
    # a profile carries the hash of the parameters in float32, which nothing tells once they have 16 bits
    hashed = None if stated.dtype == "float32" else ParameterHash(torch.float32)
    for parts in files.members:
        state = state or read_checkpoint_parts(parts)
        options.append(state["cfg"])
        models.append(
            build_model(task, state, parts[0], stated.dtype, None if hashed is None else hashed.add, DECODER_CROSS)
        )
        state = {}
    parameters = None if hashed is None else hashed.whole
    trained, guided = options[-1].task, guided_maps(options)

    def norm_model(
        task: Any,
        tags: Tags,
        languages: Languages,
        settings: TextSettings,
        profile: Path,
        others: tuple[str, str] | None = None,
    ) -> NormModel:
        dictionaries = task.source_dictionary, task.target_dictionary
        source, target = (Vocabulary(words, settings.mark, special_ids(words, tags.tokens)) for words in dictionaries)
        both = pipelines(settings, languages.pair, (source, target))
        direction = Direction(
            models,
            (source, target),
            both,
            files.name,
            tags.around,
            profile,
            others,
            guided,
            own_pair is not None,
        )
        made = NormModel(task, direction, settings, parameters, stated.dtype)
        made.defaults = {} if stated.by_profile else {"profile": NO_PROFILE}
        return made

    own_pair = None if task_name(trained) in TAGGED else languages_of(trained)
    others = None if own_pair == languages.pair else own_pair
    named = Path(stated.profile) if stated.profile is not None and stated.by_profile else beside
    model = norm_model(task, tags, languages, settings, named, others)
    if own_reverse and languages.exchanged.name in trained_pairs(cfg.task):
        task = setup_task(cfg.task, languages.exchanged)
        tags = Tags.of(task)
        beside = profile_file(files.checkpoints, tags.direction)
        model.reverse = norm_model(task, tags, languages.exchanged, settings.exchanged(), beside)
    return model


def _warn_of_languages(model: NormModel) -> None:
    """Warn of models of another direction."""
    other = [
        (each.direction.name, each.direction.trained, each.languages)
        for each in model.directions
        if each.direction.trained
    ]
    if len(other) == 2 and other[0][1] == other[1][1][::-1]:
        said = ", and ".join(f"{name} was trained from {of[0]} to {of[1]}" for name, of, _ in other)
        warn_user(f"{said}: the two models are exchanged; exchange their paths")
        return
    for name, trained, pair in other:
        warn_user(languages_warning(name, trained, pair))


def guided_maps(options: Iterable[Any]) -> tuple[MapName, ...]:
    """The maps that all members of an ensemble, with these ``options``, were trained to align with, and their settings.

    Empty if they have one setting only, since two maps of different settings that agree are better then.
    """
    of_members = set()
    for cfg in options:
        names: tuple[MapName, ...] = ()
        if stated := getattr(cfg.model, "guided_maps", None):
            with suppress(UsageError):  # text that is no name of maps is not of this plugin
                names = parse_maps(str(stated))
        of_members.add(tuple(replace(name, setting=name.setting or "awi") for name in names))
    guided = of_members.pop()
    return guided if not of_members and {name.setting for name in guided} == set(SETTINGS) else ()
