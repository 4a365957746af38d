"""How a model's text is made: decided by what is stated and found, and built from fairseq's own registries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, make_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from fairseq.data import encoders
from fairseq.data.encoders import register_bpe, register_tokenizer
from fairseq.data.encoders.moses_tokenizer import MosesTokenizer, MosesTokenizerConfig
from fairseq.dataclass import FairseqDataclass
from fairseq.registry import REGISTRIES
from omegaconf import OmegaConf

from alignment_eval.errors import InputError, UsageError, printable, shown
from alignment_eval.profiles.profile import NORMALIZATIONS, WORDS, TextRecipe
from alignment_eval.reading import read_once
from fairseq_norm_plugin.checkpoints.files import Release
from fairseq_norm_plugin.checkpoints.read import PATHS
from fairseq_norm_plugin.text.offsets import Tokenizer
from fairseq_norm_plugin.text.pair import TextPipeline
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
from fairseq_norm_plugin.text.tokens import Vocabulary

logger = logging.getLogger(__name__)
#: fairseq's registries of tokenizers and of subwords.
_KINDS = ("tokenizer", "bpe")
#: fairseq's marker of an option that must be given.
_REQUIRED = "???"
#: Options that may name two files, of source and target.
_SIDED = ("bpe_codes", "bpe_vocabulary", "sentencepiece_model")
#: Subwords that are read as such rather than through fairseq's registry, the option of their file, and what reads it.
_WHOLE_LINES: Mapping[str, tuple[str, Callable[[str], WholeLineSegmenter]]] = {
    "sentencepiece": ("sentencepiece_model", read_once(SentencePieceSegmenter)),
    "tokenizers": ("tokenizer_json", read_once(TokenizersSegmenter)),
}
_read_codes = read_once(BpeSegmenter)
#: Options whose values are files.
_FILES = PATHS["bpe"] | {"bpe_vocabulary"}
#: Options of subword-nmt that fairseq does not have.
_OF_CODES = ("bpe_vocabulary", "bpe_vocabulary_threshold", "bpe_glossaries")
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


def stated_recipe(
    tokenizer: str | None = None,
    bpe: str | None = None,
    options: Mapping[str, Any] | None = None,
    words: tuple[str, str] = ("tokens", "tokens"),
    mark: str = "auto",
    lowercase: bool | None = None,
    normalize: str | None = None,
) -> TextRecipe:
    """The recipe that options state by fairseq's names; those that name files may be lists of two."""
    given = {name: value for name, value in (options or {}).items() if value not in (None, [], ())}
    named = {name: value if isinstance(value, (list, tuple)) else [value] for name, value in given.items()}
    return TextRecipe(
        tokenizer,
        lowercase,
        bpe,
        {name: value for name, value in given.items() if name not in _FILES},
        {name: list(map(str, files)) for name, files in named.items() if name in _FILES},
        normalize,
        words=words,
        mark=mark,
    )


def decided_recipe(stated: TextRecipe, profiled: TextRecipe | None, release: Release) -> TextRecipe:
    """The recipe of a model's text, of what is stated, else of its profile, else of its directory and its checkpoint.

    Subwords come from one of them.  A stated option (``none``: it is not) comes before what the others say of it.

    Raises:
        UsageError: options do not go together.
        InputError: a file that the profile or the checkpoint names is missing.
    """
    found = TextRecipe()
    if stated.says_subwords:
        needed = offered("bpe").get(str(_registered(stated)), {})
        found = TextRecipe(files={name: files for name, files in release.text.files.items() if name in needed})
    elif profiled is not None:
        found = profiled
    else:
        found = release.text if release.text != found else _of_checkpoint("bpe", release)
        if found != TextRecipe() and stated.tokenizer is None:
            found = _of_checkpoint("tokenizer", release).over(found)
    if found.tokenizer is not None and stated.tokenizer not in (None, found.tokenizer):
        others = offered("tokenizer").get(found.tokenizer, {})
        found = replace(found, options={name: value for name, value in found.options.items() if name not in others})
    recipe = stated.over(found)
    recipe = replace(recipe, lowercase=bool(recipe.lowercase), normalize=recipe.normalize or "none")
    check_recipe(recipe)
    if (profiled is None or stated.says_subwords) and (release.found or found != TextRecipe()):
        logger.info("%s: dictionaries in %s, %s", release.name, release.data, recipe.described)
    return recipe


def check_recipe(recipe: TextRecipe) -> None:
    """Check that what a recipe states is known, and goes together.

    Raises:
        UsageError: it does not.
    """
    bpe, known = _registered(recipe), {kind: offered(kind) for kind in _KINDS}
    chosen = {"tokenizer": recipe.tokenizer, "bpe": bpe}
    for kind, name in chosen.items():
        if name not in (None, "none", *known[kind]):
            raise UsageError(f"--{kind} {name}: choose one of none, {', '.join(known[kind])}")
    if (how := recipe.normalize or "none") not in NORMALIZATIONS:
        raise UsageError(f"--normalize {how}: choose one of {', '.join(NORMALIZATIONS)}")
    if how != "none" and (recipe.bpe == "none" or not recipe.says_subwords):
        raise UsageError(f"--normalize {how} for text in subwords: leave it out, or state the subwords")
    for words in recipe.words:
        if words not in WORDS:
            raise UsageError(f"words {words}: choose one of {', '.join(WORDS)}")
    for name, values in {**recipe.options, **recipe.files}.items():
        if isinstance(values, list) and len(values) > (most := 2 if name in _SIDED else 1):
            expected = "one for both languages, or two, of source and target" if most > 1 else "one value"
            raise UsageError(f"{name} is given {len(values)} times: expected {expected}")
        if name in _OF_CODES or (name == "bpe_codes" and bpe is None):
            if "bpe_codes" not in recipe.files:
                raise UsageError(f"{name} is an option of BPE codes: give --bpe-codes too")
            continue
        owners = [(kind, own) for kind in _KINDS for own, options in known[kind].items() if name in options]
        if not owners:
            raise UsageError(f"{name}: no tokenizer and no subwords of fairseq have this option")
        if not {*owners} & {*chosen.items()}:
            raise UsageError(
                f"{name} is an option of {', '.join(map('--{0[0]} {0[1]}'.format, owners))}: give that too"
            )
    for name in sorted(PATHS["bpe"] & known["bpe"].get(str(bpe), {}).keys() - recipe.files.keys()):
        flag = "--bpe-codes CODES" if name == "bpe_codes" else f"--model-option {name}=FILE"
        raise UsageError(f"--bpe {bpe} needs a file, and none is fetched: give {flag}")


def _registered(recipe: TextRecipe) -> str | None:
    """The name of the subwords as fairseq spells it; codes without a name are named when they are read."""
    return None if recipe.bpe is None else recipe.bpe.replace("-", "_")


def _of_checkpoint(registry: str, release: Release) -> TextRecipe:
    """The tokenizer or the subwords that a checkpoint's options name, with files that exist."""
    section = release.cfg.get(registry) or {}
    section = {"_name": section} if isinstance(section, str) else section
    name = section.get("_name")
    if name not in (known := offered(registry)):
        return TextRecipe()
    stated = {key: (section.get(key), option.default) for key, option in known[name].items()}
    own = {key: value for key, (value, default) in stated.items() if value not in (None, _REQUIRED, default)}
    files = {key: [_beside(str(value), key, release)] for key, value in own.items() if key in PATHS["bpe"]}
    options = {key: value for key, value in own.items() if key not in files}
    return replace(TextRecipe(options=options, files=files), **{registry: name})


def _beside(named: str, option: str, release: Release) -> str:
    """The file next to the model, or next to its dictionaries, that a checkpoint names by the path of its training.

    A path of a checkpoint is never opened itself: it may be of any file of this machine.
    """
    places = [directory / Path(named).name for directory in (Path(release.checkpoints[0]).parent, release.data)]
    for place in places:
        if place.is_file():
            return str(place)
    raise InputError(
        f"{places[0]}: no such file, but the checkpoint was trained with {shown(named)}; copy it there, or give "
        f"--{option.replace('_', '-')} FILE, or --bpe none for text in subwords"
    )


def offered(kind: str) -> dict[str, dict[str, Any]]:
    """The tokenizers (``kind`` tokenizer) or subwords (bpe) of fairseq, and the options of each that can be stated.

    Options are fields of fairseq's dataclasses, by name.
    """
    configs = REGISTRIES[kind]["dataclass_registry"]
    return {
        name: {
            field.name: field for field in fields(configs.get(name, FairseqDataclass)) if field.name not in _NOT_OFFERED
        }
        for name in sorted(REGISTRIES[kind]["registry"])
    }


def known_options() -> set[str]:
    """The names of all options of tokenizers and subwords."""
    return {*_OF_CODES, *(name for kind in _KINDS for options in offered(kind).values() for name in options)}


def pipelines(
    recipe: TextRecipe, languages: Sequence[str], vocabularies: tuple[Vocabulary, Vocabulary]
) -> tuple[TextPipeline, TextPipeline]:
    """The pipelines of source and target."""
    source, target = (
        _pipeline(segmenter, *_tokenizers(recipe, language, words), bool(recipe.lowercase), words)
        for segmenter, language, words in zip(_segmenters(recipe, vocabularies), languages, recipe.words)
    )
    return source, target


#: The models of both directions share those of their languages.
_pipeline = lru_cache(maxsize=8)(TextPipeline)


def _tokenizers(recipe: TextRecipe, language: str, words: str) -> tuple[Tokenizer | None, Tokenizer | None]:
    """The tokenizer of a model's text, and the one whose tokens are its words."""
    code = language.split("_")[0]  # de_DE: tokenizers know the language only
    how = recipe.normalize or "none"
    if recipe.tokenizer not in (None, "none"):
        stated = sorted((name, str(value)) for name, value in recipe.options.items())
        tokenizer = _tokenizer(str(recipe.tokenizer), code, how, tuple(stated))
        return tokenizer, tokenizer
    own = None if how == "none" else _tokenizer(None, code, how, ())
    if _registered(recipe) in _WHOLE_LINES and words == "tokens" and recipe.tokenizer is None:
        return own, _tokenizer("moses", code, how, _WORDS_OF_MOSES)  # the model reads raw text, whose words are Moses'
    return own, None


@lru_cache(maxsize=8)  # the models of both directions share those of their languages
def _tokenizer(name: str | None, language: str, normalize: str, options: tuple[tuple[str, str], ...]) -> Tokenizer:
    if name is None:
        return Tokenizer(None, str, normalize)
    built = build_encoder("tokenizer", name, dict(options), source_lang=language, target_lang=language)
    return Tokenizer(built.encode, built.decode, normalize)


def _segmenters(recipe: TextRecipe, vocabularies: tuple[Vocabulary, Vocabulary]) -> list[Segmenter]:
    name, codes = _registered(recipe), recipe.files.get("bpe_codes", [])
    if name == "none" or (name is None and not codes):
        return [MarkedSubwords(vocabulary.mark) for vocabulary in vocabularies]
    if name in (None, *CODES):
        separator = str(recipe.options.get("bpe_separator", "@@"))
        threshold = str(recipe.options.get("bpe_vocabulary_threshold") or 0)
        if not threshold.isdecimal():
            raise UsageError(f"bpe_vocabulary_threshold={threshold}: expected a whole number")
        glossaries = str(recipe.options.get("bpe_glossaries", ""))
        known = [read_vocabulary(file, int(threshold)) for file in recipe.files.get("bpe_vocabulary", [])]
        built = [_read_codes(codes[end], separator, known[end] if known else None, glossaries) for end in (0, -1)]
        check_codes(dict(zip((codes[0], codes[-1]), built)), (words.dictionary for words in vocabularies))
        return [*built]
    if name in _WHOLE_LINES:
        option, segmenter_of = _WHOLE_LINES[name]
        models = recipe.files[option]
        by_model = {file: segmenter_of(file) for file in models}
        subwords = [by_model[models[0]], by_model[models[-1]]]
        for segmenter, vocabulary in zip(subwords, vocabularies):
            segmenter.check(vocabulary.dictionary)
        return list(subwords)
    files = {option: files[0] for option, files in recipe.files.items()}
    encoder = build_encoder("bpe", str(name), {**recipe.options, **files})
    return [LineSegmenter(encoder.encode, encoder.decode, str(name))] * 2


def build_encoder(registry: str, name: str, options: Mapping[str, Any], **more: str) -> Any:
    """Build a tokenizer or subwords of fairseq's registry."""
    known = offered(registry)[name]
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
