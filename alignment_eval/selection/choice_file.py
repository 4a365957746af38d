"""Choice files: the maps and the rule that ``align-eval select`` chose, and what they were chosen on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.bidirectional import Words
from alignment_eval.extraction.options import ExtractionOptions, MapName, parse_maps
from alignment_eval.files import ContentHash
from alignment_eval.records.store import RunInfo
from alignment_eval.signature import Value

VERSION = 1

#: What a choice may have been made by, and the name of its figure.
FIGURES = {"dev-gold": "aer", "agreement": "dice"}

_ADVICE = "expected a file that align-eval select wrote; select again"


@dataclass(frozen=True)
class Choice:
    """A choice, and what it was made on.

    Attributes:
        chosen_by: ``dev-gold``: lowest AER on a development gold; ``agreement``: highest Dice coefficient of the
            links of two directions.
        extraction: what was chosen.
        reverse_heads: the maps of the other direction, as :func:`extraction.extract.parse_maps` reads them; None
            where none were chosen.
        figure: that AER or Dice coefficient, a fraction.
        candidates: of how many it is the best.
        sentences: how many sentences it was made on.
        model: hash of the model; None where the records do not say it.
        data: hash of the binarised data; None where the records do not say it.
        text: hash of the words (:func:`text_hash`).
        gold: hash of the development gold; None without.
        signature: the signature of the selection.
    """

    chosen_by: str
    extraction: ExtractionOptions
    reverse_heads: str | None
    figure: float
    candidates: int
    sentences: int
    model: str | None
    data: str | None
    text: str
    gold: str | None
    signature: str

    def to_json(self) -> str:
        """The content of a choice file."""
        content: dict[str, Any] = {"choice": VERSION, **asdict(self)}
        content["extraction"] = self.extraction.to_dict()
        named = {FIGURES[self.chosen_by] if key == "figure" else key: value for key, value in content.items()}
        return json.dumps(named, indent=1, ensure_ascii=False)

    def fields(self) -> dict[str, Value]:
        """What the signature of links says of the choice that they were extracted by."""
        return {"chosen_by": self.chosen_by, "chosen_on": self.data or self.text, "chosen_gold": self.gold}

    @property
    def reverse_extraction(self) -> ExtractionOptions:
        """The extraction of the other direction: that of the first from other maps, if others were chosen."""
        maps = self.extraction.maps if self.reverse_heads is None else parse_maps(self.reverse_heads)
        return self.extraction.with_maps(maps)


def read_choice(path: str | Path) -> Choice:
    """Read a choice file.

    Raises:
        InputError: it cannot be read, or is no choice file.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}): {_ADVICE}") from error
    except ValueError as error:  # JSON and UTF-8
        raise InputError(f"{path}: no JSON ({error}): {_ADVICE}") from error
    try:
        return _parsed(content)
    except (KeyError, TypeError, ValueError, AttributeError, UsageError) as error:
        raise InputError(f"{path}: no choice file of version {VERSION} ({error!s}): {_ADVICE}") from error


def _parsed(content: Any) -> Choice:
    if content["choice"] != VERSION:
        raise ValueError(f"version {content['choice']!r}")
    fields = {key: value for key, value in content.items() if key != "choice"}
    fields["figure"] = float(fields.pop(FIGURES[fields["chosen_by"]]))
    choice = Choice(**{**fields, "extraction": ExtractionOptions.from_dict(fields["extraction"])})
    _ = choice.reverse_extraction  # its maps are checked too
    return choice


def check_maps(choice: Choice, name: str, maps: Iterable[MapName], info: RunInfo, directory: str | Path) -> None:
    """Check that the records of a run have the maps that were chosen.

    Args:
        choice: the choice.
        name: its file, for messages.
        maps: the chosen maps of this direction.
        info: the run.
        directory: its records, for messages.

    Raises:
        InputError: they lack a layer or head.
    """
    for chosen in maps:
        if chosen.layer not in info.layers or (chosen.head is not None and chosen.head >= info.heads):
            raise InputError(
                f"{name}: chose {chosen} (LAYER.HEAD, or LAYER for a whole one), but {directory} holds layers "
                f"{', '.join(map(str, info.layers))} of {info.heads} heads, counted from 0: expected records of the "
                f"model that the choice was made on"
            )


def model_warning(choice: Choice, name: str, info: RunInfo, directory: str | Path) -> str | None:
    """A warning if a choice was made on another model than that of the records, else None."""
    return other_model_warning(choice, name, info.signature.get("model"), directory)


def other_model_warning(choice: Choice, name: str, model: str | None, where: str | Path) -> str | None:
    """A warning if a choice was made on another model than that of hash ``model``, which ``where`` is of, else None."""
    if choice.model in (None, model):
        return None
    return (
        f"{name}: chosen on model {choice.model}, but {where} is of model {model}: layers and heads of the same "
        f"number need not do the same in another model"
    )


def same_sentences(choice: Choice, info: RunInfo, text: str) -> bool:
    """Whether records are of the sentences that a choice was made on: the same data, or the same words."""
    data = info.signature.get("data")
    return (data is not None and data == choice.data) or text == choice.text


def text_hash(words: Iterable[tuple[int, Words]]) -> str:
    """Hash of the words of sentence pairs, given with their ids, in whatever order and however cut into subwords."""
    content = ContentHash()
    for id_, sides in sorted(words):
        content.update(json.dumps([id_, *sides]).encode())
    return content.short
