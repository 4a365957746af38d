"""The description of a model of one direction, decided before anything is built.

Each part is as it is stated, else as the model's profile says, else as its directory has it, else as its checkpoint
says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError
from alignment_eval.profiles.profile import NO_PROFILE, TextRecipe, find_profile
from fairseq_norm_plugin.checkpoints.files import Release
from fairseq_norm_plugin.checkpoints.read import Pair, fairseq_errors
from fairseq_norm_plugin.model.languages import find_languages, setup_task, trained_pairs
from fairseq_norm_plugin.text.recipe import decided_recipe
from fairseq_norm_plugin.text.tags import Tags
from fairseq_norm_plugin.text.tokens import Vocabulary, special_ids

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
            None if self.by_profile else NO_PROFILE,
        )

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
