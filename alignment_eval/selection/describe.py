"""What ``align-eval select`` prints of a choice."""

from __future__ import annotations

from collections.abc import Iterable

from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.selection.methods import GoldChoice, ScoredMethod
from alignment_eval.selection.search import Candidate, Selection

_SHOWN = 10


def describe_by_gold(choice: GoldChoice, pairs: int) -> list[str]:
    """The ranking and what was chosen on ``pairs`` sentence pairs, AER in %."""
    lines = _ranking(choice.forward, f"single maps of the lowest AER on these {pairs} sentences", "AER")
    lines.append(f"Choice: {_scored(choice.streamed)}")
    if choice.alone is not choice.streamed:
        lines.append(f"Choice for a text: {_scored(choice.alone)}")
    if choice.both is not None:
        lines.append(f"Choice for both directions: {_scored(choice.both)}")
    return [*lines, "That AER is an optimistic figure: report one on other sentences."]


def describe_by_agreement(selection: Selection, pairs: int) -> list[str]:
    """The ranking and the two maps that agree most on ``pairs`` sentence pairs, Dice in %."""
    lines = _ranking(selection, f"pairs of maps that agree most on these {pairs} sentences", "Dice")
    choice, option = selection.choice, selection.choice.extraction
    maps = f"{option.kind}, heads {option.map_names}, reverse heads {choice.reverse_heads}, {option.setting}"
    figure = f"Dice {100 * choice.figure:.2f} %, the best of {selection.candidates} candidates"
    return [*lines, f"Choice: {maps}, {_rule(option)}: {figure}"]


def _ranking(selection: Selection, what: str, figure: str) -> list[str]:
    shown = selection.ranking[:_SHOWN]
    lines = [f"The {len(shown)} {what}", *_table(shown, figure), ""]
    if len(selection.steps) > 1:
        lines += ["From the best map of the choice's configuration to the choice", *_table(selection.steps, figure), ""]
    return lines


def _scored(scored: ScoredMethod) -> str:
    return f"{_method(scored.method)}: AER {100 * scored.aer:.2f} %, the best of {scored.candidates} candidates"


def _method(method: AlignmentMethod) -> str:
    said = [_maps(method.forward), _rule(method.forward)]
    if method.reverse is not None and method.both is not None:
        said = [f"{_maps(method.forward)}; reverse {_maps(method.reverse)}; {said[1]}", f"join {method.both.join}"]
    return ", ".join([*said, *([f"lexicon {method.lexicon_passes}"] if method.lexicon_passes else [])])


def _maps(option: ExtractionOptions) -> str:
    combine = f" ({option.combine})" if len(option.maps) > 1 else ""
    return f"{option.kind}, heads {option.map_names}{combine}, {option.setting}"


def _rule(option: ExtractionOptions) -> str:
    return f"{option.rule}, null {option.null}"


def _table(candidates: Iterable[Candidate], figure: str) -> list[str]:
    rows = [(f"{figure} %", "kind", "heads", "combine", "setting", "rule", "null")]
    for candidate in candidates:
        option = candidate.extraction
        maps = option.map_names + ("" if candidate.reverse_heads is None else f" / {candidate.reverse_heads}")
        combine = option.combine if len(option.maps) > 1 else "-"
        rows.append(
            (f"{100 * candidate.figure:.2f}", option.kind, maps, combine, option.setting, option.rule, str(option.null))
        )
    widths = [max(map(len, column)) for column in zip(*rows)]
    # figures to the right, names to the left
    return [
        "  ".join([row[0].rjust(widths[0]), *(cell.ljust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
        for row in rows
    ]
