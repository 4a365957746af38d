"""How a model's text is made: as stated, as its profile says, as its directory has it, as its checkpoint says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError, shown, warn_on_stderr
from alignment_eval.profiles.profile import TextRecipe
from fairseq_norm_plugin.checkpoints.files import ModelFiles
from fairseq_norm_plugin.checkpoints.options import PATHS
from fairseq_norm_plugin.text.settings import FILES, SIDED, TextSettings, names_of, options_of


def text_settings(
    stated: Mapping[str, Any],
    words: tuple[str, str],
    mark: str,
    files: ModelFiles,
    cfg: Any,
    carried: Mapping[str, Any] | None = None,
) -> tuple[TextSettings, bool]:
    """The settings for a model's text, and whether they were found rather than stated.

    Args:
        stated: ``tokenizer``, ``bpe``, ``lowercase``, ``normalize``, and options of the first two; None where it is not
            stated.
        words: what the words of source and target are.
        mark: the subword mark of text in pieces.
        files: the model's files; the files of a directory come before the checkpoint's options.
        cfg: the checkpoint's options.
        carried: what its profile says (:func:`recipe_settings`).
    """
    given = {name: value for name, value in stated.items() if value not in (None, [])}
    if "bpe" in given or "bpe_codes" in given:
        needed = {option.name for option in options_of("bpe", str(given.get("bpe")).replace("-", "_"))}
        found = {name: value for name, value in files.subwords.items() if name in needed}
    else:
        found = dict(carried or files.subwords) or _of_checkpoint("bpe", cfg, files)
        if found and "tokenizer" not in given and not carried:
            found.update(_of_checkpoint("tokenizer", cfg, files))
        own = found.get("tokenizer")
        if own is not None and own != given.get("tokenizer", own):
            for option in options_of("tokenizer", own):
                found.pop(option.name, None)
    named = {**found, **given}
    tokenizer, bpe, lowercase, how = (named.pop(name, None) for name in ("tokenizer", "bpe", "lowercase", "normalize"))
    return TextSettings(tokenizer, bpe, named, words, mark, bool(lowercase), how or "none"), bool(found)


def recipe_settings(recipe: TextRecipe, directory: Path) -> dict[str, Any]:
    """The options of a recipe, as if they were stated.

    Args:
        recipe: of a profile.
        directory: where the profile is.
    """
    files = {option: [str(directory / name) for name in names] for option, names in recipe.files.items()}
    for file in (file for named in files.values() for file in named):
        if not Path(file).is_file():
            raise InputError(
                f"{file}: no such file, but the profile names it for the text of the model; copy it there, or state "
                f"tokenizer and subwords"
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


def recipe_of(settings: TextSettings, directory: Path, languages: tuple[str, str]) -> TextRecipe | None:
    """The recipe of a model's text, for a profile in ``directory``; None, with a warning, if a file lies elsewhere."""
    options: dict[str, bool | str] = {}
    files: dict[str, list[str]] = {}
    for option, value in settings.options.items():
        if option not in FILES:
            options[option] = {"true": True, "false": False}.get(str(value).lower(), value)
            continue
        named = settings.files_of(option)
        for file in map(Path, named):
            if file.resolve().parent != directory.resolve():
                warn_on_stderr(
                    f"{file}: is not in {directory}, so the profile does not say how text is made; copy it there, or "
                    f"state it in each call"
                )
                return None
        files[option] = [Path(file).name for file in named]
    tokenizer = None if settings.tokenizer == "none" else settings.tokenizer
    normalize = None if settings.normalize == "none" else settings.normalize
    return TextRecipe(tokenizer, settings.lowercase, settings.bpe, options, files, normalize, languages)


def _of_checkpoint(registry: str, cfg: Any, files: ModelFiles) -> dict[str, Any]:
    """The tokenizer or the subwords that a checkpoint's options name, with files that exist."""
    section = cfg.get(registry) if cfg is not None else None
    name = section if isinstance(section, str) else _get(section, "_name")
    if name not in names_of(registry):
        return {}
    found: dict[str, Any] = {registry: name}
    for option in options_of(registry, str(name)):
        value = _get(section, option.name)
        if value in (None, "???", option.default):
            continue
        found[option.name] = _file(str(value), option.name, files) if option.name in PATHS["bpe"] else value
    return found


def _get(section: Any, name: str) -> Any | None:
    if section is None or isinstance(section, str):
        return None
    return section.get(name) if hasattr(section, "get") else getattr(section, name, None)


def _file(named: str, option: str, files: ModelFiles) -> str:
    """The file next to the model, or next to its dictionaries, that a checkpoint names by the path of its training.

    A path of a checkpoint is never opened itself: it may be of any file of this machine.
    """
    beside = [directory / Path(named).name for directory in (Path(files.members[0][0]).parent, files.data)]
    for file in beside:
        if file.is_file():
            return str(file)
    raise InputError(
        f"{beside[0]}: no such file, but the checkpoint was trained with {shown(named)}; copy it there, or give "
        f"--{option.replace('_', '-')} FILE, or --bpe none for text in subwords"
    )
