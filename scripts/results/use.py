"""The tables of docs/use.md: labels projected along the links of the bundled models, and of other aligners.

Span F1 of DATA/projection (CoNLL 2002, both sides labelled): the labels of one side are projected onto the other by
align-eval project, and scored against the other's own; a span is right if its words and its type are.  Intervals and
paired randomisation tests draw sentences.  The models read the text lowercased.  A file in OUT is not made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gold_sets import ALIGN_EVAL, NORM_ALIGN, markdown, run, write

from alignment_eval.files import file_hash
from alignment_eval.scoring.aer import Counts
from alignment_eval.scoring.significance import Resampling, compare, confidence
from alignment_eval.transfer.conll import LabelledSentence, parse_conll
from alignment_eval.transfer.labels import spans_of

CHECKPOINTS = {"de": "checkpoint.pt", "en": "checkpoint.en-de.pt"}
OTHER = {"de": "en", "en": "de"}
#: The language whose labels are projected.
DIRECTIONS = ("en", "de")
BOTH = "both models"
#: Name -> links, and the language that they begin with.
Systems = dict[str, tuple[Path, str]]
#: Rules of project, and their options.
RULES: dict[str, Sequence[str]] = {
    "default": (),
    "borders kept": ("--keep-borders",),
    "from first to last linked word": ("--gaps", "fill", "--keep-borders"),
    "longest run of linked words": ("--gaps", "run", "--keep-borders"),
}


class Corpus:
    """A labelled text in two languages.

    Args:
        folder: has ``europarl-ner.de.conll`` and ``europarl-ner.en.conll``.
        out: the folder for all that is made.
    """

    def __init__(self, folder: Path, out: Path) -> None:
        self.out = out
        self.labels = {language: folder / f"europarl-ner.{language}.conll" for language in CHECKPOINTS}
        self.sentences = {language: read(path) for language, path in self.labels.items()}
        self.texts = {language: self._text(language, lower=False) for language in CHECKPOINTS}
        self.lowercased = {language: self._text(language, lower=True) for language in CHECKPOINTS}

    def _text(self, language: str, lower: bool) -> Path:
        lines = [" ".join(sentence.words) for sentence in self.sentences[language]]
        name = f"{'lowercased' if lower else 'text'}.{language}"
        return write(self.out / name, [line.lower() if lower else line for line in lines])

    def align(self, models: Path, source: str, both: bool) -> Path:
        """Links of the model from ``source``, or of both models, source-target from there."""
        target = OTHER[source]
        made = self.out / f"{source}-{target}{'-both' if both else ''}.scored"
        reverse = models / CHECKPOINTS[target] if both else "none"
        words: list[object] = ["--path", models / CHECKPOINTS[source], "--reverse-path", reverse, "--data", models]
        words += ["--bpe-codes", models / "codes.bpe", "-s", source, "-t", target, "--confidences", "--cpu"]
        words += ["--source-text", self.lowercased[source], "--target-text", self.lowercased[target], "-o", made]
        run(*NORM_ALIGN, *words, makes=made)
        return made

    def counts(self, links: Path, links_from: str, source: str, options: Sequence[str] = ()) -> Counts:
        """The spans of each sentence that are projected from ``source``, in the gold, and right."""
        target = OTHER[source]
        name = f"{file_hash(links)}-{'-'.join(option.strip('-') for option in options) or 'default'}-to.{target}.conll"
        made = self.out / "projected" / name
        swap = () if links_from == source else ("--links-swap",)
        files = ("--labels", self.labels[source], "--links", links, "--target-text", self.texts[target], "-o", made)
        run(*ALIGN_EVAL, "project", *files, *swap, *options, makes=made)
        rows = []
        for projected, gold in zip(read(made), self.sentences[target], strict=True):
            found, wanted = set(spans_of(projected.labels)), set(spans_of(gold.labels))
            rows.append((len(found), len(wanted), len(found & wanted), len(found & wanted)))
        return Counts(*np.array(rows, dtype=np.int64).T)  # then 1 - AER is F1


def read(path: Path) -> list[LabelledSentence]:
    """The sentences of a file."""
    return list(parse_conll(enumerate(path.read_bytes().split(b"\n"), 1), str(path)))


def f1(counts: Counts) -> str:
    """F1 in %, with its interval."""
    interval = confidence(counts, Resampling())["aer"]
    assert interval is not None  # AER is always defined
    return f"{percent(counts)} [{100 * (1 - interval.high):.1f}, {100 * (1 - interval.low):.1f}]"


def percent(counts: Counts) -> str:
    """F1 in %."""
    total = counts.total()
    return f"{100 * 2 * int(total.hypothesis_sure) / int(total.hypothesis + total.sure):.1f}"


def lead(ours: Counts, other: Counts) -> str:
    """How many points of F1 ``ours`` has more, with the interval and p."""
    difference = compare(ours, [other], Resampling())[0]["aer"]
    assert difference.interval is not None
    assert difference.delta is not None
    low, high = 100 * difference.interval.low, 100 * difference.interval.high
    return f"{100 * difference.delta:+.1f} [{low:+.1f}, {high:+.1f}], p {difference.p_randomisation:.4f}"


def scores(corpus: Corpus, systems: Systems) -> str:
    """F1 of each system, and the lead of both models over it."""
    rows = []
    for name, pair in systems.items():
        row = [name]
        for source in DIRECTIONS:
            counts = corpus.counts(*pair, source)
            row += [f1(counts), "" if name == BOTH else lead(corpus.counts(*systems[BOTH], source), counts)]
        rows.append(row)
    titles = ("F1 %", "both models' lead")
    header = [f"{title}, {source} → {OTHER[source]}" for source in DIRECTIONS for title in titles]
    return markdown(["links", *header], rows)


def rules(corpus: Corpus, systems: Systems) -> str:
    """F1 in both directions by the rule of project."""
    rows = []
    for name, pair in systems.items():
        both = ([percent(corpus.counts(*pair, source, rule)) for source in DIRECTIONS] for rule in RULES.values())
        rows.append([name, *(" / ".join(figures) for figures in both)])
    ways = " / ".join(f"{source} → {OTHER[source]}" for source in DIRECTIONS)
    return markdown([f"links ({ways})", *RULES], rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of projection/")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for texts, links and labels")
    parser.add_argument("others", nargs="*", metavar="NAME=FILE", help="De-En links of another aligner")
    parser.add_argument("--models", type=Path, default=Path("data/demo"), help="folder of the bundled models")
    args = parser.parse_args()
    corpus = Corpus(args.data / "projection", args.out)
    systems: Systems = {
        BOTH: (corpus.align(args.models, "de", both=True), "de"),
        "German-English alone": (corpus.align(args.models, "de", both=False), "de"),
        "English-German alone": (corpus.align(args.models, "en", both=False), "en"),
    }
    for other in args.others:
        name, _, file = other.partition("=")
        systems[name] = (Path(file), "de")
    print(scores(corpus, systems), end="\n\n")
    print(rules(corpus, systems))


if __name__ == "__main__":
    main()
