"""The files of a model: checkpoints, dictionaries and subwords in a directory as it was released; its profile."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError, UsageError
from alignment_eval.profiles.profile import TextRecipe, profile_path

#: The name of the bundled models, German-English and English-German.
DEMO = "demo"
#: ``reverse_path`` of a multilingual model that is to be read in one direction only.
NO_REVERSE = "none"
#: What to state of a model whose subwords nothing says.
NO_SUBWORDS = (
    "expected --bpe-codes CODES of the model, or --bpe none for text that is in subwords (in Python bpe_codes=…, "
    'bpe="none")'
)
#: Names of a directory's checkpoint, the first one that exists; else its only ``.pt`` file.
_CHECKPOINTS = ("model.pt", "checkpoint_best.pt", "checkpoint.pt", "checkpoint_last.pt")
#: The weights of a model of Transformers, and the file that names the parts of larger ones; the first is read.
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
#: Names of codes and of SentencePiece models, as fairseq and its released models spell them.
_CODES = ("bpecodes", "bpe.codes", "codes.bpe", "code", "codes", "*.fastbpe.code", "*.bpecodes", "merges.txt")
_SENTENCEPIECE = ("sentencepiece.bpe.model", "sentence.bpe.model", "spm.model", "spm*.model", "*spm.model", "*.model")
#: One SentencePiece model a side, as Marian's converted models have.
_SIDES = ("source.spm", "target.spm")
#: A dictionary of all languages.
_JOINT = ("dict.txt", "dictionary.txt", "model_dict*.txt")
_NUMBERED = re.compile(r"(?P<stem>.*?\D)(?P<number>\d+)\.pt")
#: The name of a model of the Hugging Face hub.
_OF_HUB = re.compile(r"[\w-]+/[\w.-]+")
_SHARD = re.compile(r"(?P<stem>.+(?:-shard|_part))(?P<number>\d+)\.pt")


@dataclass(frozen=True)
class Release:
    """What lies at the path of a model of fairseq, or of one in the format of Transformers."""

    members: Sequence[Sequence[str]]  #: the checkpoint of each model of an ensemble, each a list of its parts
    data: Path  #: the directory of the dictionaries
    text: TextRecipe = field(default_factory=TextRecipe)  #: the subwords of a released directory
    found: bool = False  #: whether the files were found in a directory, rather than named
    state: dict[str, Any] = field(default_factory=dict)  #: the content of the first checkpoint; empty until it is read
    languages: tuple[str | None, str | None] = (None, None)  #: those that a model of Transformers is read for
    #: of a model of Transformers: names of fairseq's dictionaries, of source and target or of both, and their tokens,
    #: which no file holds in this form
    dictionaries: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        """The checkpoints, separated by colons."""
        return ":".join(self.checkpoints)

    @cached_property
    def checkpoints(self) -> list[str]:
        """The first file of each model."""
        return [parts[0] for parts in self.members]

    @cached_property
    def cfg(self) -> Any:
        """The options of the first checkpoint."""
        return self.state["cfg"]

    def profile(self, direction: str | None) -> Path:
        """Where its profile is by default (:func:`profile_file`)."""
        return profile_file(self.checkpoints, direction)

    def dictionary_files(self, languages: Sequence[str], fixed: str | None = None) -> list[str]:
        """The dictionaries of source and target: one for each language, or one of all (``fixed``)."""
        if fixed is None and self.dictionaries:
            names = list(self.dictionaries)
            return [names[0], names[-1]]
        own = [self.data / f"dict.{language}.txt" for language in languages]
        if fixed is None and all(file.is_file() for file in own):
            return list(map(str, own))
        joint = Path(fixed) if fixed is not None else first_of(self.data, _JOINT)
        if joint is None or not joint.is_file():
            missing = next((file for file in own if not file.is_file()), own[0]) if joint is None else joint
            there = [] if joint else sorted(file.name[5:-4] for file in self.data.glob("dict.*.txt"))
            advice = f"state languages that have one (-s, -t): {', '.join(there)}" if there else "check the path"
            raise InputError(f"{missing}: no such file; {advice}")
        return [str(joint)] * 2


def demo_checkpoints(source: str | None, target: str | None) -> tuple[Path, Path]:
    """The bundled model of these languages, and that of the other direction; German-English if none is stated.

    The installed package has them in ``demo``, a clone in ``data/demo``.
    """
    package = Path(__file__).parents[1]
    installed = package / "demo"
    directory = installed if installed.is_dir() else package.with_name("data") / "demo"
    models = directory / "checkpoint.pt", directory / "checkpoint.en-de.pt"
    return models[::-1] if source == "en" or target == "de" else models


def is_of_transformers(path: str | Path) -> bool:
    """Whether a model is a directory in the format of Transformers, and not of fairseq, too."""
    place = Path(path)
    return not any(place.glob("*.pt")) and (weights_file(place) is not None or (place / "config.json").exists())


def find_files(path: str | Path, data: str | Path | None) -> Release:
    """The files of a model of fairseq: of a directory as released, or of a checkpoint (``:`` between an ensemble's).

    ``data`` is the directory of the dictionaries; default: ``path``, or the checkpoint's if it has any.
    """
    directory = Path(path)
    if directory.is_dir():
        members = _checkpoints(directory)
        return Release(members, Path(data or directory), _subwords(directory), found=True)
    members = [_parts(Path(name)) for name in str(path).split(":")]
    if data is None:
        data = Path(members[0][0]).parent
        if not any(data.glob("dict.*")):
            raise UsageError(f"{path}: no dict.LANG.txt beside it: expected --data, the directory of its dictionaries")
    if not Path(data).is_dir():
        raise InputError(f"{data}: no such directory; check the path of the dictionaries")
    return Release(members, Path(data))


def weights_file(directory: Path) -> Path | None:
    """The weights of a model of Transformers, or the file that names their parts; None: there are none."""
    return next((directory / name for name in _WEIGHTS if (directory / name).exists()), None)


def _checkpoints(directory: Path) -> list[list[str]]:
    names = sorted(file.name for file in directory.glob("*.pt"))
    for name in _CHECKPOINTS:
        if name in names:
            return [[str(directory / name)]]
    if shards := [name for name in names if _SHARD.fullmatch(name)]:
        return [_parts(directory / shards[0])]
    matches = [match for name in names if (match := _NUMBERED.fullmatch(name))]
    if len(names) > 1 and len(matches) == len(names) and len({match["stem"] for match in matches}) == 1:
        numbered = {int(match["number"]): directory / match.string for match in matches}
        return [[file] for file in _in_order(numbered, 1)]
    if len(names) == 1:
        return [[str(directory / names[0])]]
    found = ", ".join(names) or "no checkpoint (.pt), and no config.json of a model in the format of Transformers"
    raise InputError(
        f"{directory}: {found}: expected one checkpoint, {_CHECKPOINTS[0]}, or numbered ones of an ensemble; name it"
    )


def _parts(file: Path) -> list[str]:
    """The file of a checkpoint, or all of its parts if ``file`` is one of several."""
    match = _SHARD.fullmatch(file.name)
    if match is None:
        if file.is_file():
            return [str(file)]
        advice = "check the path of the checkpoint"
        if _OF_HUB.fullmatch(str(file)) and file.suffix != ".pt" and not file.parent.exists():
            advice = (
                f"if it is a model of the Hugging Face hub, download it first: hf download {file} --local-dir DIR, and "
                f"give --path DIR"
            )
        raise InputError(f"{file}: no such file; {advice}")
    pattern = re.compile(re.escape(match["stem"]) + r"(\d+)\.pt")
    found = {int(m[1]): p for p in file.parent.glob("*.pt") if (m := pattern.fullmatch(p.name))}
    return _in_order(found, 0)


def _in_order(numbered: Mapping[int, Path], first: int) -> list[str]:
    """The files by their numbers; raises InputError if a number from ``first`` on is missing."""
    for expected, number in enumerate(sorted(numbered), first):
        if number != expected:
            missing = re.sub(r"\d+\.pt$", f"{expected}.pt", str(numbered[number]))
            raise InputError(
                f"{missing}: no such file, but there is one of number {number}; copy all parts into one directory"
            )
    return [str(numbered[number]) for number in sorted(numbered)]


def _subwords(directory: Path) -> TextRecipe:
    sides = [directory / name for name in _SIDES]
    missing = [file for file in sides if not file.is_file()]
    if len(missing) == 1:
        raise InputError(f"{missing[0]}: no such file, but that of the other side is there; copy both")
    if not missing:
        return TextRecipe(bpe="sentencepiece", files={"sentencepiece_model": list(map(str, sides))})
    codes, model, fast = (first_of(directory, names) for names in (_CODES, _SENTENCEPIECE, ("tokenizer.json",)))
    if codes is not None and model is not None:
        raise InputError(f"{directory}: has {codes.name} and {model.name}: say which with --bpe and its options")
    if model is not None:
        return TextRecipe(bpe="sentencepiece", files={"sentencepiece_model": [str(model)]})
    if codes is None and fast is not None:
        return TextRecipe(bpe="tokenizers", files={"tokenizer_json": [str(fast)]})
    return TextRecipe() if codes is None else TextRecipe(files={"bpe_codes": [str(codes)]})


def first_of(directory: Path, names: Sequence[str]) -> Path | None:
    """The first file of a directory with one of ``names``, which may be patterns."""
    files = (file for name in names for file in sorted(directory.glob(name)))
    return next((file for file in files if file.is_file()), None)


def profile_file(checkpoints: Sequence[str], direction: str | None) -> Path:
    """Where the profile of a model is by default: beside the first checkpoint of its ensemble.

    ``direction`` is what language tags tell the model; None: it has no tags.
    """
    first = Path(checkpoints[0])
    others = f"+{len(checkpoints) - 1}" if len(checkpoints) > 1 else ""
    told = "" if direction is None else "." + re.sub(r"[^\w@+-]", "_", direction)
    return profile_path(first.with_name(f"{first.name}{others}{told}"))
