"""``align-eval errors``: errors by class of sentence and word, for one system or two side by side."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from alignment_eval import options
from alignment_eval.command_line import add_format, file_name
from alignment_eval.errors import InputError, UsageError, printable, warn_user
from alignment_eval.files import signature
from alignment_eval.maps.sentence import marks_of_tools
from alignment_eval.reading import file_hash, token_lines
from alignment_eval.scoring.aer import METRICS
from alignment_eval.scoring.classes import SIDES, TITLES, Text, confusion_table, error_table
from alignment_eval.scoring.tables import UNDEFINED, Table, counted, percent

EPILOG = """\
Example:
  align-eval errors data/demo/hyp.pharaoh --gold data/demo/demo.talp --gold-base 1 \\
      --source data/demo/demo.de --target data/demo/demo.en

json: one object; shares and metrics are fractions, null where undefined.  text: tables with percentages.
"""
#: Columns of the tables, and what they are called.
_COUNTS = {
    **{"words": "words", "hypothesis_links": "links", "sure_links": "sure"},
    **{"missed_sure": "missed sure", "wrong_links": "wrong"},
}
_RATES = {"null_gold": "null gold", "null_hypothesis": "null hyp"}
_RATES |= {name: metric.label for name, metric in METRICS.items()}
#: If more words than this share are not in the training text, it looks like another text.
_UNKNOWN = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_gold_arguments(parser)
    group = parser.add_argument_group("hypotheses")
    options.add_hypothesis_arguments(group, more="; of two, the second is the system to compare with")
    options.add_text_arguments(parser, required=True)
    group = parser.add_argument_group("frequency")
    group.add_argument(
        "--train-frequency",
        nargs=2,
        type=file_name,
        metavar=("SOURCE", "TARGET"),
        help="count word frequencies in these training texts (default: in --source and --target)",
    )
    group = parser.add_argument_group("output")
    add_format(group, ("text", "json"))


def run(args: argparse.Namespace) -> None:
    texts = {"source": args.source, "target": args.target}
    if len(args.hypotheses) > 2:
        raise UsageError(f"{len(args.hypotheses)} hypotheses: expected one, or two to compare")
    _, gold, systems = options.read_systems(args, args.hypotheses)
    for system in systems:
        options.score_files(system, gold)  # for its checks
    source, target = zip(*options.words_of_texts(args) or ())
    for path, text in zip(texts.values(), (source, target)):
        if cut := marks_of_tools([" ".join(line) for line in text])[0]:
            raise InputError(f"{path}: {cut} (a subword mark): expected the words that the gold counts; merge them")
    frequencies = list(map(_frequencies, args.train_frequency or (), SIDES, (source, target)))
    links = [list(system.each_links()) for system in systems]
    sentences = list(gold)
    roles = dict(zip(("hypothesis", "against"), map(options.system_name, args.hypotheses)))
    result = {
        "hypothesis": roles["hypothesis"],
        "against": roles.get("against"),
        "frequency": "training" if frequencies else "texts",
        "sentences": len(gold),
        "classes": error_table(links[0], sentences, source, target, frequencies),
        "confusion": confusion_table(links[0], links[1], sentences) if "against" in roles else None,
        "signature": signature(
            metric="errors",
            **options.reading_fields("gold", gold),
            **{
                key: value
                for pair in zip(("hyp", "against"), systems)
                for key, value in options.reading_fields(*pair).items()
            },
            hyp_possible=False,
            **{side: file_hash(path) for side, path in texts.items()},
            frequency=",".join(map(file_hash, args.train_frequency)) if frequencies else "texts",
            sentences=len(gold),
        ),
    }
    print(json.dumps(result, allow_nan=False) if args.format == "json" else "\n".join(_text(result)))


def _frequencies(path: str, side: str, text: Text) -> Mapping[str, int]:
    """Word -> frequency in a training text; warns if it looks like text of another kind."""
    known = Counter(token for line in token_lines(path) for token in line)
    words = [word for line in text for word in line]
    unknown = sum(word not in known for word in words) / max(len(words), 1)
    if unknown > _UNKNOWN:
        warn_user(
            f"{path}: lacks {100 * unknown:.0f} % of the {side} words: is it the same language, with the same "
            f"tokenisation and case?"
        )
    return known


def _text(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"{printable(result['hypothesis'])}: {counted(result['sentences'])}"
    in_training = {"frequency": "frequency of the word in the training texts"}
    titles = TITLES | (in_training if result["frequency"] == "training" else {})
    heads = ("side", "class", *_COUNTS.values(), *(f"{name} %" for name in _RATES.values()))
    for by, group in groupby(result["classes"], key=itemgetter("by")):
        rows = [
            (row["side"], row["class"], *(str(row[name]) for name in _COUNTS), *(percent(row[name]) for name in _RATES))
            for row in group
        ]
        yield ""
        yield from Table(titles[by].capitalize() if by == "all" else f"By {titles[by]}", heads, rows, names=2).lines()
    if result["confusion"] is not None:
        heads = tuple(name.replace("_", " ") for name in result["confusion"][0])
        rows = [tuple(UNDEFINED if cell is None else str(cell) for cell in row.values()) for row in result["confusion"]]
        yield ""
        names = printable(f"{result['hypothesis']} and {result['against']}")
        yield from Table(f"Links of {names}, by what the gold says of them", heads, rows).lines()
    yield from ("", result["signature"])
