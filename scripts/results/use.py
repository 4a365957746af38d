"""The tables of docs/use.md: labels and inline tags that follow the links of the bundled models, and of other aligners.

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

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gold_sets import CHECKPOINTS, markdown, write

import alignment_eval as ae
from alignment_eval.links.sets import Link
from alignment_eval.scoring.aer import Counts, Score
from alignment_eval.scoring.significance import Resampling, compare, confidence
from alignment_eval.transfer.conll import LabelledSentence, parse_conll
from alignment_eval.transfer.labels import project_labels, spans_of
from alignment_eval.transfer.markup import MarkedLine, parse_markup, transfer_markup
from fairseq_norm_plugin import NormModel, load

OTHER = {"de": "en", "en": "de"}
#: The language whose labels or tags are carried over.
DIRECTIONS = ("en", "de")
BOTH = "both models"
WORD = re.compile(r"\w+|[^\w\s]")
#: The German-English links of each sentence, with their confidences if they have any.
Aligned = Sequence[Mapping[Link, float]]
#: Lines and tags.
Figures = tuple[Counts, Counts]
#: Rules of projection: what becomes of gaps, and whether borders are trimmed.
RULES: dict[str, tuple[Any, bool]] = {
    "default": ("best", True),
    "borders kept": ("best", False),
    "from first to last linked word": ("fill", False),
    "longest run of linked words": ("run", False),
}


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


def counted(rows: Iterable[Sequence[int]]) -> Counts:
    """Found, wanted and right ones of each sentence; then 1 - AER is F1."""
    found, wanted, right = np.array([*rows], dtype=np.int64).T
    return Counts(found, wanted, right, right)


def percent(counts: Counts) -> str:
    """F1 in %."""
    return f"{100 * (1 - Score.of(counts).aer):.1f}"


def f1(counts: Counts) -> str:
    """F1 in %, with its interval."""
    interval = confidence(counts, Resampling())["aer"]
    assert interval is not None  # AER is always defined
    return f"{percent(counts)} [{100 * (1 - interval.high):.1f}, {100 * (1 - interval.low):.1f}]"


def lead(ours: Counts, other: Counts) -> str:
    """How many points of F1 ``ours`` has more, with the interval and p."""
    difference = compare(ours, [other], Resampling())[0]["aer"]
    assert difference.interval is not None
    assert difference.delta is not None
    low, high = 100 * difference.interval.low, 100 * difference.interval.high
    return f"{100 * difference.delta:+.1f} [{low:+.1f}, {high:+.1f}], p {difference.p_randomisation:.4f}"


class Labelled:
    """A labelled text in two languages.

    Args:
        folder: has ``europarl-ner.de.conll`` and ``europarl-ner.en.conll``.
    """

    def __init__(self, folder: Path) -> None:
        self.sentences = {language: self._read(folder / f"europarl-ner.{language}.conll") for language in OTHER}
        self.texts = {
            language: [" ".join(sentence.words) for sentence in side] for language, side in self.sentences.items()
        }

    @staticmethod
    def _read(path: Path) -> list[LabelledSentence]:
        return list(parse_conll(enumerate(path.read_bytes().split(b"\n"), 1), str(path)))

    def align(self, source: str, both: bool) -> Aligned:
        """Links of the model from ``source``, or of both models."""
        pairs = bundled(source, both, tokenizer="none").align(self.texts[source], self.texts[OTHER[source]])
        return [turned(pair.confidences, source) for pair in pairs]

    def counts(self, links: Aligned, source: str, gaps: Any = "best", trimmed: bool = True) -> Counts:
        """The spans of each sentence that are projected from ``source``, in the gold, and right."""
        rows = []
        for given, gold, pair in zip(self.sentences[source], self.sentences[OTHER[source]], links, strict=True):
            words = (given.words, gold.words) if trimmed else None
            labels = project_labels(given.labels, turned(pair, source), len(gold.words), words, gaps)
            found, wanted = set(spans_of(labels)), set(spans_of(gold.labels))
            rows.append((len(found), len(wanted), len(found & wanted)))
        return counted(rows)


def labels(args: argparse.Namespace) -> None:
    """Print F1 of each system with the lead of both models over it, and by the rule of projection."""
    corpus = Labelled(args.data / "projection")
    for language, lines in corpus.texts.items():
        write(args.out / f"lowercased.{language}", map(str.lower, lines))
    systems = {
        BOTH: corpus.align("de", both=True),
        "German-English alone": corpus.align("de", both=False),
        "English-German alone": corpus.align("en", both=False),
        **read_others(args.others),
    }
    table, by_rule = [], []
    for name, links in systems.items():
        row = [name]
        for source in DIRECTIONS:
            counts = corpus.counts(links, source)
            row += [f1(counts), "" if name == BOTH else lead(corpus.counts(systems[BOTH], source), counts)]
        table.append(row)
        both = ([percent(corpus.counts(links, source, *rule)) for source in DIRECTIONS] for rule in RULES.values())
        by_rule.append([name, *(" / ".join(figures) for figures in both)])
    ways = [f"{source} → {OTHER[source]}" for source in DIRECTIONS]
    header = [f"{title}, {way}" for way in ways for title in ("F1 %", "both models' lead")]
    print(markdown(["links", *header], table), end="\n\n")
    print(markdown([f"links ({' / '.join(ways)})", *RULES], by_rule))


class Marked:
    """Lines with the same tags in two languages."""

    def __init__(self, lines: Path) -> None:
        self.rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        self.sides = {language: [parse_markup(row[language], "xml") for row in self.rows] for language in OTHER}

    def by_models(self, source: str, both: bool, **options: Any) -> Figures:
        """The model that translates from ``source`` aligns, or both models."""
        targets = [line.text for line in self.sides[OTHER[source]]]
        outputs = bundled(source, both).transfer_markup([row[source] for row in self.rows], targets, **options)
        return self.figures(OTHER[source], outputs)

    def by_links(self, links: Aligned, source: str) -> Figures:
        """German-English links of another aligner; the tags follow them by the same rules."""
        target = OTHER[source]
        outputs = []
        for marked, wanted, pair in zip(self.sides[source], self.sides[target], links, strict=True):
            spans = [[match.span() for match in WORD.finditer(line.text)] for line in (marked, wanted)]
            outputs.append(transfer_markup(marked, spans[0], wanted.text, spans[1], set(turned(pair, source))))
        return self.figures(target, outputs)

    def figures(self, target: str, outputs: Iterable[str]) -> Figures:
        """Lines and tags: how many there are, are wanted, and are right; F1 is the share of the right ones."""
        lines, tags = [], []
        for output, wanted in zip(outputs, self.sides[target], strict=True):
            found, gold = places(parse_markup(output, "xml")), places(wanted)
            lines.append((1, 1, int(found == gold)))
            tags.append((gold.total(), gold.total(), (found & gold).total()))
        return counted(lines), counted(tags)


def places(line: MarkedLine) -> Counter[tuple[Any, ...]]:
    """The elements of a line, with how much text is before their tags, without blanks."""
    before = [0, *np.cumsum([not char.isspace() for char in line.text])]
    return Counter((element.opening, *(int(before[at]) for at in element.span)) for element in line.elements)


def markup(args: argparse.Namespace) -> None:
    """Print lines and tags that are right, and the lead over the first other aligner."""
    corpus = Marked(args.data / "markup" / "localization-xml.en-de.jsonl")
    for language, side in corpus.sides.items():
        write(args.out / f"words.{language}", [" ".join(WORD.findall(line.text)).lower() for line in side])
    others = read_others(args.others)
    systems = {
        f"{BOTH}, --word-table 2": [corpus.by_models(source, True, word_table=2) for source in DIRECTIONS],
        BOTH: [corpus.by_models(source, True) for source in DIRECTIONS],
        "one model": [corpus.by_models(source, False) for source in DIRECTIONS],
        **{name: [corpus.by_links(links, source) for source in DIRECTIONS] for name, links in others.items()},
    }
    base = next(iter(others), BOTH)
    rows = []
    for name, ways in systems.items():
        row = [name]
        for (lines, tags), (base_lines, _) in zip(ways, systems[base]):
            row += [f1(lines), f1(tags), "" if name == base else lead(lines, base_lines)]
        rows.append(row)
    titles = ("lines %", "tags %", f"lead over {base} in lines")
    print(markdown(["", *(f"{title}, {source} → {OTHER[source]}" for source in DIRECTIONS for title in titles)], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("labels", "markup"))
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of projection/ and markup/")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for texts")
    parser.add_argument("others", nargs="*", metavar="NAME=FILE", help="German-English links of another aligner")
    args = parser.parse_args()
    {"labels": labels, "markup": markup}[args.what](args)


if __name__ == "__main__":
    main()
