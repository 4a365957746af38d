"""Which tokenizer and subwords a model's text needs: as stated, as its directory has them, as its checkpoint says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError
from fairseq_norm_plugin.checkpoints.files import ModelFiles
from fairseq_norm_plugin.text.settings import TextSettings, names_of, options_of


def text_settings(
    stated: Mapping[str, Any],
    options: Mapping[str, Any],
    words: tuple[str, str],
    mark: str,
    files: ModelFiles,
    cfg: Any,
) -> tuple[TextSettings, bool]:
    """The settings for a model's text, and whether they were found rather than stated.

    Args:
        stated: ``tokenizer`` and ``bpe``, each perhaps None.
        options: their stated options.
        words: what the words of source and target are.
        mark: the subword mark of text in pieces.
        files: the model's files; the files of a directory come before the checkpoint's options.
        cfg: the checkpoint's options.

    Raises:
        InputError: a file that the checkpoint names is missing.
        UsageError: what is stated does not go together.
    """
    given = {name: value for name, value in options.items() if value not in (None, [])}
    tokenizer, bpe = stated.get("tokenizer"), stated.get("bpe")
    if bpe is not None or given.get("bpe_codes"):
        found = {}
        if bpe is not None and bpe != "none":
            name = bpe.replace("-", "_")
            needed = {option.name for option in options_of("bpe", name)} if name in names_of("bpe") else set()
            found = {key: value for key, value in files.subwords.items() if key in needed}
        return TextSettings(tokenizer, bpe, {**found, **given}, words, mark), bool(found)
    found = dict(files.subwords) or _of_checkpoint("bpe", cfg, files)
    if found and tokenizer is None:
        found.update(_of_checkpoint("tokenizer", cfg, files))
    named = {"tokenizer": tokenizer, **found, **given}
    name, subwords = named.pop("tokenizer"), named.pop("bpe", None)
    return TextSettings(name, subwords, named, words, mark), bool(found)


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
        found[option.name] = _file(str(value), option.name, files) if option.type is not bool else value
    return found


def _get(section: Any, name: str) -> Any | None:
    if section is None or isinstance(section, str):
        return None
    return section.get(name) if hasattr(section, "get") else getattr(section, name, None)


def _file(named: str, option: str, files: ModelFiles) -> str:
    """A file that a checkpoint names by the path of its training, or the one of this name next to the model.

    Values that look like no path, such as a separator, are taken as they are.
    """
    if "/" not in named and "." not in named:
        return named
    beside = [directory / Path(named).name for directory in (Path(files.members[0][0]).parent, files.data)]
    for file in (Path(named), *beside):
        if file.is_file():
            return str(file)
    raise InputError(
        f"{named}: no such file, but the checkpoint was trained with it; give --{option.replace('_', '-')} FILE, or "
        f"--bpe none for text in subwords"
    )
