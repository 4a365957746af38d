"""The tables of docs/use.md: labels projected along the links of the bundled models, and of other aligners.

Span F1 of DATA/projection (CoNLL 2002, both sides labelled): the labels of one side are projected onto the other, and
scored against the other's own; a span is right if its words and its type are.  Intervals and paired randomisation tests
draw sentences.  OUT gets the lowercased texts, for other aligners.
"""

from __future__ import annotations

import argparse
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
from fairseq_norm_plugin import NormModel, load

OTHER = {"de": "en", "en": "de"}
#: The language whose labels are projected.
DIRECTIONS = ("en", "de")
BOTH = "both models"
#: The German-English links of each sentence, with their confidences if they have any.
Aligned = Sequence[Mapping[Link, float]]
#: Rules of projection: what becomes of gaps, and whether borders are trimmed.
RULES: dict[str, tuple[Any, bool]] = {
    "default": ("best", True),
    "borders kept": ("best", False),
    "from first to last linked word": ("fill", False),
    "longest run of linked words": ("run", False),
}


class Corpus:
    """A labelled text in two languages.

    Args:
        folder: has ``europarl-ner.de.conll`` and ``europarl-ner.en.conll``.
    """

    def __init__(self, folder: Path) -> None:
        self.sentences = {language: read(folder / f"europarl-ner.{language}.conll") for language in OTHER}
        self.texts = {
            language: [" ".join(sentence.words) for sentence in side] for language, side in self.sentences.items()
        }

    def align(self, source: str, both: bool) -> Aligned:
        """Links of the model from ``source``, or of both models."""
        model = bundled(source, both, tokenizer="none")
        links = [pair.confidences for pair in model.align(self.texts[source], self.texts[OTHER[source]])]
        return links if source == "de" else list(map(turned, links))

    def counts(self, links: Aligned, source: str, gaps: Any = "best", trimmed: bool = True) -> Counts:
        """The spans of each sentence that are projected from ``source``, in the gold, and right."""
        rows = []
        for given, gold, pair in zip(self.sentences[source], self.sentences[OTHER[source]], links, strict=True):
            words = (given.words, gold.words) if trimmed else None
            of_pair = pair if source == "de" else turned(pair)
            labels = project_labels(given.labels, of_pair, len(gold.words), words, gaps)
            found, wanted = set(spans_of(labels)), set(spans_of(gold.labels))
            rows.append((len(found), len(wanted), len(found & wanted), len(found & wanted)))
        return Counts(*np.array(rows, dtype=np.int64).T)  # then 1 - AER is F1


def bundled(source: str, both: bool, tokenizer: str | None = None) -> NormModel:
    """The bundled model that translates from ``source``, with the other one or alone."""
    return load(CHECKPOINTS[source], reverse_path=CHECKPOINTS[OTHER[source]] if both else "none", tokenizer=tokenizer)


def read(path: Path) -> list[LabelledSentence]:
    """The sentences of a file."""
    return list(parse_conll(enumerate(path.read_bytes().split(b"\n"), 1), str(path)))


def turned(links: Mapping[Link, float]) -> dict[Link, float]:
    """The links of the other direction."""
    return {(j, i): confidence for (i, j), confidence in links.items()}


def read_others(others: Iterable[str]) -> dict[str, Aligned]:
    """German-English links of other aligners, NAME=FILE."""
    named = (other.partition("=") for other in others)
    return {name: [dict.fromkeys(links, 1.0) for links in ae.read_links(file)] for name, _, file in named}


def f1(counts: Counts) -> str:
    """F1 in %, with its interval."""
    interval = confidence(counts, Resampling())["aer"]
    assert interval is not None  # AER is always defined
    return f"{percent(counts)} [{100 * (1 - interval.high):.1f}, {100 * (1 - interval.low):.1f}]"


def percent(counts: Counts) -> str:
    """F1 in %."""
    return f"{100 * (1 - Score.of(counts).aer):.1f}"


def lead(ours: Counts, other: Counts) -> str:
    """How many points of F1 ``ours`` has more, with the interval and p."""
    difference = compare(ours, [other], Resampling())[0]["aer"]
    assert difference.interval is not None
    assert difference.delta is not None
    low, high = 100 * difference.interval.low, 100 * difference.interval.high
    return f"{100 * difference.delta:+.1f} [{low:+.1f}, {high:+.1f}], p {difference.p_randomisation:.4f}"


def scores(corpus: Corpus, systems: Mapping[str, Aligned]) -> str:
    """F1 of each system, and the lead of both models over it."""
    rows = []
    for name, links in systems.items():
        row = [name]
        for source in DIRECTIONS:
            counts = corpus.counts(links, source)
            row += [f1(counts), "" if name == BOTH else lead(corpus.counts(systems[BOTH], source), counts)]
        rows.append(row)
    titles = ("F1 %", "both models' lead")
    header = [f"{title}, {source} → {OTHER[source]}" for source in DIRECTIONS for title in titles]
    return markdown(["links", *header], rows)


def rules(corpus: Corpus, systems: Mapping[str, Aligned]) -> str:
    """F1 in both directions by the rule of projection."""
    rows = []
    for name, links in systems.items():
        both = ([percent(corpus.counts(links, source, *rule)) for source in DIRECTIONS] for rule in RULES.values())
        rows.append([name, *(" / ".join(figures) for figures in both)])
    ways = " / ".join(f"{source} → {OTHER[source]}" for source in DIRECTIONS)
    return markdown([f"links ({ways})", *RULES], rows)


def arguments(description: str | None, data: str) -> argparse.Namespace:
    """The arguments of this script and of use_markup.py."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help=f"folder of {data}")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for texts")
    parser.add_argument("others", nargs="*", metavar="NAME=FILE", help="German-English links of another aligner")
    return parser.parse_args()


def main() -> None:
    """Print the tables."""
    args = arguments(__doc__, "projection/")
    corpus = Corpus(args.data / "projection")
    for language, lines in corpus.texts.items():
        write(args.out / f"lowercased.{language}", map(str.lower, lines))
    systems = {
        BOTH: corpus.align("de", both=True),
        "German-English alone": corpus.align("de", both=False),
        "English-German alone": corpus.align("en", both=False),
        **read_others(args.others),
    }
    print(scores(corpus, systems), end="\n\n")
    print(rules(corpus, systems))


if __name__ == "__main__":
    main()
