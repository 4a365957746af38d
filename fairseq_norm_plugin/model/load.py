"""Loads a translation model: its description, then its networks, and the model of the other direction.

Each part of the description is as it is stated, else as the model's profile says, else as its directory has it, else as
its checkpoint says.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from fairseq.utils import import_user_module

from alignment_eval.errors import InputError, UsageError, warn_user
from alignment_eval.extraction.method import MapName, MapNames
from alignment_eval.maps.words import SETTINGS
from alignment_eval.profiles.chosen import AlignmentOptions, unknown_option
from alignment_eval.profiles.profile import NO_PROFILE, TextRecipe, find_profile, reverse_profile_path
from fairseq_norm_plugin.capture.attention import swap_attention
from fairseq_norm_plugin.capture.layers import build_model
from fairseq_norm_plugin.checkpoints.files import (
    DEMO,
    NO_REVERSE,
    NO_SUBWORDS,
    Release,
    demo_checkpoints,
    find_files,
    is_of_transformers,
)
from fairseq_norm_plugin.checkpoints.identity import ParameterHash
from fairseq_norm_plugin.checkpoints.read import (
    TAGGED,
    Pair,
    fairseq_errors,
    languages_of,
    languages_warning,
    read_checkpoint_parts,
    task_name,
)
from fairseq_norm_plugin.environment import DTYPES, ignore_noise
from fairseq_norm_plugin.model.languages import LANGUAGE_OPTIONS, find_languages, setup_task, trained_pairs
from fairseq_norm_plugin.model.model import Model
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.text.recipe import decided_recipe, known_options, pipelines, stated_recipe
from fairseq_norm_plugin.text.tokens import Tags, Vocabulary, special_ids
from fairseq_norm_plugin.transformers.families import read_directory

_OF_ALIGNMENTS = frozenset(field.name for field in fields(AlignmentOptions))
#: One file, or two: of source and target.
Codes = str | Path | Sequence[str | Path]
_DICTIONARY = "give the dict.LANG.txt that the model was trained with, with lines TOKEN COUNT"
_CHECKPOINT = "give a checkpoint that fairseq-train saved, unchanged"


@dataclass(frozen=True)
class ModelSpec:
    """What is decided about the model of one direction."""

    release: Release  #: what lies at its path
    languages: Pair  #: source and target language
    task: Any  #: fairseq's task, with the dictionaries
    tags: Tags  #: what tells the model its languages
    text: TextRecipe  #: how text becomes words and subwords
    profile: Path  #: where its profile is, or is to be
    dtype: str  #: the type that it is computed in
    options: Mapping[str, str]  #: of languages, as stated (languages.LANGUAGE_OPTIONS)

    @cached_property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Those of source and target."""
        dictionaries = self.task.source_dictionary, self.task.target_dictionary
        source, target = (Vocabulary(d, self.text.mark, special_ids(d, self.tags.tokens)) for d in dictionaries)
        return source, target

    @property
    def exchanged(self) -> ModelSpec | None:
        """That of the other direction, by the same networks; None: they were not trained in it."""
        languages = self.languages[::-1]
        if "-".join(languages) not in trained_pairs(self.release.cfg.task):
            return None
        task = setup_task(self.release, languages, self.options)
        tags = Tags.of(task)
        profile = self.release.profile(tags.direction)
        return replace(self, languages=languages, task=task, tags=tags, text=self.text.exchanged(), profile=profile)


@dataclass(frozen=True)
class Stated:
    """What a caller states of a model."""

    languages: tuple[str | None, str | None]  #: source and target language
    options: Mapping[str, str]  #: of languages (languages.LANGUAGE_OPTIONS)
    text: TextRecipe  #: how text becomes words and subwords
    dtype: str  #: the type that it is computed in
    profile: str | Path | None  #: its profile; ``none``: it has none; None: the one beside the checkpoint

    @property
    def by_profile(self) -> bool:
        """Whether a profile says what is not stated."""
        return str(self.profile) != NO_PROFILE

    def exchanged(self, forward: ModelSpec, codes: Sequence[str]) -> Stated:
        """The same for the other direction of ``forward``, with ``codes`` of its own if there are any."""
        return Stated(
            (forward.languages[1], forward.languages[0]),
            {name: value for name, value in self.options.items() if name != "target_tag"},
            self.text.exchanged(codes),
            self.dtype,
            self._profile_of_reverse(),
        )

    def _profile_of_reverse(self) -> str | Path | None:
        """The one that ``calibrate -o`` wrote beside the stated one."""
        if not self.by_profile:
            return NO_PROFILE
        beside = None if self.profile is None else reverse_profile_path(self.profile)
        return beside if beside is not None and beside.is_file() else None

    def decide(self, release: Release, otherwise: TextRecipe | None = None) -> ModelSpec:
        """The description of the model of a release; ``otherwise`` says how its text is made if nothing else does.

        Raises:
            InputError: a file is missing or does not fit, or the model was not trained in this direction.
            UsageError: what is stated does not go together, or not with the model.
        """
        if "task" not in release.cfg:
            raise InputError(f"{release.name}: the options name no task; {_CHECKPOINT}")
        source, target = (own or known for own, known in zip(self.languages, release.languages))
        place, recipe = release.profile(None), None
        if not (source and target):
            recipe = self._recipe(place)
        profiled = None if recipe is None else recipe.languages
        languages = find_languages((source, target), profiled, release.data, release.cfg.task)
        with fairseq_errors(f"{release.data}: not the dictionaries of the model", _DICTIONARY):
            task = setup_task(release, languages, self.options)
            tags = Tags.of(task, self.options.get("target_tag"))
        if recipe is None or tags.direction is not None:
            place = release.profile(tags.direction)
            recipe = self._recipe(place)
        with fairseq_errors(f"{release.name}: cannot read its options of tokenizer and subwords", _CHECKPOINT):
            text = decided_recipe(self.text, recipe, release)
        text = text if otherwise is None or text.says_subwords else otherwise
        if recipe is not None:
            recipe.check_files(text.files, exist=not self.text.says_subwords)
        profile = Path(self.profile) if self.profile is not None and self.by_profile else place
        return ModelSpec(release, languages, task, tags, text, profile, self.dtype, self.options)

    def _recipe(self, beside: Path) -> TextRecipe | None:
        """The text recipe of the stated profile, else of the one ``beside`` the checkpoint."""
        for named in dict.fromkeys((self.profile, None)) if self.by_profile else ():
            profile = find_profile(named, beside)
            if profile is not None and profile.text_recipe is not None:
                return profile.text_recipe.found_in(Path(profile.name).parent)
        return None


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
    """Load a translation model to read maps and alignments from.

    Args:
        path: the checkpoint; several, for an ensemble, separated by colons; or a directory as it was released, with
            checkpoint, dictionaries and subwords, by fairseq or in the format of Transformers (docs/models.md); or
            ``demo``, the bundled models of German-English (English-German with ``source_lang`` ``en``), which need no
            ``reverse_path``.
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
        tokenizer: a tokenizer of fairseq, or ``none`` (docs/text.md).  By default, as for the next three, what the
            model's profile, its directory or the checkpoint says.
        lowercase: whether the model reads lower case.
        normalize: how sentences are normalised before: ``none``, ``nfc`` or ``moses``.
        bpe: subwords of fairseq; ``none``: sentences are given in subwords.
        words: what the words are that are linked, ``tokens``, ``whitespace`` or ``characters`` (docs/text.md).  One for
            both languages, or two, of source and target.
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
        UsageError: the model was trained in the other direction, nothing says what the subwords are, there are more
            than two files of codes, options of a reverse model without ``reverse_path``, or options of the text that do
            not go together.
    """
    given = {**options, **{name: value for name, value in locals().items() if name != "options"}}
    check_known(options)
    if user_dir is not None:
        try:
            import_user_module(Namespace(user_dir=str(user_dir)))
        except FileNotFoundError as error:
            raise InputError(f"{user_dir}: no such directory; give one with code, as fairseq's --user-dir") from error
    if dtype not in DTYPES:
        raise UsageError(f"dtype {dtype}: choose one of {', '.join(DTYPES)}")
    ignore_noise()
    if path == DEMO:
        path, demo_reverse = demo_checkpoints(source_lang, target_lang)
        reverse_path = reverse_path or demo_reverse
    if not isinstance(words, str) and len(words) != 2:
        raise UsageError(f"words {words!r}: expected one for both sides, or those of source and target")
    if reverse_path is None and reverse_bpe_codes is not None:
        raise UsageError("reverse_bpe_codes without reverse_path: give that checkpoint too")
    if profile not in (None, NO_PROFILE) and not Path(str(profile)).is_file():
        raise InputError(f"{profile}: no such profile; check the path")
    of_languages = {name: str(options.pop(name)) for name in LANGUAGE_OPTIONS if options.get(name) is not None}
    recipe = stated_recipe(
        tokenizer,
        bpe,
        {**options, "bpe_codes": _files(bpe_codes)},
        (words, words) if isinstance(words, str) else (words[0], words[1]),
        subword_mark,
        lowercase,
        normalize,
    )
    stated = Stated((source_lang, target_lang), of_languages, recipe, dtype, profile)
    forward = stated.decide(_release(path, data, stated.languages))
    if not forward.text.says_subwords:
        raise UsageError(f"{path}: nothing says how its text is cut into subwords: {NO_SUBWORDS}")
    own = reverse_path is None or str(reverse_path) == str(path)
    models = build([forward, *filter(None, [forward.exchanged if own else None])])
    if reverse_path is not None and str(reverse_path) != NO_REVERSE and len(models) == 1:
        other = stated.exchanged(forward, _files(reverse_bpe_codes))
        own_data = Path(reverse_path).is_dir() or any(Path(str(reverse_path).split(":")[0]).parent.glob("dict.*"))
        release = _release(reverse_path, None if own_data else forward.release.data, other.languages)
        models += build([other.decide(release, forward.text.exchanged())])
    _check_languages(models)
    defaults = {} if stated.by_profile else {"profile": NO_PROFILE}
    reverse = models[1] if len(models) > 1 else None
    return NormModel(models[0], reverse, forward.task, (load, (), given), defaults)


def check_known(options: Iterable[str]) -> None:
    """Check the names of further options of :func:`load`."""
    methods = (getattr(NormModel, name) for name in ("align", "translate", "transfer_markup"))
    of_methods = _OF_ALIGNMENTS.union(*(signature(method).parameters for method in methods))
    known = {*list(signature(load).parameters)[:-1], *LANGUAGE_OPTIONS, *known_options()}
    for name in options:
        if name in of_methods - known:
            raise UsageError(f"{name}: an option of the methods that align or translate, not of load")
        if name not in known:
            raise unknown_option("load", name, known)


def _release(path: str | Path, data: str | Path | None, languages: Sequence[str | None]) -> Release:
    """What lies at the path of a model, of fairseq or of Transformers, with the content of its first checkpoint.

    Raises:
        InputError: a file is missing, unsafe or damaged, or holds another model than can be read.
        UsageError: nothing says the languages of a model of Transformers.
    """
    if is_of_transformers(path):
        return read_directory(Path(path), languages)
    release = find_files(path, data)
    return replace(release, state=read_checkpoint_parts(release.members[0]))


def _files(codes: Codes | None) -> list[str]:
    """The files of BPE codes; none if there are no codes."""
    return [str(file) for file in ([codes] if isinstance(codes, (str, Path)) else codes or ())]


def build(specs: Sequence[ModelSpec]) -> list[Model]:
    """Build the models of one direction, or of two that the same networks were trained in."""
    networks: list[Any] = []
    configs, release = [], specs[0].release
    # a profile carries the hash of the parameters in float32, which nothing tells once they have 16 bits
    hashed = None if specs[0].dtype == "float32" else ParameterHash(torch.float32)
    for parts in release.members:
        state = read_checkpoint_parts(parts) if networks else release.state
        configs.append(state["cfg"])
        see = None if hashed is None else hashed.add
        networks.append(build_model(specs[0].task, state, parts[0], specs[0].dtype, see))
        swap_attention(networks[-1])
    trained, guided = configs[-1].task, guided_maps(configs)
    own = None if task_name(trained) in TAGGED else languages_of(trained)
    return [
        Model(
            networks,
            spec.vocabularies,
            pipelines(spec.text, spec.languages, spec.vocabularies),
            release.name,
            spec.tags.around,
            spec.languages,
            spec.text,
            spec.profile,
            trained=None if own == spec.languages else own,
            guided=guided,
            dtype=spec.dtype,
            parameters=None if hashed is None else hashed.whole,
        )
        for spec in specs
    ]


def _check_languages(models: Sequence[Model]) -> None:
    """Refuse models that were trained in the other direction; warn of those of other languages."""
    for model in models:
        if model.trained == model.languages[::-1]:
            (source, target), (stated_source, stated_target) = model.trained, model.languages
            both = "the two models, or " if len(models) > 1 else ""
            raise UsageError(
                f"{model.name}: was trained from {source} to {target}, but is to translate from {stated_source} to "
                f"{stated_target}, as -s and -t or the profile say: exchange {both}-s and -t (source_lang and "
                f"target_lang), or give the profile of this model"
            )
        if model.trained:
            warn_user(languages_warning(model.name, model.trained, model.languages))


def guided_maps(options: Iterable[Any]) -> tuple[MapName, ...]:
    """The maps that all members of an ensemble, with these ``options``, were trained to align with, and their settings.

    Empty if they have one setting only, since two maps of different settings that agree are better then.
    """
    of_members = set()
    for cfg in options:
        names: tuple[MapName, ...] = ()
        if stated := getattr(cfg.model, "guided_maps", None):
            with suppress(UsageError):  # text that is no name of maps is not of this plugin
                names = MapNames(str(stated))
        of_members.add(tuple(replace(name, setting=name.setting or "awi") for name in names))
    guided = of_members.pop()
    return guided if not of_members and {name.setting for name in guided} == set(SETTINGS) else ()
