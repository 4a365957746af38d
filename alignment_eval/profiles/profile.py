"""Profiles: how to align with a model, in a file beside its checkpoint.

``norm-align calibrate`` writes one from raw text, ``align-eval select`` from records; each with a development gold or
without.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

import msgspec

from alignment_eval.errors import InputError, printable
from alignment_eval.extraction.defaults import (
    FEWEST_PAIRS,
    SHARE_ALONE,
    SHARE_GUIDED,
    both_directions,
    one_direction,
    product_of,
    single_rule,
    upper_layers,
    wants_word_table,
)
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions, MapName
from alignment_eval.files import ContentHash
from alignment_eval.maps.sentence import PairWords, SentenceMaps, words_of
from alignment_eval.profiles.search import Agreement, GoldChoice, choose_by_agreement
from alignment_eval.schema import Count, ForeignFile
from alignment_eval.signature import Value

VERSION = 1
#: What is appended to a checkpoint's name.
SUFFIX = ".align.json"

ChosenBy = Literal["agreement", "gold", "training", "upper-layers"]
_ADVICE = "run norm-align calibrate again, or pass --profile none"


@dataclass(frozen=True)
class TextRecipe:
    """How the text of a model is made of raw text.

    Attributes:
        tokenizer: fairseq's name of the tokenizer; None: the model reads the text as it is.
        lowercase: whether the text is lowercased.
        bpe: fairseq's name of the subwords, ``none`` for text that is in subwords; None: as the files say.
        options: options of both that are no files, by fairseq's names.
        files: option -> names of files in the directory of the profile: of both languages, or of source and target.
        normalize: how the text is normalised before; None: it is not.
    """

    tokenizer: Optional[str]
    lowercase: bool
    bpe: Optional[str]
    options: dict[str, Union[bool, str]]
    files: dict[str, list[str]]
    normalize: Optional[str] = None

    def __post_init__(self) -> None:
        for name in (name for names in self.files.values() for name in names):
            if Path(name).name != name:
                raise ValueError(f"file {printable(name, 80)} outside of the directory of the profile")
        for option, value in self.options.items():
            if isinstance(value, str) and Path(value).name != value:  # or fairseq would read it, or download it
                raise ValueError(f"option {printable(option, 80)} is a path, outside of the directory of the profile")


@dataclass(frozen=True)
class Profile:
    """How to align with a model.

    Attributes:
        model: hash of the model, as records carry it.
        alone: the method for this model and texts of enough pairs, with a word table of the text or without.
        streamed: the method for this model without a word table, for single pairs and while translating.
        reverse_model: hash of the model of the other direction that ``both`` was chosen for; None without.
        both: the method for the two models; None without.
        chosen_by: how the maps were chosen.  ``training``: the model was trained to align with them.  ``upper-layers``:
            no two maps agree, or the pairs are too few.
        figure: the agreement (Dice) or the AER that was reached, a fraction; None if there was nothing to compare.
        pairs: how many sentence pairs it was chosen on.
        text: hash of their words.
        gold: hash of the development gold; None without.
        sentences: hash of each sentence pair of the development gold; empty without.
        signature: the signature of the choice.
        text_recipe: how the model's text is made; None: not known.
    """

    model: str
    alone: AlignmentMethod
    streamed: AlignmentMethod
    chosen_by: ChosenBy
    figure: Optional[Annotated[float, msgspec.Meta(ge=0, le=1)]]
    pairs: Count
    text: str
    reverse_model: Optional[str] = None
    both: Optional[AlignmentMethod] = None
    gold: Optional[str] = None
    sentences: tuple[str, ...] = ()
    signature: str = ""
    text_recipe: Optional[TextRecipe] = None

    def __post_init__(self) -> None:
        if (self.both is None) != (self.reverse_model is None):
            raise ValueError("both directions without the reverse model")

    def method(self, pairs: int | None) -> AlignmentMethod:
        """The method of this model alone for a text of ``pairs`` sentence pairs; None: unknown, or pair by pair."""
        return self.alone if pairs is not None and pairs >= FEWEST_PAIRS else self.streamed

    def method_with(self, reverse: Profile, pairs: int | None) -> AlignmentMethod:
        """The method of two models: that chosen for the two, else the default for the maps of both."""
        if self.both is not None and self.reverse_model == reverse.model:
            few = pairs is None or pairs < FEWEST_PAIRS
            return replace(self.both, word_table_passes=0) if few else self.both
        maps = self.streamed.forward, reverse.streamed.forward
        return both_directions(*maps, wants_word_table(maps, pairs))

    def of_reverse(self, model: str, name: str) -> Profile:
        """The profile of the model of the other direction, as far as this one of two knows it."""
        if self.both is None or self.both.reverse is None or self.reverse_model != model:
            raise InputError(
                f"{name}: was chosen for model {printable(str(self.reverse_model), 80)} of the other direction, but "
                f"that at hand is {model}: expected a profile of these two; {_ADVICE}"
            )
        alone = streamed = AlignmentMethod(self.both.reverse)
        if self.both.both is not None and self.both.both.join == "product":  # whose rule is not that of one direction
            share = SHARE_GUIDED if self.chosen_by == "training" else SHARE_ALONE
            alone, streamed = by_default(self.both.reverse, share)
        return replace(self, model=model, alone=alone, streamed=streamed, reverse_model=None, both=None)

    def seen(self, pairs: Iterable[PairWords]) -> int:
        """How many sentence pairs, given by their words, are among those whose gold the profile was chosen by."""
        chosen_on = set(self.sentences)
        return sum(pair_hash(words) in chosen_on for words in pairs) if chosen_on else 0

    def fields(self) -> dict[str, Value]:
        """What the signature of links says of the profile that they were made by."""
        return {"profile": self.chosen_by, "profile_text": self.text, "profile_gold": self.gold}

    def to_dict(self) -> dict[str, Any]:
        """The profile as files hold it; msgspec reads it."""
        content = {**asdict(self), "alone": self.alone.to_dict(), "streamed": self.streamed.to_dict()}
        return {"profile": VERSION, **content, "both": None if self.both is None else self.both.to_dict()}

    def to_json(self) -> str:
        """The content of a profile file."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)


def choose_profile(
    sentences: Sequence[SentenceMaps], layers: Sequence[int], model: str, guided: Sequence[MapName] = ()
) -> Profile:
    """The profile of a model by its training to align, else by the agreement of its own maps.

    If the sentence pairs are too few to compare maps on, it reads the upper layers.

    ``sentences`` are different pairs with the maps of all layers; ``layers`` are all decoder layers; ``guided`` are the
    maps that the model was trained to align with.
    """
    if len(sentences) < FEWEST_PAIRS:
        return calibrated(None, layers, model, "", len(sentences), guided)
    agreement = None if guided else choose_by_agreement(sentences)
    text = text_hash((sentence.id, words_of(sentence)) for sentence in sentences)
    return calibrated(agreement, layers, model, text, len(sentences), guided)


def calibrated(
    agreement: Agreement | None,
    layers: Sequence[int],
    model: str,
    text: str,
    pairs: int,
    guided: Sequence[MapName] = (),
) -> Profile:
    """The profile of a model by its training to align, or by the agreement of its own maps.

    Args:
        agreement: the two maps that agree most; None where no two could be compared.
        layers: the numbers of all decoder layers.
        model: hash of the model.
        text: hash of the words of the ``pairs`` that were compared.
        pairs: their number.
        guided: the maps that the model was trained to align with, in AWI and in AWO; empty if it was not.
    """
    chosen_by: ChosenBy = "upper-layers"
    maps = upper_layers(layers)
    if guided:
        chosen_by, maps = "training", product_of(guided)
    elif agreement is not None and agreement.formed:
        chosen_by, maps = "agreement", product_of(agreement.maps)
    alone, streamed = by_default(maps, SHARE_GUIDED if guided else SHARE_ALONE)
    return Profile(
        model,
        alone=alone,
        streamed=streamed,
        chosen_by=chosen_by,
        figure=None if agreement is None else agreement.dice,
        pairs=pairs,
        text=text,
    )


def calibrated_by_gold(choice: GoldChoice, model: str, gold: str, share: float = SHARE_ALONE) -> Profile:
    """The profile of a model by its maps of the lowest AER on a development gold; ``share`` is its default share."""
    alone = streamed = AlignmentMethod(choice.maps)
    if choice.maps.rule == single_rule(share):
        alone, streamed = by_default(choice.maps, share)
    return Profile(
        model,
        alone=alone,
        streamed=streamed,
        chosen_by="gold",
        figure=choice.aer,
        pairs=len(choice.words) + len(choice.skipped),
        text=text_hash(choice.words.items()),
        gold=gold,
        sentences=tuple(sorted(map(pair_hash, choice.words.values()))),
    )


def by_default(maps: ExtractionOptions, share: float = SHARE_ALONE) -> tuple[AlignmentMethod, AlignmentMethod]:
    """The default methods for one model's maps: for texts of enough pairs, and for single pairs."""
    return one_direction(maps, wants_word_table([maps], FEWEST_PAIRS), share), one_direction(maps, False, share)


def together(forward: Profile, reverse: Profile) -> Profile:
    """The profile of a model with the method for it and the model of the other direction."""
    maps = forward.streamed.forward, reverse.streamed.forward
    both = both_directions(*maps, wants_word_table(maps, FEWEST_PAIRS))
    return replace(forward, reverse_model=reverse.model, both=both)


def pair_hash(words: PairWords) -> str:
    """Hash of the words of one sentence pair."""
    content = ContentHash()
    content.update(json.dumps(words).encode())
    return content.short


def text_hash(words: Iterable[tuple[int, PairWords]]) -> str:
    """Hash of the words of sentence pairs, given with their ids, in whatever order and however cut into subwords."""
    content = ContentHash()
    for id_, sides in sorted(words):
        content.update(json.dumps([id_, *sides]).encode())
    return content.short


def profile_path(checkpoint: str | Path) -> Path:
    """Where the profile of a checkpoint is by default: beside it."""
    path = Path(checkpoint)
    return path.with_name(path.name + SUFFIX)


def read_profile(path: str | Path, model: str | None = None) -> Profile:
    """Read a profile file.

    If ``model`` is given, it is the hash of the model that the profile is to be used with.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read as a profile ({error.strerror}): {_ADVICE}") from error
    profile = parse_profile(text, str(path))
    if model is not None and profile.model != model:
        raise InputError(
            f"{path}: is the profile of model {printable(profile.model, 80)}, but the model at hand is {model}: "
            f"expected a profile of this model; {_ADVICE}"
        )
    return profile


def parse_profile(text: bytes | str, name: str) -> Profile:
    """The profile that ``text`` holds; ``name`` is for messages."""
    file = ForeignFile(name, "a profile", _ADVICE)
    content = file.decode(text, dict[str, Any], profile=VERSION)
    if content.get("profile") != VERSION:
        raise file.error("no version of the format (profile)")
    profile = file.convert({key: value for key, value in content.items() if key != "profile"}, Profile)
    content = {"text_recipe": None, **content}  # older profiles do not have it, or its normalize
    if isinstance(content["text_recipe"], dict):
        content["text_recipe"] = {"normalize": None, **content["text_recipe"]}
    if not _same_keys(content, profile.to_dict()):
        raise file.error("keys are missing or unknown")
    return profile


def _same_keys(content: Any, expected: Any) -> bool:
    """Whether objects in JSON have the same keys, those inside them too."""
    if not (isinstance(content, dict) and isinstance(expected, dict)):
        return not isinstance(expected, dict)
    return content.keys() == expected.keys() and all(_same_keys(content[key], expected[key]) for key in expected)
