"""The rows of our models in docs/reproduction.md: links, norms against weights, rules, length and case.

Everything is made by norm-align and scored by align-eval; a file in OUT is not made again.  The tables go to stdout,
the source-target links of the main table to OUT/links.  MODELS has checkpoint.pt, which translates from the first
language of the set to the second, checkpoint.SECOND-FIRST.pt (checkpoint.en-de.pt), the profiles of both, their
dictionaries and codes.bpe.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gold_sets import ALIGN_EVAL, NORM_ALIGN, SETS, TEST, Gold, markdown, reversed_links, run, write

BOTH = "both"
#: The name of a row of the main table, and its options.
MAIN: dict[str, Sequence[object]] = {
    "": (),
    "-word-table": ("--word-table", 2),
    "-2020": ("--kind", "attn_n", "--heads", "0", "--setting", "awi", "--rule", "kobayashi2020", "--null", "allow"),
}
_PAPER = ("--rule", "kobayashi2020", "--null")
_TWO = ("--setting", "awo", "--combine", "product", "--null", "mask", "--final-punctuation")
#: What is read of one model, and its options without the kind of the maps; {awi}, {maps}: those of its profile.
ALONE: Sequence[tuple[str, Sequence[object]]] = (
    ("layer 0, AWI", ("--heads", "0", "--setting", "awi", *_PAPER, "allow")),
    ("layer 1, AWO", ("--heads", "1", "--setting", "awo", *_PAPER, "allow")),
    ("layer 1, AWO, `</s>` masked", ("--heads", "1", "--setting", "awo", *_PAPER, "mask")),
    ("the AWI map of the default", ("--heads", "{awi}", *_PAPER, "allow")),
    ("two maps, pair by pair", ("--heads", "{maps}", *_TWO, "--rule", "balanced=0.25")),
    ("two maps, word table", ("--heads", "{maps}", *_TWO, "--rule", "balanced=0.3", "--word-table", 2)),
)
#: The same of both models.
JOINED = ("--heads", "{maps}", "--reverse-heads", "{reverse}", *_TWO, "--join", "product", "--rule", "grow=0.4")
#: Rules that the default is compared with: of one model, of both, and other options.
RULES: Sequence[tuple[str, str, str, Sequence[str]]] = (
    ("shares alone", "two-way=0.25", "two-way=0.4", ("--no-final-punctuation",)),
    ("and final punctuation", "two-way=0.25", "two-way=0.4", ()),
    ("and support", "grow=0.25", "grow=0.4", ()),
    ("default", "balanced=0.25", "grow=0.4", ()),
)


@dataclass(frozen=True)
class Aligner:
    """Links of a gold set by the models of its languages."""

    models: Path
    gold: Gold
    out: Path

    @property
    def checkpoints(self) -> dict[str, Path]:
        """Direction -> checkpoint."""
        first, second = self.gold.languages
        backwards = f"{second}-{first}"
        return {
            f"{first}-{second}": self.models / "checkpoint.pt",
            backwards: self.models / f"checkpoint.{backwards}.pt",
        }

    @property
    def ways(self) -> tuple[str, ...]:
        """Both models, and each alone."""
        return BOTH, *self.checkpoints

    def maps(self) -> list[str]:
        """The names of the maps that the profile of each model reads."""
        profiles = [json.loads(Path(f"{path}.align.json").read_text("utf-8")) for path in self.checkpoints.values()]
        return [str(profile["streamed"]["forward"]["heads"]) for profile in profiles]

    def links(self, name: str, way: str, options: Sequence[object], texts: Sequence[Path] = ()) -> Path:
        """The file of source-target links, made by ``way``: a direction, or both."""
        made = self.out / "made" / f"{name}.pharaoh"
        forward, reverse = self.checkpoints
        first = forward if way == BOTH else way
        sides = dict(zip(self.gold.languages, texts or self.gold.texts))
        source, target = first.split("-")
        words: list[object] = ["--path", self.checkpoints[first], "--data", self.models, "--cpu"]
        words += ["--bpe-codes", self.models / "codes.bpe", "--dtype", "float32"]
        words += ["-s", source, "-t", target, "--source-text", sides[source], "--target-text", sides[target]]
        other = self.checkpoints[reverse] if way == BOTH else "none"
        run(*NORM_ALIGN, *words, "--reverse-path", other, *options, "-o", made, makes=made)
        lines = made.read_text(encoding="utf-8").splitlines()
        path = self.out / "links" / f"{name}.pharaoh"
        return write(path, reversed_links(lines) if way == reverse else lines)


def norms_or_weights(aligner: Aligner) -> str:
    """AER of both kinds, and p of the difference."""
    maps = dict(zip(aligner.checkpoints, aligner.maps()))
    forward, reverse = maps.values()
    readings = [(what, tuple(maps), options) for what, options in ALONE]
    rows = []
    for what, ways, options in (*readings, ("both models, pair by pair", (BOTH,), JOINED)):
        cells = [what]
        for way in ways:
            name = "".join(character for character in what if character.isalnum())
            read = maps.get(way, forward)
            named = {"{awi}": read.split(",")[0], "{maps}": read, "{reverse}": reverse}
            words = [named.get(str(option), option) for option in options]
            kinds = [
                aligner.links(f"{way}-{name}-{kind}", way, ("--kind", kind, *words)) for kind in ("attn_w", "attn_n")
            ]
            cells += [*map(aligner.gold.aer, kinds), f"{aligner.gold.p(*kinds):.4f}"]
        rows.append(cells + [""] * (7 - len(cells)))
    return markdown(["what is read", *(f"{way}: {c}" for way in maps for c in ("weights", "norms", "p"))], rows)


def by_rule(aligner: Aligner) -> str:
    """AER by the rules that make the default, one after the other."""
    rows = []
    for number, (what, alone, both, options) in enumerate(RULES):
        rules = [both, *(alone for _ in aligner.checkpoints)]
        made = [
            aligner.links(f"{way}-rule{number}", way, ("--rule", rule, *options))
            for way, rule in zip(aligner.ways, rules)
        ]
        rows.append([what, *map(aligner.gold.aer, made)])
    return markdown(["rule", *aligner.ways], rows)


def by_length(aligner: Aligner, links: dict[str, Path]) -> str:
    """AER by the number of source words."""
    texts = ("--source", aligner.gold.texts[0], "--target", aligner.gold.texts[1])
    columns: list[dict[str, str]] = []
    for path in links.values():
        found = json.loads(run(*ALIGN_EVAL, "errors", *aligner.gold.options, *texts, "--format", "json", path))
        lengths = [row for row in found["classes"] if (row["by"], row["side"]) == ("sentence_length", "source")]
        columns.append({row["class"]: f"{100 * row['aer']:.2f}" for row in lengths})
    return markdown(["source words", *links], [[name, *(c[name] for c in columns)] for name in columns[0]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with the set")
    parser.add_argument("--set", choices=SETS, default=TEST)
    parser.add_argument("--models", type=Path, default=Path("data/demo"), metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    aligner = Aligner(args.models, Gold(args.gold, args.set, args.out), args.out)
    names = [(way, what) for way in aligner.ways for what in MAIN if (way, what) != (BOTH, "-2020")]
    links = {f"{way}{what}": aligner.links(f"{way}{what}", way, MAIN[what]) for way, what in names}
    cased = [args.gold / TEST / f"test.uc.{language}" for language in ("de", "en")]
    if args.set == TEST:
        links.update({f"{way}-cased": aligner.links(f"{way}-cased", way, (), cased) for way in aligner.ways})
    print(markdown(["links", "AER %"], [[name, aligner.gold.aer(path)] for name, path in links.items()]), "\n")
    print(by_length(aligner, {way: links[way] for way in aligner.ways}), "\n")
    print(by_rule(aligner), "\n")
    print(norms_or_weights(aligner))


if __name__ == "__main__":
    main()
