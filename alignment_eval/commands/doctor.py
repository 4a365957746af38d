"""``align-eval doctor``: which misreading of the files, if any, explains a high AER."""

from __future__ import annotations

import argparse
import json
import textwrap
from dataclasses import dataclass, replace
from typing import Any

from alignment_eval.commands._alignment_args import (
    add_gold_arguments,
    add_hypothesis_arguments,
    add_text_arguments,
    gold_options,
    hypothesis_options,
)
from alignment_eval.doctor.diagnosis import (
    CRITERION,
    Candidate,
    Diagnosis,
    corpus_aer,
    diagnose,
    diagonal,
    linked_lengths,
    outside_of,
)
from alignment_eval.doctor.misreadings import MARGIN, Facts, Reading, plausible_bases
from alignment_eval.doctor.texts import GivenTexts, given_texts
from alignment_eval.errors import InputError, UsageError
from alignment_eval.files import STANDARD
from alignment_eval.formats.checks import LOOKED_AT
from alignment_eval.formats.detection import AlignmentFile, parse_gold_file, parse_hypothesis_file
from alignment_eval.formats.reading import ReadOptions, read_gold, read_hypothesis
from alignment_eval.links.table import GoldTable, LinkTable
from alignment_eval.scoring.aer import count
from alignment_eval.signature import signature

_EPILOG = f"""\
Example, after make demo:
  align-eval doctor --gold data/demo/demo.talp --gold-base 0 --hyp out/demo/hyp.pharaoh

Give the options that align-eval score got.  Criterion of an explanation:
{textwrap.fill(CRITERION, 100)}.
"""
#: An alignment is called poor if its AER is more than this part of the diagonal's.
_POOR = 2 / 3
#: With more than this part of its links outside the sentence pairs a hypothesis cannot be judged.
_MAX_OUTSIDE = 0.05
_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``doctor``."""
    parser.epilog = _EPILOG
    add_gold_arguments(parser)
    add_hypothesis_arguments(parser)
    add_text_arguments(parser)
    group = parser.add_argument_group("texts that the hypothesis links, if they are not these (subwords, other tokens)")
    group.add_argument("--hyp-source", metavar="FILE", help="source text, one sentence a line (default: --source)")
    group.add_argument("--hyp-target", metavar="FILE", help="target text (default: --target)")
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=("text", "json"), default="text", help="of the output (default: text)")


def run(args: argparse.Namespace) -> None:
    """Diagnose every hypothesis; nothing is printed before all have been."""
    if STANDARD in (args.gold, *args.hyp, args.source, args.target, args.hyp_source, args.hyp_target):
        raise UsageError("an input is -: expected files, which are read more than once")
    sides = given_texts(args)
    results = [_result(path, args, sides) for path in args.hyp]
    for result in results:
        print(json.dumps(result) if args.format == "json" else _text(result))


def _result(path: str, args: argparse.Namespace, given: GivenTexts | None) -> dict[str, Any]:
    """The diagnosis of one hypothesis as the object that is printed."""
    gold = _Read.of(parse_gold_file(args.gold, args.gold_format), args.gold, "gold", gold_options(args), given)
    hyp_file = parse_hypothesis_file(path, args.hyp_format, allow_possible=True)
    hyp = _Read.of(hyp_file, path, "hyp", hypothesis_options(args), given)
    links = gold.file.links, hyp.file.links
    refused = [*gold.refused, *hyp.refused]
    if links[0].sentences != links[1].sentences and "naacl" not in (gold.file.format, hyp.file.format):
        sizes = f"{gold.file.name} has {links[0].sentences} sentences, {hyp.file.name} has {links[1].sentences}"
        refused.append(f"{sizes}: expected as many")
    reading = Reading.of(*links, (gold.base, hyp.base), (gold.options.swap, hyp.options.swap))
    facts = Facts.of(*links, given.lengths if given else None, given.words if given else None)
    facts = replace(facts, gold_bases=gold.bases(facts.gold_bases), hyp_bases=hyp.bases(facts.hyp_bases))
    diagnosis = diagnose(reading, facts)
    found = diagnosis.explanation
    final = found.reading if found else reading
    orientation = _orientation(final, facts)
    outside, remarks = _remarks(final, facts)
    return {
        "hypothesis": hyp.file.name,
        "gold": gold.file.name,
        "verdict": _verdict(diagnosis, orientation["diagonal"], outside),
        "gold_base": gold.base,
        "hypothesis_base": hyp.base,
        "aer": diagnosis.aer,
        "aer_corrected": found.aer if found else None,
        "changes": _changes(found) if found else [],
        "equal": [_changes(candidate) for candidate in diagnosis.equal],
        "options": found.reading.options(reading) if found else {},
        "refused": refused,
        "notes": [*gold.notes, *hyp.notes, *(given.notes if given else ()), *remarks],
        "orientation": orientation,
        "criterion": CRITERION,
        "tried": [{"changes": [change.name for change in c.changes], "aer": c.aer} for c in diagnosis.tried],
        "sentences": reading.gold.sentences,
        "signature": signature(**gold.fields(), **hyp.fields(), sentences=reading.gold.sentences),
    }


@dataclass(frozen=True, eq=False)
class _Read:
    """An alignment file as ``align-eval score`` reads it, or, where it refuses to, as it was told to."""

    file: AlignmentFile
    role: str
    options: ReadOptions
    base: int
    refused: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, file: AlignmentFile, path: str, role: str, options: ReadOptions, given: GivenTexts | None) -> _Read:
        notes: list[str] = []
        read = read_gold if role == "gold" else read_hypothesis
        try:
            base = read(path, options, given.texts if given else None, notes.append).base
        except InputError as error:
            stated = options.base or ("1" if file.format == "naacl" else "auto" if role == "gold" else "0")
            base = max(plausible_bases(file.links.possible)) if stated == "auto" else int(stated)
            return cls(file, role, options, base, (str(error),), tuple(notes))
        return cls(file, role, options, base, (), tuple(notes))

    def bases(self, plausible: frozenset[int]) -> frozenset[int]:
        """The bases that the file may have: what the user vouches for is not contradicted."""
        return plausible | {0} if self.options.unused_zero else plausible

    def fields(self) -> dict[str, str | int | bool]:
        """The fields of a signature."""
        role = self.role
        return {
            role: self.file.hash,
            f"{role}_format": self.file.format,
            f"{role}_base": self.base,
            f"{role}_swap": self.options.swap,
        }


def _changes(candidate: Candidate) -> list[dict[str, str]]:
    return [{"name": change.name, "fault": change.fault, "remedy": change.remedy} for change in candidate.changes]


def _verdict(diagnosis: Diagnosis, diagonal_aer: float, outside: float) -> str:
    """``explained``, or why not: ``outside`` (not links of these sentences), ``poor``, or ``sound``."""
    if diagnosis.explanation is not None:
        return "explained"
    if outside > _MAX_OUTSIDE:
        return "outside"
    return "poor" if diagnosis.aer > _POOR * diagonal_aer else "sound"


def _orientation(reading: Reading, facts: Facts) -> dict[str, float]:
    """AERs to compare with: of simple alignments, and of this one with the gold's possible links treated otherwise."""
    gold, links = reading.gold, reading.hypothesis.possible
    lengths = facts.lengths or linked_lengths(gold.possible.shifted(-MARGIN))
    table = diagonal(lengths).shifted(MARGIN)
    table = LinkTable(table.keys, max(table.sentences, gold.sentences)).head(gold.sentences)
    empty = LinkTable(links.keys[:0], links.sentences)
    return {
        "diagonal": corpus_aer(count(table, gold)),
        "empty": corpus_aer(count(empty, gold)),
        "possible_as_sure": corpus_aer(count(links, GoldTable(gold.possible, gold.possible))),
        "possible_dropped": corpus_aer(count(links, GoldTable(gold.sure, gold.sure))),
    }


def _remarks(reading: Reading, facts: Facts) -> tuple[float, list[str]]:
    """The part of the hypothesis's links that is outside the sentence pairs, and what else is odd about the files."""
    gold, hyp = reading.gold.possible, reading.hypothesis.possible
    remarks = []
    if reading.gold.sentences == LOOKED_AT:
        remarks.append(f"only the first {LOOKED_AT} sentences are looked at")
    if not len(gold):
        remarks.append("the gold has no links: AER says nothing")
    elif not len(reading.gold.sure):
        remarks.append("the gold has no sure links: recall is undefined, and AER is 1 - precision")
    if not len(hyp):
        return 0.0, [*remarks, "the hypothesis has no links"]
    sides = facts.lengths or linked_lengths(gold.shifted(-MARGIN))
    outside = [int(outside_of(table, sides).sum()) for table in (gold, hyp)]
    turned = [int(outside_of(table, (sides[1], sides[0])).sum()) for table in (gold, hyp)]
    if facts.lengths is not None and all(outside) and not any(turned):
        return 0.0, [*remarks, "all links fit the texts when those are exchanged: exchange --source and --target"]
    if outside[0]:
        place = f"{outside[0]} of {len(gold)} links of the gold lie outside the texts"
        remarks.append(f"{place}: is this the gold's own text, in its tokenisation?")
    if (facts.lengths is not None and outside[1]) or outside[1] > _MAX_OUTSIDE * len(hyp):
        what = "outside the texts" if facts.lengths is not None else "beyond all gold links of their sentence"
        remarks.append(
            f"{outside[1]} of {len(hyp)} links of the hypothesis lie {what}: if it counts subwords or words tokenised "
            f"otherwise, give its texts (--hyp-source, --hyp-target, with --source, --target)"
        )
    return outside[1] / len(hyp), remarks


def _text(result: dict[str, Any]) -> str:
    """The diagnosis for a reader: a paragraph, notes, the signature."""
    paragraph = [
        f"{result['hypothesis']}: AER {_percent(result['aer'])} against {result['gold']} as read "
        f"(gold from {result['gold_base']}, hypothesis from {result['hypothesis_base']})."
    ]
    if result["refused"]:
        paragraph.append(f"align-eval score refuses to read them so: {_ended('; '.join(result['refused']))}")
    paragraph += _explained(result) if result["verdict"] == "explained" else _unexplained(result)
    lines = [textwrap.fill(" ".join(paragraph), _WIDTH, break_long_words=False, break_on_hyphens=False)]
    return "\n".join([*lines, *(f"note: {note}" for note in result["notes"]), f"  {result['signature']}"])


def _explained(result: dict[str, Any]) -> list[str]:
    faults, remedies = _words(result["changes"])
    sentences = [
        f"Explanation: {faults}.",
        f"Put right, AER is {_percent(result['aer_corrected'])}.",
        f"What to do: {remedies}.",
    ]
    diagonal_aer = result["orientation"]["diagonal"]
    if result["aer_corrected"] > _POOR * diagonal_aer:
        sentences.append(f"The alignment is poor even so: a diagonal gives {_percent(diagonal_aer)}.")
    for changes in result["equal"]:
        faults, remedies = _words(changes)
        sentences.append(f"Or, which the links cannot tell from it: {faults}; then {remedies}.")
    return sentences


def _words(changes: list[dict[str, str]]) -> tuple[str, str]:
    """All faults and all remedies, each as one text."""
    return ", and ".join(change["fault"] for change in changes), ", and ".join(change["remedy"] for change in changes)


def _unexplained(result: dict[str, Any]) -> list[str]:
    tried, orientation = result["tried"], result["orientation"]
    best = (
        f"; the lowest AER of them is {_percent(tried[0]['aer'])} ({' + '.join(tried[0]['changes'])})" if tried else ""
    )
    judgement = {
        "poor": "The alignment itself is poor",
        "sound": "The alignment agrees with the gold much better than a diagonal does",
        "outside": "The alignment cannot be judged, because many of its links lie outside the sentences (see the note)",
    }[result["verdict"]]
    return [
        f"No misreading explains it: none of {len(tried)} other readings of the files meets the criterion{best}.",
        f"{judgement}; for orientation: a diagonal gives {_percent(orientation['diagonal'])}, an empty alignment "
        f"{_percent(orientation['empty'])}.",
    ]


def _ended(text: str) -> str:
    return text if text.endswith("?") else f"{text}."


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"
