"""The rows of the bundled models in docs/reproduction.md: links, norms against weights, length and case.

Everything is made by norm-align and scored by align-eval; a file in OUT is not made again.  The tables go to stdout,
the source-target links of the main table to OUT/links.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gold_sets import ALIGN_EVAL, NORM_ALIGN, TEST, Gold, markdown, reversed_links, run, write

CHECKPOINTS = {"de-en": "checkpoint.pt", "en-de": "checkpoint.en-de.pt"}
BOTH = "both"
#: The name of a row of the main table, and its options.
MAIN: dict[str, Sequence[object]] = {
    "": (),
    "-word-table": ("--word-table", 2),
    "-2020": ("--kind", "attn_n", "--heads", "0", "--setting", "awi", "--rule", "kobayashi2020", "--null", "allow"),
}
_PAPER = ("--rule", "kobayashi2020", "--null")
_TWO = ("--heads", "0.0:awi,2", "--setting", "awo", "--combine", "product", "--null", "mask", "--final-punctuation")
_ALONE = (*_TWO, "--rule", "balanced=0.25")
_JOINED = (*_TWO, "--reverse-heads", "0.0:awi,2", "--join", "product", "--rule", "grow=0.4")
#: What is read, the directions, and its options without the kind of the maps.
READINGS: Sequence[tuple[str, Sequence[str], Sequence[object]]] = (
    ("layer 0, AWI", tuple(CHECKPOINTS), ("--heads", "0", "--setting", "awi", *_PAPER, "allow")),
    ("layer 1, AWO", tuple(CHECKPOINTS), ("--heads", "1", "--setting", "awo", *_PAPER, "allow")),
    ("layer 1, AWO, `</s>` masked", tuple(CHECKPOINTS), ("--heads", "1", "--setting", "awo", *_PAPER, "mask")),
    ("the one head that aligns in AWI", tuple(CHECKPOINTS), ("--heads", "0.0", "--setting", "awi", *_PAPER, "allow")),
    ("two maps, pair by pair", tuple(CHECKPOINTS), _ALONE),
    ("two maps, word table", tuple(CHECKPOINTS), (*_TWO, "--rule", "balanced=0.3", "--word-table", 2)),
    ("both models, pair by pair", (BOTH,), _JOINED),
)


@dataclass(frozen=True)
class Aligner:
    """Links of the test set by the bundled models."""

    models: Path
    gold: Gold
    out: Path

    def links(self, name: str, way: str, options: Sequence[object], texts: Sequence[Path] = ()) -> Path:
        """The file of source-target links, made by ``way``: a direction, or both."""
        made = self.out / "made" / f"{name}.pharaoh"
        first = "de-en" if way == BOTH else way
        sides = dict(zip(("de", "en"), texts or self.gold.texts))
        source, target = first.split("-")
        words: list[object] = ["--path", self.models / CHECKPOINTS[first], "--data", self.models, "--cpu"]
        words += ["--bpe-codes", self.models / "codes.bpe", "--dtype", "float32"]
        words += ["-s", source, "-t", target, "--source-text", sides[source], "--target-text", sides[target]]
        other = self.models / CHECKPOINTS["en-de"] if way == BOTH else "none"
        run(*NORM_ALIGN, *words, "--reverse-path", other, *options, "-o", made, makes=made)
        lines = made.read_text(encoding="utf-8").splitlines()
        path = self.out / "links" / f"{name}.pharaoh"
        return write(path, reversed_links(lines) if way == "en-de" else lines)


def norms_or_weights(aligner: Aligner) -> str:
    """AER of both kinds, and p of the difference."""
    rows = []
    for what, ways, options in READINGS:
        cells = [what]
        for way in ways:
            name = "".join(character for character in what if character.isalnum())
            kinds = [
                aligner.links(f"{way}-{name}-{kind}", way, ("--kind", kind, *options)) for kind in ("attn_w", "attn_n")
            ]
            cells += [*map(aligner.gold.aer, kinds), f"{aligner.gold.p(*kinds):.4f}"]
        rows.append(cells + [""] * (7 - len(cells)))
    return markdown(["what is read", *(f"{way}: {c}" for way in CHECKPOINTS for c in ("weights", "norms", "p"))], rows)


def by_length(aligner: Aligner, links: dict[str, Path]) -> str:
    """AER by the number of German words."""
    texts = ("--source", aligner.gold.texts[0], "--target", aligner.gold.texts[1])
    columns: list[dict[str, str]] = []
    for path in links.values():
        found = json.loads(run(*ALIGN_EVAL, "errors", *aligner.gold.options, *texts, "--format", "json", path))
        lengths = [row for row in found["classes"] if (row["by"], row["side"]) == ("sentence_length", "source")]
        columns.append({row["class"]: f"{100 * row['aer']:.2f}" for row in lengths})
    return markdown(["German words", *links], [[name, *(c[name] for c in columns)] for name in columns[0]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with vilar508")
    parser.add_argument("--models", type=Path, default=Path("data/demo"), metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    aligner = Aligner(args.models, Gold(args.gold, TEST, args.out), args.out)
    names = [(way, what) for way in (BOTH, *CHECKPOINTS) for what in MAIN if (way, what) != (BOTH, "-2020")]
    links = {f"{way}{what}": aligner.links(f"{way}{what}", way, MAIN[what]) for way, what in names}
    cased = [args.gold / TEST / f"test.uc.{language}" for language in ("de", "en")]
    links.update({f"{way}-cased": aligner.links(f"{way}-cased", way, (), cased) for way in (BOTH, *CHECKPOINTS)})
    print(markdown(["links", "AER %"], [[name, aligner.gold.aer(path)] for name, path in links.items()]), "\n")
    print(by_length(aligner, {way: links[way] for way in (BOTH, *CHECKPOINTS)}), "\n")
    print(norms_or_weights(aligner))


if __name__ == "__main__":
    main()
