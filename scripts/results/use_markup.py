"""The table of docs/use.md: inline tags put onto translations by the bundled models, and along other aligners' links.

DATA/markup/localization-xml.en-de.jsonl has lines of software help with the same XML tags on both sides.  The tags of
one side are put onto the text of the other, and compared with the other's own: positions that differ only by blanks
are equal.  A line is right if all its tags are.  Intervals and paired randomisation tests draw lines.

The models read raw text.  Other aligners link runs of letters and digits, and single marks: OUT/words.de and
OUT/words.en have them, lowercased; the tags follow their links by the same rules.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from gold_sets import markdown, write
from use import BOTH, DIRECTIONS, OTHER, Aligned, arguments, bundled, f1, lead, read_others, turned

from alignment_eval.scoring.aer import Counts
from alignment_eval.transfer.markup import MarkedLine, parse_markup, transfer_markup

WORD = re.compile(r"\w+|[^\w\s]")
#: Lines and tags.
Figures = tuple[Counts, Counts]


class Corpus:
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
        """German-English links of another aligner."""
        target = OTHER[source]
        outputs = []
        for marked, wanted, pair in zip(self.sides[source], self.sides[target], links, strict=True):
            of_pair = set(pair if source == "de" else turned(pair))
            outputs.append(transfer_markup(marked, spans(marked.text), wanted.text, spans(wanted.text), of_pair))
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
    args = arguments(__doc__, "markup/")
    corpus = Corpus(args.data / "markup" / "localization-xml.en-de.jsonl")
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


if __name__ == "__main__":
    main()
