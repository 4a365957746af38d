"""The table of docs/use.md: inline tags put onto translations by norm-align --markup, and along other aligners' links.

DATA/markup/localization-xml.en-de.jsonl has lines of software help with the same XML tags on both sides.  The tags of
one side are put onto the text of the other, and compared with the other's own: positions that differ only by blanks
are equal.  A line is right if all its tags are.  Intervals and paired randomisation tests draw lines.

norm-align reads raw text.  Other aligners link runs of letters and digits, and single marks: OUT/words.de and
OUT/words.en have them, lowercased; the tags follow their links by the same rules.  A file in OUT is not made again.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from gold_sets import NORM_ALIGN, markdown, run, write
from use import BOTH, CHECKPOINTS, DIRECTIONS, OTHER, f1, lead

from alignment_eval.links.read import read_hypothesis
from alignment_eval.scoring.aer import Counts
from alignment_eval.transfer.markup import MarkedLine, parse_markup, transfer_markup

WORD = re.compile(r"\w+|[^\w\s]")
#: Lines and tags.
Figures = tuple[Counts, Counts]


class Corpus:
    """Lines with the same tags in two languages, and the folder for all that is made."""

    def __init__(self, lines: Path, out: Path) -> None:
        self.out = out
        rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        self.sides = {language: [parse_markup(row[language], "xml") for row in rows] for language in OTHER}
        for language, side in self.sides.items():
            write(out / f"tags.{language}", [row[language] for row in rows])
            write(out / f"text.{language}", [line.text for line in side])
            write(out / f"words.{language}", [" ".join(WORD.findall(line.text)).lower() for line in side])

    def by_models(self, models: Path, source: str, both: bool, *options: str) -> Figures:
        """The model that translates from ``source`` aligns, or both models."""
        target = OTHER[source]
        made = self.out / "-".join([source, target, "both" if both else "alone", *options])
        reverse = models / CHECKPOINTS[target] if both else "none"
        words: list[object] = ["--path", models / CHECKPOINTS[source], "--reverse-path", reverse, "--cpu", *options]
        texts = ("--source-text", self.out / f"tags.{source}", "--target-text", self.out / f"text.{target}")
        run(*NORM_ALIGN, *words, *texts, "--markup", "xml", "-o", made, makes=made)
        return self.figures(target, made.read_text(encoding="utf-8").splitlines())

    def by_links(self, links: Path, source: str) -> Figures:
        """German-English links of another aligner."""
        target = OTHER[source]
        outputs = []
        for marked, wanted, sentence in zip(
            self.sides[source], self.sides[target], read_hypothesis(links), strict=True
        ):
            pairs = {(i, j) if source == "de" else (j, i) for i, j in sentence.possible}
            outputs.append(transfer_markup(marked, spans(marked.text), wanted.text, spans(wanted.text), pairs))
        return self.figures(target, outputs)

    def figures(self, target: str, outputs: Iterable[str]) -> Figures:
        """Lines and tags: how many there are, are wanted, and are right; F1 is the share of the right ones."""
        rows = []
        for output, wanted in zip(outputs, self.sides[target], strict=True):
            found, gold = places(parse_markup(output, "xml")), places(wanted)
            rows.append((1, int(found == gold), gold.total(), (found & gold).total()))
        one, right, tags, right_tags = np.array(rows, dtype=np.int64).T
        return Counts(one, one, right, right), Counts(tags, tags, right_tags, right_tags)


def spans(text: str) -> list[tuple[int, int]]:
    """The words of a text, by character."""
    return [match.span() for match in WORD.finditer(text)]


def places(line: MarkedLine) -> Counter[tuple[Any, ...]]:
    """The elements of a line, with how much text is before their tags, without blanks."""
    before = [0, *np.cumsum([not char.isspace() for char in line.text])]
    return Counter((element.opening, *(int(before[at]) for at in element.span)) for element in line.elements)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of markup/")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for texts and outputs")
    parser.add_argument("others", nargs="*", metavar="NAME=FILE", help="German-English links of another aligner")
    parser.add_argument("--models", type=Path, default=Path("data/demo"), help="folder of the bundled models")
    args = parser.parse_args()
    corpus = Corpus(args.data / "markup" / "localization-xml.en-de.jsonl", args.out)
    systems = {
        f"{BOTH}, --word-table 2": [
            corpus.by_models(args.models, source, True, "--word-table=2") for source in DIRECTIONS
        ],
        BOTH: [corpus.by_models(args.models, source, True) for source in DIRECTIONS],
        "one model": [corpus.by_models(args.models, source, False) for source in DIRECTIONS],
    }
    base = BOTH if not args.others else args.others[0].partition("=")[0]
    for name, _, file in (other.partition("=") for other in args.others):
        systems[name] = [corpus.by_links(Path(file), source) for source in DIRECTIONS]
    rows = []
    for name, ways in systems.items():
        row = [name]
        for (lines, tags), (base_lines, _) in zip(ways, systems[base]):
            row += [f1(lines), f1(tags), "" if name == base else lead(lines, base_lines)]
        rows.append(row)
    titles = ("lines %", "tags %", f"lead over {base} in lines")
    print(markdown(["", *(f"{title}, {source} → {OTHER[source]}" for source in DIRECTIONS for title in titles)], rows))


if __name__ == "__main__":
    main()
