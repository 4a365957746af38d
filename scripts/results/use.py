"""The jobs of docs/reproduction.md: labels and inline tags that follow the links of the bundled models and of others.

    use.py labels DATA OUT [NAME=FILE …]
    use.py markup DATA OUT [NAME=FILE …]

``labels``: span F1 of DATA/projection (CoNLL 2002, both sides labelled).  The labels of one side are projected onto the
other, and scored against the other's own; a span is right if its words and its type are.

``markup``: DATA/markup/localization-xml.en-de.jsonl has lines of software help with the same XML tags on both sides.
The tags of one side are put onto the text of the other, and compared with the other's own: positions that differ only
by blanks are equal.  A line is right if all its tags are.

Intervals and paired randomisation tests draw sentences.  FILE has German-English links, of the lowercased texts that
OUT gets: of ``markup``, whose models read raw text, these are runs of letters and digits, and single marks.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gold_sets import CHECKPOINTS, markdown, run_script, write

import alignment_eval as ae
from alignment_eval.links.formats import Link
from alignment_eval.reading import TextFile
from alignment_eval.scoring.aer import Counts, Score
from alignment_eval.scoring.significance import Resampling, compare_all, confidence
from alignment_eval.transfer.label_files import LabelledSentence, parse_conll
from alignment_eval.transfer.labels import project_labels, spans_of
from alignment_eval.transfer.markup import transfer_markup
from alignment_eval.transfer.tags import MarkedLine, parse_markup
from fairseq_norm_plugin import NormModel, load

#: The language whose labels or tags are carried over -> that of the text which gets them.
OTHER = {"en": "de", "de": "en"}
BOTH = "both models"
WORD = re.compile(r"\w+|[^\w\s]")
#: The German-English links of each sentence, with their confidences if they have any.
Aligned = Sequence[Mapping[Link, float]]


def bundled(source: str, both: bool, tokenizer: str | None = None) -> NormModel:
    """The bundled model that translates from ``source``, with the other one or alone."""
    return load(CHECKPOINTS[source], reverse_path=CHECKPOINTS[OTHER[source]] if both else "none", tokenizer=tokenizer)


def turned(links: Mapping[Link, float], source: str) -> Mapping[Link, float]:
    """German-English links as those from ``source``, or the other way round."""
    return links if source == "de" else {(j, i): confidence for (i, j), confidence in links.items()}


def read_others(others: Iterable[str]) -> dict[str, Aligned]:
    """German-English links of other aligners, NAME=FILE."""
    named = (other.partition("=") for other in others)
    return {name: [dict.fromkeys(links, 1.0) for links in ae.read_links(file)] for name, _, file in named}


def counts_of(rows: Iterable[Sequence[int]]) -> Counts:
    """Found, wanted and right ones of each sentence; then 1 - AER is F1."""
    found, wanted, right = np.array([*rows], dtype=np.int64).T
    return Counts(found, wanted, right, right)


def f1(counts: Counts) -> str:
    """F1 in %, with its interval."""
    interval = confidence(counts, Resampling())["aer"]
    assert interval is not None  # AER is always defined
    middle, low, high = (100 * (1 - aer) for aer in (Score.of(counts).aer, interval.high, interval.low))
    return f"{middle:.1f} [{low:.1f}, {high:.1f}]"


def lead(ours: Counts, other: Counts) -> str:
    """How many points of F1 ``ours`` has more, with the interval and p."""
    difference = compare_all([ours, other], Resampling())[0, 1]["aer"]
    assert difference.interval is not None
    assert difference.delta is not None
    low, high = 100 * difference.interval.low, 100 * difference.interval.high
    return f"{100 * difference.delta:+.1f} [{low:+.1f}, {high:+.1f}], p {difference.p_randomisation:.4f}"


def table(what: Sequence[str], systems: Mapping[str, Callable[[str], Sequence[Counts]]], base: str, leads: bool) -> str:
    """F1 of each system, and the lead of ``base`` over it if ``leads``, else its lead over ``base``.

    A system gives, for the language that is carried over, the counts of all that is counted: ``what``.
    """
    columns = {name: [counts for source in OTHER for counts in system(source)] for name, system in systems.items()}
    rows = []
    for name, of_system in columns.items():
        row = [name]
        for counts, of_base in zip(of_system, columns[base]):
            ours, other = (of_base, counts) if leads else (counts, of_base)
            row += [f1(counts), "" if name == base else lead(ours, other)]
        rows.append(row)
    titles = [f"{counted}, {source} → {target}" for source, target in OTHER.items() for counted in what]
    figures = ("F1 %", f"lead {'of' if leads else 'over'} {base}")
    return markdown(["links", *(f"{figure}, {title}" for title in titles for figure in figures)], rows)


def read_labelled(folder: Path) -> dict[str, list[LabelledSentence]]:
    """The labelled sentences of both languages."""
    files = {language: folder / f"europarl-ner.{language}.conll" for language in OTHER}
    return {language: list(parse_conll(TextFile(file).lines(), file.name)) for language, file in files.items()}


def projected(corpus: Mapping[str, Sequence[LabelledSentence]], links: Aligned, source: str) -> list[Counts]:
    """The spans of each sentence that are projected from ``source``, in the gold, and right."""
    rows = []
    for given, gold, pair in zip(corpus[source], corpus[OTHER[source]], links, strict=True):
        labels = project_labels(given.labels, turned(pair, source), len(gold.words), (given.words, gold.words))
        found, wanted = set(spans_of(labels)), set(spans_of(gold.labels))
        rows.append((len(found), len(wanted), len(found & wanted)))
    return [counts_of(rows)]


def labels(args: argparse.Namespace) -> str:
    """F1 of each system, with the lead of both models over it."""
    corpus = read_labelled(args.data / "projection")
    texts = {language: [" ".join(sentence.words) for sentence in side] for language, side in corpus.items()}
    for language, lines in texts.items():
        write(args.out / f"lowercased.{language}", map(str.lower, lines))

    def aligned(source: str, both: bool) -> Aligned:
        pairs = bundled(source, both, tokenizer="none").align(texts[source], texts[OTHER[source]])
        return [turned(pair.confidences, source) for pair in pairs]

    links = {
        BOTH: aligned("de", both=True),
        "German-English alone": aligned("de", both=False),
        "English-German alone": aligned("en", both=False),
        **read_others(args.others),
    }
    systems = {name: partial(projected, corpus, of_system) for name, of_system in links.items()}
    return table(["spans"], systems, BOTH, leads=True)


def tagged(sides: Mapping[str, Sequence[MarkedLine]], links: Aligned, source: str) -> list[Counts]:
    """What is right if the tags of ``source`` follow German-English links of another aligner."""
    outputs = []
    for marked, wanted, pair in zip(sides[source], sides[OTHER[source]], links, strict=True):
        spans = [[match.span() for match in WORD.finditer(line.text)] for line in (marked, wanted)]
        outputs.append(transfer_markup(marked, spans[0], wanted.text, spans[1], set(turned(pair, source))))
    return right(outputs, sides[OTHER[source]])


def right(outputs: Iterable[str], side: Iterable[MarkedLine]) -> list[Counts]:
    """Lines and tags: how many there are, are wanted, and are right; F1 is the share of the right ones."""
    lines, tags = [], []
    for output, wanted in zip(outputs, side, strict=True):
        found, gold = places(parse_markup(output, "xml")), places(wanted)
        lines.append((1, 1, int(found == gold)))
        tags.append((gold.total(), gold.total(), (found & gold).total()))
    return [counts_of(lines), counts_of(tags)]


def places(line: MarkedLine) -> Counter[tuple[Any, ...]]:
    """The elements of a line, with how much text is before their tags, without blanks."""
    before = [0, *np.cumsum([not char.isspace() for char in line.text])]
    return Counter((element.opening, *(int(before[at]) for at in element.span)) for element in line.elements)


def markup(args: argparse.Namespace) -> str:
    """Lines and tags that are right, and the lead over the first other aligner."""
    file = args.data / "markup/localization-xml.en-de.jsonl"
    rows = [json.loads(row) for row in file.read_text(encoding="utf-8").rstrip("\n").split("\n")]
    sides = {language: [parse_markup(row[language], "xml") for row in rows] for language in OTHER}
    for language, side in sides.items():
        write(args.out / f"words.{language}", [" ".join(WORD.findall(line.text)).lower() for line in side])

    def by_models(source: str, both: bool, **options: Any) -> list[Counts]:
        side = sides[OTHER[source]]
        marked, targets = [row[source] for row in rows], [line.text for line in side]
        return right(bundled(source, both).transfer_markup(marked, targets, **options), side)

    others = read_others(args.others)
    systems: dict[str, Callable[[str], list[Counts]]] = {
        f"{BOTH}, --table text": partial(by_models, both=True, table="text"),
        BOTH: partial(by_models, both=True),
        "one model": partial(by_models, both=False),
        **{name: partial(tagged, sides, links) for name, links in others.items()},
    }
    return table(["lines", "tags"], systems, next(iter(others), BOTH), leads=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("labels", "markup"))
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of projection/ and markup/")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for texts")
    parser.add_argument("others", nargs="*", metavar="NAME=FILE", help="German-English links of another aligner")
    args = parser.parse_args()
    print({"labels": labels, "markup": markup}[args.what](args))


if __name__ == "__main__":
    run_script(main)
