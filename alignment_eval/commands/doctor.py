"""``align-eval doctor``: the misreading of the files, if any, that explains a high AER."""

from __future__ import annotations

import argparse
import json
import textwrap
from dataclasses import dataclass, field
from typing import Any

from alignment_eval.arguments.alignments import (
    add_gold_arguments,
    add_hypothesis_arguments,
    add_text_arguments,
    gold_options,
    hypotheses_of,
    hypothesis_options,
)
from alignment_eval.arguments.output import add_format
from alignment_eval.doctor.diagnosis import CRITERION, diagnose
from alignment_eval.doctor.misreadings import FileEvidence, Reading, plausible_bases
from alignment_eval.doctor.orientation import Orientation
from alignment_eval.doctor.texts import GivenTexts, read_given
from alignment_eval.errors import InputError, UsageError
from alignment_eval.files import STANDARD
from alignment_eval.formats.detection import AlignmentFile, parse_gold_file, parse_hypothesis_file
from alignment_eval.formats.reading import ReadOptions, read_gold, read_hypothesis
from alignment_eval.scoring.direction import LOOKED_AT
from alignment_eval.signature import Value, signature

_EPILOG = f"""\
Example, after make demo:
  align-eval doctor --gold data/demo/demo.talp --gold-base 0 out/demo/hyp.pharaoh

Pass the same options as to align-eval score.  Criterion for an explanation:
{textwrap.fill(CRITERION, 100)}.
"""
_WRAPPER = textwrap.TextWrapper(100, "  ", "    ", break_long_words=False, break_on_hyphens=False)
#: Verdict -> judgement and fix; None: the last note says it.
_JUDGEMENTS = {
    "poor": ("the alignment itself is poor", "none in how the files are read; align with other maps or another tool"),
    "sound": ("the alignment is much better than a diagonal", "none needed"),
    "outside": ("the alignment cannot be judged, because many of its links lie outside the sentences", None),
}


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
    add_format(group, ("text", "json"))


def run(args: argparse.Namespace) -> None:
    """Diagnose every hypothesis, then print all results."""
    texts = args.source, args.target, args.hyp_source, args.hyp_target
    paths = hypotheses_of(args)
    if STANDARD in (args.gold, *paths, *texts):
        raise UsageError("an input is -: expected files, because each is read more than once")
    if (args.source is None) != (args.target is None) or (args.hyp_source is None) != (args.hyp_target is None):
        raise UsageError("only the source or only the target text is given: expected both or neither")
    if args.source is None and args.hyp_source is not None:
        raise UsageError("--hyp-source without --source: expected the texts of the gold as well")
    given = None if args.source is None else read_given(*texts)
    results = [_result(path, args, given) for path in paths]
    for result in results:
        print(json.dumps(result) if args.format == "json" else _text(result, given is not None))


@dataclass(frozen=True, eq=False)
class _Parsed(AlignmentFile):
    """A file of which only the links of the first sentences are kept, and the bases that all of its links allow."""

    bases: frozenset[int]

    @classmethod
    def of(cls, file: AlignmentFile) -> _Parsed:
        """Keep what the diagnosis looks at, so that the links of a large file can be freed."""
        links = file.links.head(LOOKED_AT).with_sentences(file.links.sentences)
        return cls(**{**vars(file), "links": links}, bases=plausible_bases(file.links.possible))


@dataclass
class _AsRead:
    """The two files as ``align-eval score`` reads them; where it refuses, as the options say."""

    given: GivenTexts | None
    manner: dict[str, int] = field(default_factory=dict)
    bases: dict[str, frozenset[int]] = field(default_factory=dict)
    fields: dict[str, Value] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, role: str, path: str, file: _Parsed, options: ReadOptions) -> None:
        """Read one of the two files."""
        plausible = file.bases
        read = read_gold if role == "gold" else read_hypothesis
        try:
            base = read(path, options, self.given.texts if self.given else None, self.notes.append).base
        except InputError as error:
            self.refused.append(str(error))
            stated = options.base or ("1" if file.format == "naacl" else "auto" if role == "gold" else "0")
            base = max(plausible) if stated == "auto" else int(stated)
        self.manner |= {f"{role}-base": base, f"{role}-swap": options.swap}
        self.bases[role] = plausible | {0} if options.unused_zero else plausible  # the user vouches for it
        read_as: dict[str, Value] = {"format": file.format, "base": base, "swap": options.swap}
        self.fields |= {role: file.hash, **{f"{role}_{key}": value for key, value in read_as.items()}}


def _result(path: str, args: argparse.Namespace, given: GivenTexts | None) -> dict[str, Any]:
    """The diagnosis of one hypothesis as the object that is printed."""
    gold = _Parsed.of(parse_gold_file(args.gold, args.gold_format))
    hyp = _Parsed.of(parse_hypothesis_file(path, args.hyp_format, True))
    files = _AsRead(given)
    files.add("gold", args.gold, gold, gold_options(args))
    files.add("hyp", path, hyp, hypothesis_options(args))
    if gold.links.sentences != hyp.links.sentences and "naacl" not in (gold.format, hyp.format):
        sizes = f"{gold.name} has {gold.links.sentences} sentences, {hyp.name} has {hyp.links.sentences}"
        files.refused.append(f"{sizes}: expected the same number")
    lengths, words = (given.lengths, given.words) if given else (None, None)
    bases = files.bases["gold"], files.bases["hyp"]
    diagnosis = diagnose(FileEvidence(gold.links, hyp.links, *bases, lengths, words), files.manner)
    read, found = diagnosis.read, diagnosis.explanation
    orientation = Orientation.of(found or read, lengths)
    return {
        "hypothesis": hyp.name,
        "gold": gold.name,
        "verdict": "explained" if found else orientation.verdict(read.aer),
        "gold_base": files.manner["gold-base"],
        "hypothesis_base": files.manner["hyp-base"],
        "aer": read.aer,
        "aer_corrected": found.aer if found else None,
        "changes": _changes(found) if found else [],
        "equal": [_changes(reading) for reading in diagnosis.equal],
        "options": _options(read, found) if found else {},
        "refused": files.refused,
        "notes": [*files.notes, *(given.notes if given else ()), *orientation.notes],
        "orientation": orientation.aers,
        "criterion": CRITERION,
        "tried": [{"changes": [c.name for c in other.corrections], "aer": other.aer} for other in diagnosis.tried],
        "sentences": read.gold.sentences,
        "signature": signature(**files.fields, sentences=read.gold.sentences),
    }


def _changes(reading: Reading) -> list[dict[str, str]]:
    return [vars(correction) for correction in reading.corrections]


def _options(read: Reading, right: Reading) -> dict[str, str | bool]:
    """The options of ``align-eval score`` that correct a misreading; False means: leave it out."""
    changed = {option: value for option, value in right.manner.items() if value != read.manner[option]}
    return {f"--{option}": bool(v) if option.endswith("swap") else str(v) for option, v in changed.items()}


def _text(result: dict[str, Any], texts: bool) -> str:
    """The diagnosis for a reader, with texts or without: the verdict, what to do, then the details."""
    explained = result["verdict"] == "explained"
    verdict, fix = _explained(result) if explained else _unexplained(result, texts)
    details = [
        f"AER {_percent(result['aer'])} against {result['gold']} as read (gold from {result['gold_base']}, hypothesis "
        f"from {result['hypothesis_base']})",
        *(f"align-eval score refuses to read them so: {reason.removesuffix('?')}" for reason in result["refused"]),
        *(_equal(result) if explained else _in_proportion(result)),
        *(f"note: {note}" for note in result["notes"] if note != fix),
    ]
    wrapped = (line for detail in details for line in _WRAPPER.wrap(detail))
    return "\n".join([f"{result['hypothesis']}: {verdict}", f"fix: {fix}", *wrapped, f"  {result['signature']}"])


def _words(changes: list[dict[str, str]], key: str) -> str:
    return ", and ".join(change[key] for change in changes)


def _explained(result: dict[str, Any]) -> tuple[str, str]:
    """Verdict and fix."""
    aers = f"AER {_percent(result['aer'])}, corrected {_percent(result['aer_corrected'])}"
    return f"misread, {aers}: {_words(result['changes'], 'fault')}", _words(result["changes"], "remedy")


def _unexplained(result: dict[str, Any], texts: bool) -> tuple[str, str]:
    """Verdict and fix."""
    judgement, fix = _JUDGEMENTS[result["verdict"]]
    if result["verdict"] == "sound" and not texts:
        fix = "none found without the texts; --source and --target show other tokens, too"
    return f"no misreading found, AER {_percent(result['aer'])}: {judgement}", fix or result["notes"][-1]


def _equal(result: dict[str, Any]) -> list[str]:
    return [
        f"or, which the links cannot distinguish: {_words(changes, 'fault')}; then {_words(changes, 'remedy')}"
        for changes in result["equal"]
    ]


def _in_proportion(result: dict[str, Any]) -> list[str]:
    """What else was tried, and what trivial alignments reach."""
    tried, orientation = result["tried"], result["orientation"]
    best = (
        f"; the lowest AER of them is {_percent(tried[0]['aer'])} ({' + '.join(tried[0]['changes'])})" if tried else ""
    )
    return [
        f"none of {len(tried)} other readings of the files meets the criterion{best}",
        f"for orientation: a diagonal gives {_percent(orientation['diagonal'])}, an empty alignment "
        f"{_percent(orientation['empty'])}",
    ]


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"
