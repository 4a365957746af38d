"""Profiles: how to align with a model, in a file beside its checkpoint, which ``norm-align calibrate`` writes.

The maps are chosen without gold: an AWI map and an AWO map, by their agreement.

In a decoder whose alignment has formed, a low layer finds the source word of the token that is its input (AWI), and an
upper layer the source word of the token that it predicts (AWO).  The two make different errors.  So two such maps that
draw the same links on unlabelled sentence pairs are both right, and their product is better than either.  Their links
are those after a lexical table of the same pairs has sharpened each map: it tells maps that can align from others.

Every AWI map is compared with every AWO map of a higher layer.  Which of some close pairs agrees most differs from text
to text.  Of those, the place in the model says which is better: alignment forms in one head of a low layer in AWI, and
in all of the top layer in AWO.  In a young model no two maps agree well, and logit attributions of the upper layers in
AWO are better.
docs/reproduction.md has the measurements.

A profile also keeps how the text of a model is made of raw text, as it is stated or found with the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

import msgspec
import numpy as np
from numpy.typing import NDArray

from alignment_eval.command_line import check_types, option
from alignment_eval.errors import InputError, UsageError, printable
from alignment_eval.extraction.extract import in_units, stacked_maps
from alignment_eval.extraction.lexical_table import count_lexical_table
from alignment_eval.extraction.method import DEFAULTS, ExtractionOptions, MapName, MapNames
from alignment_eval.files import Value
from alignment_eval.maps.sentence import SentenceMaps, words_of
from alignment_eval.maps.words import FORMED as FORMED_MAPS
from alignment_eval.maps.words import row_shares, two_way_shares
from alignment_eval.reading import Count, ForeignFile, content_hash, file_hash, read_once

#: How raw text is normalised before it is tokenised.
NORMALIZATIONS = ("none", "nfc", "moses")
#: What the words are that links count.
WORDS = ("tokens", "whitespace", "characters")


@dataclass(frozen=True)
class TextRecipe:
    """How raw text becomes the words that links count and the subwords that a model reads.

    What is None is not stated: it is as another recipe says (:meth:`over`), or as a default.
    """

    tokenizer: Optional[str] = option(
        "tokenizer of fairseq: moses, nltk, space; none: the text is tokenised", metavar="NAME"
    )
    lowercase: Optional[bool] = option("the model reads lower case", action="store_const", const=True)
    bpe: Optional[str] = option(
        "subwords of fairseq: subword-nmt, fastbpe, sentencepiece, tokenizers, …; none: the text is in subwords "
        "(default: by --bpe-codes)",
        metavar="NAME",
    )
    #: options of both that are no files, by fairseq's names
    options: dict[str, Union[bool, str]] = field(default_factory=dict)
    #: option -> its files, of both languages or of source and target; a profile has their names in its directory
    files: dict[str, list[str]] = field(default_factory=dict)
    normalize: Optional[str] = option(
        "clean the text first: nfc composes characters and drops invisible ones; moses makes punctuation plain, too",
        choices=NORMALIZATIONS,
    )
    languages: Optional[tuple[str, str]] = None  #: of source and target; None: not known
    hashes: dict[str, str] = field(default_factory=dict)  #: name of a file -> hash of its content, in a profile
    words: tuple[str, str] = option(
        "the words to link: tokens of the tokenizer (default), what whitespace separates, characters of a script "
        "without spaces, or those in a file; one for both texts, or two",
        ("tokens", "tokens"),
        nargs="+",
        metavar="WHAT",
    )
    mark: str = "auto"  #: the subword mark of text in subwords; as the words, not in a profile

    def __post_init__(self) -> None:
        check_types(self)

    @property
    def says_subwords(self) -> bool:
        """Whether it says what the subwords are."""
        return self.bpe is not None or "bpe_codes" in self.files

    @property
    def paths(self) -> list[str]:
        """All files that there are."""
        return [file for _, files in sorted(self.files.items()) for file in files if Path(file).is_file()]

    def over(self, other: TextRecipe) -> TextRecipe:
        """This recipe; what it does not state is as ``other`` has it."""
        stated = {name: value for name, value in vars(self).items() if value is not None}
        both = {name: {**getattr(other, name), **getattr(self, name)} for name in ("options", "files", "hashes")}
        return replace(other, **{**stated, **both})

    def exchanged(self, codes: Sequence[str] = ()) -> TextRecipe:
        """That of the other direction: source and target change places, and it may have ``codes`` of its own."""
        files = {name: files[::-1] for name, files in self.files.items()}
        return replace(self, files={**files, **({"bpe_codes": [*codes]} if codes else {})}, words=self.words[::-1])

    # ---- in a profile

    def check_names(self) -> TextRecipe:
        """Check that all files lie beside the profile; returns the recipe itself.

        Raises:
            ValueError: one does not.
        """
        # fairseq would read the file that an option names, or download it
        values = [(option, [value]) for option, value in self.options.items() if isinstance(value, str)]
        for what, names in (*values, *self.files.items(), ("languages", self.languages or ())):
            for name in names:
                if Path(name).name != name:
                    place = f"text_recipe: {printable(what, 80)}: {printable(name, 80)}"
                    raise ValueError(f"{place} is a path, outside of the directory of the profile")
        return self

    def missing_in(self, directory: Path, others: Mapping[Path, str]) -> dict[Path, str]:
        """The files that a profile in ``directory`` lacks, and ``others``, by their places, which no other file has."""
        missing = {**others}
        for file in (file for files in self.files.values() for file in files):
            place = directory / Path(file).name
            there = place if place.exists() else missing.setdefault(place, file)
            if file_hash(there) != file_hash(file):
                raise InputError(
                    f"{there}: is another file than {file}, which the profile would name alike; rename one, or write "
                    f"the profile (-o) in another directory"
                )
        return missing

    def kept(self, languages: tuple[str, str]) -> TextRecipe:
        """The recipe as a profile keeps it, whose files lie beside it."""
        return TextRecipe(
            tokenizer=None if self.tokenizer == "none" else self.tokenizer,
            lowercase=self.lowercase,
            bpe=self.bpe,
            options={name: {"true": True, "false": False}.get(str(v).lower(), v) for name, v in self.options.items()},
            files={option: [Path(file).name for file in files] for option, files in self.files.items()},
            normalize=None if self.normalize == "none" else self.normalize,
            languages=languages,
            hashes={Path(file).name: file_hash(file) for files in self.files.values() for file in files},
        ).check_names()

    def found_in(self, directory: Path) -> TextRecipe:
        """The recipe of a profile in ``directory``, with the paths of its files."""
        named = {key: names for key, names in self.files.items() if names}
        return replace(self, files={o: [str(directory / name) for name in names] for o, names in named.items()})

    def check_files(self, files: dict[str, list[str]], exist: bool) -> None:
        """Check that the ``files`` of a model's text are as when its profile, of which this is, was written.

        ``exist``: its own must be there.

        Raises:
            InputError: a file is missing, or another one.
        """
        for file in (file for named in self.files.values() for file in named if exist):
            if not Path(file).is_file():
                raise InputError(
                    f"{file}: no such file, but the profile names it; copy it there, or state tokenizer and subwords"
                )
        for key, named in self.files.items():
            used = files.get(key, [])
            for file, name in ((used[end], Path(named[end]).name) for end in (0, -1) if used and named):
                if self.hashes.get(name) not in (None, file_hash(file)):
                    raise InputError(
                        f"{file}: is not the {printable(name, 80)} that the model was calibrated with; give that file, "
                        f"or state this one and calibrate again"
                    )

    # ---- for readers

    def fields(self) -> dict[str, Value]:
        """What a signature says of the text."""
        options = {name: str(value) for name, value in sorted(self.options.items())}
        return {
            "tokenizer": self.tokenizer or "default",
            "normalize": self.normalize or "none",
            "lowercase": bool(self.lowercase),
            "bpe": self.bpe or "default",
            "codes": ",".join(map(file_hash, self.paths)) or None,
            "words": ",".join(self.words),
            "mark": self.mark,
            **({"text_options": json.dumps(options).replace("|", r"\u007c")} if options else {}),
        }

    @property
    def described(self) -> str:
        """The recipe in words."""
        normalised = "" if self.normalize in (None, "none") else f"normalisation {self.normalize}, "
        tokenizer = "no tokenizer" if self.tokenizer in (None, "none") else f"tokenizer {self.tokenizer}"
        case = ", lower case" if self.lowercase else ""
        subwords = f"subwords {self.bpe or ('by codes' if self.says_subwords else 'none')}"
        return f"{normalised}{tokenizer}{case}, {subwords}" + (f" ({', '.join(self.paths)})" if self.paths else "")


# ---- profiles

#: Two words are linked in the comparison of maps from this share on.
LINKED = 0.3
#: Two maps agree only if they share at least this many links a word above chance: near-uniform maps link next to no
#: words of long sentences,
FEWEST_SHARED = 0.15
#: and if at least this part of the shared links is off the diagonal: maps may follow the order of the words only.
OFF_DIAGONAL = 0.1
#: Pairs of maps that agree by so little less than the best are as good by agreement: their place in the model decides.
CLOSE = 0.03
#: The alignment of a model has formed from this agreement on: formed models have 0.66 or more, most others 0.4 or less;
#: a model of 250 updates had 0.69.
FORMED = 0.5
#: The kind of the upper layers of a model whose alignment has not formed: what a token adds to the predicted word.  In
#: products with an AWI map, norms are better.
UPPER_KIND = "attn_logit"

VERSION = 2
#: What is appended to a checkpoint's name.
SUFFIX = ".align.json"
#: The name of a profile that stands for none, not even the one beside the checkpoint.
NO_PROFILE = "none"

ChosenBy = Literal["agreement", "training", "upper-layers"]
_ADVICE = "calibrate the model again, or use no profile"
#: What a profile keeps of the extraction of its maps; rule and punctuation are defaults.
_OF_MAPS = ("kind", "heads", "combine", "setting")


@dataclass(frozen=True)
class TableFile:
    """The file of a lexical table that belongs to a profile."""

    name: str  #: the file, in the directory of the profile
    hash: str  #: of its content
    exchanged: bool = False  #: whether its source is the target of the profile's model


@dataclass(frozen=True)
class Profile:
    """How to align with a model."""

    model: str  #: hash of the model, as records carry it
    maps: ExtractionOptions  #: the maps that are read.  Their rule is not kept: see :meth:`extraction`.
    #: how the maps were chosen.  ``training``: the model was trained to align with them.  ``upper-layers``: no two maps
    #: agree, or the pairs are too few.
    chosen_by: ChosenBy
    #: the agreement (Dice) that was reached, a fraction; None if there was nothing to compare
    figure: Optional[Annotated[float, msgspec.Meta(ge=0, le=1)]]
    pairs: Count  #: how many sentence pairs it was chosen on
    text: str  #: hash of their words
    #: hash of the model of the other direction, if it was calibrated at the same time
    reverse_model: Optional[str] = None
    reverse_maps: Optional[ExtractionOptions] = None  #: the maps that are read of that model
    signature: str = ""  #: the signature of the choice
    text_recipe: Optional[TextRecipe] = None  #: how the model's text is made; None: not known
    #: the lexical table that was counted with this model or that of the other direction; None: none was
    table: Optional[TableFile] = None
    name: str = field(default="", compare=False)  #: where the profile is from, for a reader; not in the file
    #: whether it was made on the text that is to be aligned; not in the file
    of_text: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if (self.reverse_maps is None) != (self.reverse_model is None):
            raise ValueError("maps of the reverse model without its hash, or the other way round")
        if self.text_recipe is not None:
            self.text_recipe.check_names()

    @property
    def formed(self) -> bool:
        """Whether the alignment of the model has formed, so that chosen maps are read."""
        return self.chosen_by != "upper-layers"

    def extraction(
        self, join: str | None = None, rule: str | None = None, final_punctuation: bool | None = None
    ) -> ExtractionOptions:
        """The maps with a rule, by default that for one direction or for two that ``join`` makes one."""
        if rule is None:
            rule = DEFAULTS.rule_by(join)
        final = DEFAULTS.final_punctuation if final_punctuation is None else final_punctuation
        return replace(self.maps, rule=rule, null=None, final_punctuation=final)

    def with_reverse(self, other: Profile) -> Profile:
        """The same profile, which also knows the maps of the model of the other direction."""
        return replace(self, reverse_model=other.model, reverse_maps=other.maps)

    def of(self, model: str, reverse: bool = False) -> Profile:
        """This profile, if it is of the model with this hash.

        ``reverse``: that of the model of the other direction, as far as this one knows it.
        """
        if not reverse:
            if self.model != model:
                raise InputError(
                    f"{self.name}: is the profile of model {printable(self.model, 80)}, not of {model}; {_ADVICE}"
                )
            return self
        if self.reverse_maps is None:
            raise UsageError(
                f"{self.name}: is a profile of one direction, but two models are given: calibrate both together"
            )
        if self.reverse_model != model:
            other = printable(str(self.reverse_model), 80)
            raise InputError(
                f"{self.name}: was chosen for model {other} of the other direction, not {model}; {_ADVICE}"
            )
        return replace(self, model=model, maps=self.reverse_maps, reverse_model=None, reverse_maps=None, table=None)

    def fields(self) -> dict[str, Value]:
        """What the signature of links says of the profile that they were made by."""
        return {"profile": self.chosen_by, "profile_text": self.text}

    def to_dict(self) -> dict[str, Any]:
        """The profile as files hold it."""
        content = {"profile": VERSION, **asdict(self)}
        for name in ("maps", "reverse_maps"):
            if (maps := getattr(self, name)) is not None:
                content[name] = {part: str(getattr(maps, part)) for part in _OF_MAPS}
        del content["name"], content["of_text"]
        if self.text_recipe is not None:
            del content["text_recipe"]["words"], content["text_recipe"]["mark"]
            if not self.text_recipe.hashes:  # profiles had none once
                del content["text_recipe"]["hashes"]
        return content

    def to_json(self) -> str:
        """The content of a profile file."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)


def fit_profile(
    sentences: Sequence[SentenceMaps],
    layers: Sequence[int],
    model: str,
    guided: Sequence[MapName] = (),
    upper_kind: str = UPPER_KIND,
) -> Profile:
    """The profile of a model by its training to align, else by the agreement of its own maps.

    If the sentence pairs are too few to compare maps on, or no two maps agree well, it reads the mean of the
    ``upper_kind`` maps of the last two layers in AWO, which aligns best in a model whose AWI maps are still forming.

    ``sentences`` are different pairs with the maps of all ``layers``, ``model`` is the hash of the model; ``guided``
    are the maps that it was trained to align with, in AWI and in AWO.
    """
    enough = len(sentences) >= DEFAULTS.fewest_pairs
    agreeing, dice = (choose_by_agreement(sentences) if enough and not guided else None) or ((), None)
    chosen_by: ChosenBy = "upper-layers"
    maps = ExtractionOptions(upper_kind, MapNames(MapName(layer) for layer in sorted(layers)[-2:]), "mean", "awo")
    if guided:
        chosen_by, maps = "training", ExtractionOptions(DEFAULTS.kind, MapNames(guided), "product", "awo")
    elif dice is not None and dice >= FORMED:
        chosen_by, maps = "agreement", ExtractionOptions(DEFAULTS.kind, MapNames(agreeing), "product", "awo")
    rows = sorted((sentence.id, words_of(sentence)) for sentence in sentences) if enough else []
    text = content_hash(json.dumps([id_, *words]).encode() for id_, words in rows)
    return Profile(model, maps, chosen_by, dice, len(sentences), text if enough else "")


def choose_by_agreement(sentences: Iterable[SentenceMaps]) -> tuple[MapNames, float] | None:
    """The AWI map and the AWO map of a higher layer whose links agree most above chance, and by how much.

    Each map is sharpened by a lexical table of its own, of all pairs.  With c links in common, a and b in each map, and
    a b / n of them in common by chance in a sentence pair of n cells, the agreement is
    (2 Σ c − 2 Σ a b / n) / (Σ (a + b) − 2 Σ a b / n): the Dice coefficient, less what is chance in numerator and
    denominator, as Cohen's kappa has it for cells.  It counts only if the maps share enough links, not all of them in
    the order of the words: :data:`FEWEST_SHARED`, :data:`OFF_DIAGONAL`.

    Pairs of maps within :data:`CLOSE` of the best are compared by their place in the model: first the AWI map of the
    lowest layer, a head before its whole layer, then the AWO map of the highest layer, the whole layer before its
    heads; of pairs alike in all that, the one that agrees most, and of equal ones the one of lower heads.

    ``sentences`` have the maps of all layers of one model; those without maps do not count.  None: the model has one
    layer only, or no two maps agree by more than chance and position.
    """
    found = [sentence for sentence in sentences if sentence.ok]
    names = [MapName(layer, head) for layer in found[0].layers for head in (*range(found[0].heads), None)]
    layers = np.array([name.layer for name in names])
    # by the AWO map; of one layer, neighbouring rows share links, right or wrong
    awo, awi = np.nonzero(layers[:, None] > layers)
    linked = _links_by_map(found)
    sums: NDArray[np.float64] = sum((_in_common(of_pair, awo, awi) for of_pair in linked), np.zeros((5, len(awo))))
    common, sizes, shared, straight, words = sums
    counts = (common >= FEWEST_SHARED * words) & (shared - straight >= OFF_DIAGONAL * shared)
    dice = np.divide(2 * common, sizes, out=np.zeros_like(common), where=counts)
    if not dice.any():
        return None

    def order(pair: int) -> tuple[int, bool, int, bool, float]:
        one, other = names[awi[pair]], names[awo[pair]]
        return one.layer, one.head is None, -other.layer, other.head is not None, -dice[pair]

    best = min(np.flatnonzero(dice >= dice.max() - CLOSE).tolist(), key=order)
    maps = replace(names[awi[best]], setting="awi"), replace(names[awo[best]], setting="awo")
    return MapNames(maps), float(dice[best])


def _links_by_map(sentences: Sequence[SentenceMaps]) -> list[NDArray[np.bool_]]:
    """The links of each map of each sentence in AWO and in AWI, [2, maps, target words, source words].

    They are those of the map as a lexical table of all these sentences has sharpened it.
    """
    maps = []
    for sentence in sentences:
        stacked = stacked_maps(sentence, DEFAULTS.kind)
        both = [in_units(stacked, sentence, setting, "words") for setting in ("awo", "awi")]
        shares = row_shares(np.stack(both))[..., :-1].astype(np.float32)
        maps.append(shares.reshape(2, -1, *shares.shape[-2:]))
    words = [words_of(sentence) for sentence in sentences]
    linked = [np.zeros(of_sentence.shape, dtype=np.bool_) for of_sentence in maps]
    for place in np.ndindex(maps[0].shape[:2]):
        counted = [(own, each[place]) for own, each in zip(words, maps)]
        _, reweight = count_lexical_table(counted, FORMED_MAPS)
        for of_sentence, pair in zip(linked, counted):
            of_sentence[place] = two_way_shares(reweight(pair).cells) >= LINKED
    return linked


def _in_common(linked: NDArray[np.bool_], awo: NDArray[np.intp], awi: NDArray[np.intp]) -> NDArray[np.float64]:
    """What the links of the two maps of each pair have in common in a sentence, [5, pairs of maps].

    They are: how many links they share and how many they have in all, both above chance; how many they share, and how
    many of these are on the diagonal; and the mean number of words of both sides.
    """
    height, width = linked.shape[-2:]
    outputs, inputs = linked.reshape(*linked.shape[:2], -1).astype(np.float64)
    targets = np.arange(height)
    diagonal = targets * width + (2 * targets + 1) * width // (2 * height)
    first, second = outputs.sum(axis=1)[awo], inputs.sum(axis=1)[awi]
    chance = first * second / (height * width)
    shared = (outputs @ inputs.T)[awo, awi]
    straight = (outputs[:, diagonal] @ inputs[:, diagonal].T)[awo, awi]
    words = np.full(len(shared), (height + width) / 2)
    return np.stack([shared - chance, first + second - 2 * chance, shared, straight, words])


def profile_path(checkpoint: str | Path) -> Path:
    """Where the profile of a checkpoint is by default: beside it."""
    path = Path(checkpoint)
    return path.with_name(path.name + SUFFIX)


def reverse_profile_path(profile: str | Path) -> Path:
    """Where ``calibrate -o`` writes the profile of the model of the other direction: beside that of the first."""
    path = Path(profile)
    return path.with_name(f"{path.name.removesuffix('.json')}.reverse.json")


def find_profile(named: str | Path | None, beside: Path | None = None) -> Profile | None:
    """The profile of a file that is ``named``; without one that ``beside`` the checkpoint; None: there is none.

    ``named`` may be :data:`NO_PROFILE`.
    """
    if named is not None:
        return None if str(named) == NO_PROFILE else read_profile(named)
    return read_profile(beside) if beside is not None and beside.is_file() else None


@read_once
def read_profile(path: str | Path) -> Profile:
    """Read a profile file."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read as a profile ({error.strerror}): {_ADVICE}") from error
    profile = parse_profile(text, str(path))
    if profile.table is None:
        return profile
    if Path(profile.table.name).name != profile.table.name:
        raise InputError(
            f"{path}: the lexical table {printable(profile.table.name, 80)} is a path, no file beside it; {_ADVICE}"
        )
    beside = str(Path(path).absolute().parent / profile.table.name)
    return replace(profile, table=replace(profile.table, name=beside))


def parse_profile(text: bytes | str, name: str) -> Profile:
    """The profile that ``text`` holds; ``name`` says where it is from."""
    file = ForeignFile(name, "a profile", _ADVICE)
    content = file.decode(text, dict[str, Any], profile=VERSION)
    profile = file.convert({key: value for key, value in content.items() if key != "profile"}, Profile)
    if content != json.loads(profile.to_json()):
        raise file.error("keys are missing or unknown, or maps are not named as calibrate names them")
    return replace(profile, name=name)
