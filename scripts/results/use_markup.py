"""Inline tags put onto a translation along the links of the bundled models, and of other aligners (docs/use.md).

DATA/markup/localization-xml.en-de.jsonl has lines of software help with the same XML tags on both sides.  The tags of
one side are put onto the text of the other, and compared with the other's own: positions that differ only by blanks
are equal.  A line is right if all its tags are.  Intervals draw lines.  Words are runs of letters and digits, and
single marks: OUT/words.de and OUT/words.en, lowercased.  A file in OUT is not made again.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from gold_sets import NORM_ALIGN, markdown, run, write

from alignment_eval.links.read import ReadOptions, read_hypothesis
from alignment_eval.scoring.aer import Counts
from alignment_eval.scoring.significance import Resampling, confidence
from alignment_eval.transfer.markup import MarkedLine, parse_markup, transfer_markup

CHECKPOINTS = {"de": "checkpoint.pt", "en": "checkpoint.en-de.pt"}
DIRECTIONS = (("en", "de"), ("de", "en"))
WORD = re.compile(r"\w+|[^\w\s]")
#: Links of each line, German-English.
Links = list[dict[tuple[int, int], float]]


class Corpus:
    """Lines with the same tags in two languages, and the folder for all that is made."""

    def __init__(self, lines: Path, out: Path) -> None:
        self.out = out
        rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        self.sides = {language: [parse_markup(row[language], "xml") for row in rows] for language in CHECKPOINTS}
        for language, sides in self.sides.items():
            write(out / f"words.{language}", [" ".join(WORD.findall(side.text)).lower() for side in sides])

    def align(self, models: Path, first: str, both: bool, *options: str) -> Links:
        """German-English links of the model that reads ``first``, or of both models."""
        made = self.out / "-".join(["links", first, "both" if both else "alone", *options])
        other = {"de": "en", "en": "de"}[first]
        reverse = models / CHECKPOINTS[other] if both else "none"
        words: list[object] = ["--path", models / CHECKPOINTS[first], "--reverse-path", reverse, "--data", models]
        words += ["--bpe-codes", models / "codes.bpe", "-s", first, "-t", other, "--confidences", "--cpu", *options]
        words += ["--source-text", self.out / f"words.{first}", "--target-text", self.out / f"words.{other}"]
        run(*NORM_ALIGN, *words, "-o", made, makes=made)
        return read_links(made, swap=first == "en")

    def counts(self, links: Links, source: str, target: str) -> tuple[Counts, Counts]:
        """Lines and tags: how many are put, are to be put, and are right (twice); then 1 - AER is the share."""
        rows = []
        for marked, wanted, pairs in zip(self.sides[source], self.sides[target], links, strict=True):
            turned = pairs if source == "de" else {(j, i): p for (i, j), p in pairs.items()}
            line = transfer_markup(marked, spans(marked.text), wanted.text, spans(wanted.text), turned)
            found, gold = places(parse_markup(line, "xml")), places(wanted)
            rows.append((1, int(found == gold), gold.total(), (found & gold).total()))
        one, right, tags, right_tags = np.array(rows, dtype=np.int64).T
        return Counts(one, one, right, right), Counts(tags, tags, right_tags, right_tags)


def spans(text: str) -> list[tuple[int, int]]:
    """The words of a text, by character."""
    return [match.span() for match in WORD.finditer(text)]


def places(line: MarkedLine) -> Counter[tuple[Any, ...]]:
    """The elements of a line, with what is before their tags, without blanks."""
    before = [0, *np.cumsum([not char.isspace() for char in line.text])]
    return Counter((element.opening, *(int(before[at]) for at in element.span)) for element in line.elements)


def read_links(path: Path, swap: bool = False) -> Links:
    """The links of each line, source-target."""
    sentences = read_hypothesis(path, ReadOptions(swap=swap))
    return [dict(sentence.confidence or dict.fromkeys(sentence.possible, 1.0)) for sentence in sentences]


def percent(counts: Counts) -> str:
    """The share of what is right, with its interval."""
    interval = confidence(counts, Resampling())["aer"]
    assert interval is not None  # AER is always defined
    right = 100 * float(counts.hypothesis_sure.sum()) / float(counts.sure.sum())
    return f"{right:.1f} [{100 * (1 - interval.high):.1f}, {100 * (1 - interval.low):.1f}]"


def table(corpus: Corpus, systems: dict[str, Links]) -> str:
    """Lines and tags that are right, in both directions."""
    rows = []
    for name, links in systems.items():
        counts = [figure for direction in DIRECTIONS for figure in corpus.counts(links, *direction)]
        rows.append([name, *map(percent, counts)])
    return markdown(["links", *(f"{what} %, {s} → {t}" for s, t in DIRECTIONS for what in ("lines", "tags"))], rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of markup/")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for words and links")
    parser.add_argument("others", nargs="*", metavar="NAME=FILE", help="German-English links of another aligner")
    parser.add_argument("--models", type=Path, default=Path("data/demo"), help="folder of the bundled models")
    args = parser.parse_args()
    corpus = Corpus(args.data / "markup" / "localization-xml.en-de.jsonl", args.out)
    systems = {
        "both models, lexicon": corpus.align(args.models, "de", True, "--lexicon=2"),
        "both models": corpus.align(args.models, "de", True),
        "German-English alone": corpus.align(args.models, "de", False),
        "English-German alone": corpus.align(args.models, "en", False),
    }
    for name, _, file in (other.partition("=") for other in args.others):
        systems[name] = read_links(Path(file))
    print(table(corpus, systems))


if __name__ == "__main__":
    main()
