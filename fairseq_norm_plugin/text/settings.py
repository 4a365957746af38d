"""How a model's text is made, tokenizer, case and subwords: as stated, and built from fairseq's own registries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from fairseq.data import encoders
from fairseq.data.encoders import register_bpe, register_tokenizer
from fairseq.data.encoders.moses_tokenizer import MosesTokenizer, MosesTokenizerConfig
from fairseq.dataclass import FairseqDataclass
from fairseq.registry import REGISTRIES
from omegaconf import OmegaConf

from alignment_eval.errors import InputError, UsageError, printable, shown, warn_user
from alignment_eval.profiles.profile import TextRecipe
from alignment_eval.reading import file_hash, read_once
from fairseq_norm_plugin.checkpoints.files import ModelFiles
from fairseq_norm_plugin.checkpoints.read import PATHS
from fairseq_norm_plugin.text.offsets import NORMALIZATIONS, WORDS
from fairseq_norm_plugin.text.subwords import (
    CODES,
    BpeSegmenter,
    LineSegmenter,
    MarkedSubwords,
    Segmenter,
    SentencePieceSegmenter,
    TokenizersSegmenter,
    WholeLineSegmenter,
    check_codes,
    read_vocabulary,
)
from fairseq_norm_plugin.text.tokenise import TextPipeline, Tokenizer
from fairseq_norm_plugin.text.tokens import Vocabulary

#: fairseq's marker of an option that must be given.
_REQUIRED = "???"
#: Options that may name two files, of source and target.
SIDED = ("bpe_codes", "bpe_vocabulary", "sentencepiece_model")
#: Subwords that are read as such rather than through fairseq's registry, the option of their file, and what reads it.
_WHOLE_LINES: Mapping[str, tuple[str, Callable[[str], WholeLineSegmenter]]] = {
    "sentencepiece": ("sentencepiece_model", read_once(SentencePieceSegmenter)),
    "tokenizers": ("tokenizer_json", read_once(TokenizersSegmenter)),
}
_read_codes = read_once(BpeSegmenter)
#: Options whose values are files.
FILES = PATHS["bpe"] | {"bpe_vocabulary"}
#: Options of subword-nmt that fairseq does not have.
OF_CODES = ("bpe_vocabulary", "bpe_vocabulary_threshold", "bpe_glossaries")
#: Moses' tokens as they stand in the text.
_WORDS_OF_MOSES = (("moses_no_dash_splits", "true"), ("moses_no_escape", "true"))
#: Options of fairseq's encoders that norm-align sets itself (languages) or that would draw subwords by chance.
_NOT_OFFERED = {"_name", "source_lang", "target_lang", "sentencepiece_enable_sampling", "sentencepiece_alpha"}


@register_tokenizer("moses_normalized", dataclass=MosesTokenizerConfig)
class NormalizedMosesTokenizer(MosesTokenizer):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's Moses tokenizer of text with normalised punctuation, as Transformers' FSMT reads it."""

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        from sacremoses import MosesPunctNormalizer  # the class before has imported it

        normalizer = MosesPunctNormalizer(
            cfg.source_lang, pre_replace_unicode_punct=True, post_remove_control_chars=True
        )
        self._normalize = normalizer.normalize

    def encode(self, x: str) -> str:
        """The tokens of a line, with spaces between."""
        tokens: str = super().encode(self._normalize(x))
        return tokens


_help = {"help": "the tokenizer.json of a model of Transformers"}
#: Made so, because fairseq reads the types at run time.
_Tokenizers = make_dataclass(
    "_Tokenizers", [("tokenizer_json", str, field(default=_REQUIRED, metadata=_help))], bases=(FairseqDataclass,)
)


@register_bpe("tokenizers", dataclass=_Tokenizers)
class TokenizersBpe:
    """The subwords of a model of Transformers, for fairseq's own commands."""

    def __init__(self, cfg: Any) -> None:
        self._segmenter = TokenizersSegmenter(cfg.tokenizer_json)

    def encode(self, x: str) -> str:
        """The subwords of a line, with spaces between."""
        return " ".join(self._segmenter.cut(x, x)[0])

    def decode(self, x: str) -> str:
        """The line."""
        return self._segmenter.joined(x.split())


@dataclass(frozen=True)
class TextSettings:
    """How text becomes subwords.

    Attributes:
        tokenizer: a name of fairseq's registry; None: none is stated, ``none``: the text is tokenised.
        bpe: a name of fairseq's registry, with ``-`` or ``_``; None: none is stated, ``none``: the text is in subwords.
        options: the stated options of both, by fairseq's names; those of :data:`SIDED` may be lists of two, for source
            and target.
        words: what the words of source and target are (offsets.WORDS).
        mark: the subword mark of text in subwords.
        lowercase: whether the model reads lower case.
        normalize: how raw text is normalised before, one of offsets.NORMALIZATIONS.
    """

    tokenizer: str | None = None
    bpe: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    words: tuple[str, str] = ("tokens", "tokens")
    mark: str = "auto"
    lowercase: bool = False
    normalize: str = "none"

    def __post_init__(self) -> None:
        for option, name in (("tokenizer", self.tokenizer), ("bpe", self.registered)):
            if name not in (None, "none", *names_of(option)):
                raise UsageError(f"--{option} {name}: choose one of none, {', '.join(names_of(option))}")
        if self.normalize not in NORMALIZATIONS:
            raise UsageError(f"--normalize {self.normalize}: choose one of {', '.join(NORMALIZATIONS)}")
        if self.normalize != "none" and (self.bpe == "none" or not self.is_stated):
            raise UsageError(f"--normalize {self.normalize} for text in subwords: leave it out, or state the subwords")
        for words in self.words:
            if words not in WORDS:
                raise UsageError(f"words {words}: choose one of {', '.join(WORDS)}")
        for name in (name for name, value in self.options.items() if value not in (None, [])):
            self._check_option(name)
        for name in PATHS["bpe"] & {option.name for option in options_of("bpe", str(self.registered))}:
            if not self.files_of(name):
                flag = "--bpe-codes CODES" if name == "bpe_codes" else f"--model-option {name}=FILE"
                raise UsageError(f"--bpe {self.registered} needs a file, and none is fetched: give {flag}")

    def _check_option(self, name: str) -> None:
        values, most = self.options[name], 2 if name in SIDED else 1
        if isinstance(values, list) and (len(values) > most or name not in SIDED):
            expected = "one for both languages, or two, of source and target" if name in SIDED else "one value"
            raise UsageError(f"{name} is given {len(values)} times: expected {expected}")
        if name in OF_CODES or (name == "bpe_codes" and self.bpe is None):
            if not self.codes:
                raise UsageError(f"{name} is an option of BPE codes: give --bpe-codes too")
            return
        owners = [
            f"--{registry} {owner}"
            for registry in ("tokenizer", "bpe")
            for owner in names_of(registry)
            if name in {known.name for known in options_of(registry, owner)}
        ]
        if not owners:
            raise UsageError(f"{name}: no tokenizer and no subwords of fairseq have this option")
        if not {f"--tokenizer {self.tokenizer}", f"--bpe {self.registered}"} & set(owners):
            raise UsageError(f"{name} is an option of {', '.join(owners)}: give that too")

    @property
    def registered(self) -> str | None:
        """The name of the subwords as fairseq spells it; codes without a name are named when they are read."""
        return None if self.bpe is None else self.bpe.replace("-", "_")

    def files_of(self, option: str) -> list[str]:
        """The files of an option: none, one of both languages, or two, of source and target."""
        named = self.options.get(option) or []
        return [str(name) for name in (named if isinstance(named, (list, tuple)) else [named])]

    @property
    def is_stated(self) -> bool:
        """Whether subwords are stated."""
        return self.bpe is not None or bool(self.codes)

    @property
    def codes(self) -> list[str]:
        """The files of BPE codes: none, one of joint codes, or two, of source and target."""
        return self.files_of("bpe_codes")

    def exchanged(self) -> TextSettings:
        """The settings of the other direction."""
        return replace(self, options=exchanged_options(self.options), words=self.words[::-1])

    @property
    def files(self) -> list[str]:
        """All files that the options name."""
        return [file for name in sorted(self.options) for file in self.files_of(name) if Path(file).is_file()]

    @property
    def described(self) -> str:
        """The settings in words, for the user."""
        normalised = "" if self.normalize == "none" else f"normalisation {self.normalize}, "
        tokenizer = "no tokenizer" if self.tokenizer in (None, "none") else f"tokenizer {self.tokenizer}"
        case = ", lower case" if self.lowercase else ""
        subwords = f"subwords {self.bpe or ('by codes' if self.codes else 'none')}"
        return f"{normalised}{tokenizer}{case}, {subwords}" + (f" ({', '.join(self.files)})" if self.files else "")


def exchanged_options(options: Mapping[str, Any], codes: Sequence[str] = ()) -> dict[str, Any]:
    """The options of the other direction: files of source and target change places, and it may have own ``codes``."""
    turned = {name: value[::-1] if isinstance(value, list) else value for name, value in options.items()}
    return {**turned, "bpe_codes": list(codes)} if codes else turned


def names_of(registry: str) -> list[str]:
    """The names in fairseq's registry ``tokenizer`` or ``bpe``."""
    return sorted(REGISTRIES[registry]["registry"])


def options_of(registry: str, name: str) -> list[Any]:
    """The options of a tokenizer or of subwords that can be stated: fields of fairseq's dataclass."""
    config = REGISTRIES[registry]["dataclass_registry"].get(name)
    return [] if config is None else [option for option in fields(config) if option.name not in _NOT_OFFERED]


def pipelines(
    settings: TextSettings, languages: Sequence[str], vocabularies: tuple[Vocabulary, Vocabulary]
) -> tuple[TextPipeline, TextPipeline]:
    """The pipelines of source and target."""
    source, target = (
        _pipeline(segmenter, *_tokenizers(settings, language, words), settings.lowercase, words)
        for segmenter, language, words in zip(_segmenters(settings, vocabularies), languages, settings.words)
    )
    return source, target


#: The models of both directions share those of their languages.
_pipeline = lru_cache(maxsize=8)(TextPipeline)


def _tokenizers(settings: TextSettings, language: str, words: str) -> tuple[Tokenizer | None, Tokenizer | None]:
    """The tokenizer of a model's text, and the one whose tokens are its words."""
    code = language.split("_")[0]  # de_DE: tokenizers know the language only
    how = settings.normalize
    if settings.tokenizer not in (None, "none"):
        stated = {name: str(value) for name, value in settings.options.items() if name not in SIDED}
        tokenizer = _tokenizer(str(settings.tokenizer), code, how, tuple(sorted(stated.items())))
        return tokenizer, tokenizer
    own = None if how == "none" else _tokenizer(None, code, how, ())
    if settings.registered in _WHOLE_LINES and words == "tokens" and settings.tokenizer is None:
        return own, _tokenizer("moses", code, how, _WORDS_OF_MOSES)  # the model reads raw text, whose words are Moses'
    return own, None


@lru_cache(maxsize=8)  # the models of both directions share those of their languages
def _tokenizer(name: str | None, language: str, normalize: str, options: tuple[tuple[str, str], ...]) -> Tokenizer:
    if name is None:
        return Tokenizer(None, str, normalize)
    built = _build("tokenizer", name, dict(options), source_lang=language, target_lang=language)
    return Tokenizer(built.encode, built.decode, normalize)


def _segmenters(settings: TextSettings, vocabularies: tuple[Vocabulary, Vocabulary]) -> list[Segmenter]:
    name, codes = settings.registered, settings.codes
    if name == "none" or (name is None and not codes):
        return [MarkedSubwords(vocabulary.mark) for vocabulary in vocabularies]
    if name in (None, *CODES):
        separator = str(settings.options.get("bpe_separator", "@@"))
        threshold = str(settings.options.get("bpe_vocabulary_threshold") or 0)
        if not threshold.isdecimal():
            raise UsageError(f"bpe_vocabulary_threshold={threshold}: expected a whole number")
        glossaries = str(settings.options.get("bpe_glossaries", ""))
        known = [read_vocabulary(file, int(threshold)) for file in settings.files_of("bpe_vocabulary")]
        built = [_read_codes(codes[end], separator, known[end] if known else None, glossaries) for end in (0, -1)]
        check_codes(dict(zip((codes[0], codes[-1]), built)), (words.dictionary for words in vocabularies))
        return [*built]
    if name in _WHOLE_LINES:
        option, segmenter_of = _WHOLE_LINES[name]
        models = settings.files_of(option)
        by_model = {file: segmenter_of(file) for file in models}
        subwords = [by_model[models[0]], by_model[models[-1]]]
        for segmenter, vocabulary in zip(subwords, vocabularies):
            segmenter.check(vocabulary.dictionary)
        return list(subwords)
    encoder = _build("bpe", str(name), settings.options)
    return [LineSegmenter(encoder.encode, encoder.decode, str(name))] * 2


def _build(registry: str, name: str, options: Mapping[str, Any], **more: str) -> Any:
    """Build a tokenizer or subwords of fairseq's registry."""
    known = {option.name for option in options_of(registry, name)}
    config = REGISTRIES[registry]["dataclass_registry"].get(name)
    # omegaconf reads text as the type of the option
    stated = {key: str(value) for key, value in options.items() if key in known and value is not None}
    stated.update((key, value) for key, value in more.items() if hasattr(config, key))
    for option in PATHS["bpe"] & stated.keys():
        if not Path(stated[option]).is_file():
            raise InputError(f"{stated[option]}: no such file, but --bpe {name} needs it as {option}; check the path")
    try:
        return getattr(encoders, f"build_{registry}")(OmegaConf.create({"_name": name, **stated}))
    except ImportError as error:
        raise InputError(f"--{registry} {name}: {error}") from error
    except Exception as error:  # tokenizers raises plain exceptions
        reason = printable(" ".join(str(error).split()), 200)
        raise InputError(f"--{registry} {name}: {reason}; check its options and the files that they name") from error


def text_settings(
    stated: Mapping[str, Any],
    words: tuple[str, str],
    mark: str,
    files: ModelFiles,
    cfg: Any,
    profiled: Mapping[str, Any] | None = None,
) -> tuple[TextSettings, bool]:
    """The settings for a model's text, and whether they were found rather than stated.

    What is ``stated`` (None: it is not) comes before what the profile says (``profiled``, of :func:`recipe_settings`),
    the files of a directory before the options ``cfg`` of the checkpoint.
    """
    given = {name: value for name, value in stated.items() if value not in (None, [])}
    if "bpe" in given or "bpe_codes" in given:
        needed = {option.name for option in options_of("bpe", str(given.get("bpe")).replace("-", "_"))}
        found = {name: value for name, value in files.subwords.items() if name in needed}
    else:
        found = dict(profiled or files.subwords) or _of_checkpoint("bpe", cfg, files)
        if found and "tokenizer" not in given and not profiled:
            found.update(_of_checkpoint("tokenizer", cfg, files))
        own = found.get("tokenizer")
        if own is not None and own != given.get("tokenizer", own):
            for option in options_of("tokenizer", own):
                found.pop(option.name, None)
    named = {**found, **given}
    tokenizer, bpe, lowercase, how = (named.pop(name, None) for name in ("tokenizer", "bpe", "lowercase", "normalize"))
    return TextSettings(tokenizer, bpe, named, words, mark, bool(lowercase), how or "none"), bool(found)


def recipe_settings(recipe: TextRecipe, directory: Path) -> dict[str, Any]:
    """The options of the recipe of a profile in ``directory``, as if they were stated."""
    files = {option: [str(directory / name) for name in names] for option, names in recipe.files.items()}
    for file in (file for named in files.values() for file in named):
        if not Path(file).is_file():
            raise InputError(
                f"{file}: no such file, but the profile names it; copy it there, or state tokenizer and subwords"
            )
    single = {option: named if len(named) > 1 or option in SIDED else named[0] for option, named in files.items()}
    return {
        "tokenizer": recipe.tokenizer,
        "bpe": recipe.bpe,
        "lowercase": recipe.lowercase,
        "normalize": recipe.normalize,
        **recipe.options,
        **single,
    }


def recipe_of(settings: TextSettings, directory: Path, languages: tuple[str, str]) -> TextRecipe:
    """The recipe of a model's text, for a profile in ``directory``; it warns of files that lie elsewhere."""
    options: dict[str, bool | str] = {}
    files: dict[str, list[str]] = {}
    hashes: dict[str, str] = {}
    for option, value in settings.options.items():
        if option not in FILES:
            options[option] = {"true": True, "false": False}.get(str(value).lower(), value)
            continue
        named = settings.files_of(option)
        for file in map(Path, named):
            if file.resolve().parent != directory.resolve():
                warn_user(
                    f"{file}: is not in {directory}, where the profile looks for it; copy it there, or state it in "
                    f"each call"
                )
        files[option] = [Path(file).name for file in named]
        hashes.update((Path(file).name, file_hash(file)) for file in named)
    tokenizer = None if settings.tokenizer == "none" else settings.tokenizer
    normalize = None if settings.normalize == "none" else settings.normalize
    return TextRecipe(tokenizer, settings.lowercase, settings.bpe, options, files, normalize, languages, hashes)


def check_files(settings: TextSettings, recipe: TextRecipe) -> None:
    """Check that a model's text is made with the same files as when its profile was written."""
    for option, names in recipe.files.items():
        files = settings.files_of(option)
        for file, name in ((files[end], names[end]) for end in (0, -1) if files and names):
            if recipe.hashes.get(name) not in (None, file_hash(file)):
                raise InputError(
                    f"{file}: is not the {printable(name, 80)} that the model was calibrated with; give that file, or "
                    f"state this one and calibrate again"
                )


def _of_checkpoint(registry: str, cfg: Any, files: ModelFiles) -> dict[str, Any]:
    """The tokenizer or the subwords that a checkpoint's options name, with files that exist."""
    section = cfg.get(registry) or {}
    section = {"_name": section} if isinstance(section, str) else section
    name = section.get("_name")
    if name not in names_of(registry):
        return {}
    found: dict[str, Any] = {registry: name}
    for option in options_of(registry, name):
        value = section.get(option.name)
        if value not in (None, _REQUIRED, option.default):
            found[option.name] = _beside(str(value), option.name, files) if option.name in PATHS["bpe"] else value
    return found


def _beside(named: str, option: str, files: ModelFiles) -> str:
    """The file next to the model, or next to its dictionaries, that a checkpoint names by the path of its training.

    A path of a checkpoint is never opened itself: it may be of any file of this machine.
    """
    places = [directory / Path(named).name for directory in (Path(files.members[0][0]).parent, files.data)]
    for place in places:
        if place.is_file():
            return str(place)
    raise InputError(
        f"{places[0]}: no such file, but the checkpoint was trained with {shown(named)}; copy it there, or give "
        f"--{option.replace('_', '-')} FILE, or --bpe none for text in subwords"
    )
