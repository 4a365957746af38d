"""The links of our models in docs/reproduction.md, and its table of norms against weights.

It takes about 3 minutes of a processor for vilar508.  Links are made by norm-align, whose command lines go to stderr;
a file in OUT is not made again.  The table goes to stdout, the links of the main table to OUT/links, with their names
in OUT/rows.csv.  MODELS has checkpoint.pt, which translates from the first language of the set to the second,
checkpoint.SECOND-FIRST.pt (checkpoint.en-de.pt) if there is one, their profiles, dictionaries and codes.bpe.
"""

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from gold_sets import DEMO, NORM_ALIGN, SETS, TEST, Gold, make, markdown, run_script, write

import alignment_eval as ae
from alignment_eval.links.formats import Links, format_links
from alignment_eval.profiles.profile import Profile, read_profile

BOTH = "both"
NAMES = {"de": "German", "en": "English", "fr": "French", "cs": "Czech", "sv": "Swedish"}
TABLES = {
    "profile": "table of 20,000 pairs (default)",
    "none": "no lexical table",
    "text": "that table and the text's counts",
}
_PAPER = ("--rule", "kobayashi2020", "--null")
_PRODUCT = ("--setting", "awo", "--combine", "product", "--final-punctuation")
#: What is read of one model, and its options without the kind of the maps; {awi}, {maps}: those of its profile.
READ: dict[str, Sequence[str]] = {
    "layer 0, AWI": ("--heads", "0", "--setting", "awi", *_PAPER, "allow"),
    "layer 1, AWO": ("--heads", "1", "--setting", "awo", *_PAPER, "allow"),
    "layer 1, AWO, `</s>` masked": ("--heads", "1", "--setting", "awo", *_PAPER, "mask"),
    "the one head that aligns in AWI": ("--heads", "{awi}", *_PAPER, "allow"),
    "the two maps of the profile, no table": ("--heads", "{maps}", *_PRODUCT),
}
#: Of these, the better one on the set is the best layer of Kobayashi et al. (2020).
LAYERS = ("layer 0, AWI", "layer 1, AWO")


class Aligner:
    """Links of a gold set by the models of its languages.

    Attributes:
        checkpoints: direction -> checkpoint.
        ways: the directions, and both together if there are two.
    """

    def __init__(self, models: Path, gold: Gold, out: Path) -> None:
        self.models = models
        self.gold = gold
        self.out = out
        first, second = gold.languages
        self.checkpoints = {f"{first}-{second}": models / "checkpoint.pt"}
        if (reverse := models / f"checkpoint.{second}-{first}.pt").exists():
            self.checkpoints[f"{second}-{first}"] = reverse
        self.ways = [*self.checkpoints, *[BOTH][: len(self.checkpoints) - 1]]

    def links(self, name: str, way: str, *options: object) -> Path:
        """The file of source-target links, made by ``way``: a direction, or both."""
        links = ae.read_links(self.made(name, way, *options), swap=way not in (BOTH, next(iter(self.checkpoints))))
        return write(self.out / "links" / f"{name}.pharaoh", map(format_links, links))

    def made(self, name: str, way: str, *options: object) -> Path:
        """What norm-align writes, with the links of a direction in that direction."""
        forward, *reverse = self.checkpoints
        first = forward if way == BOTH else way
        source, target = first.split("-")
        texts = dict(zip(self.gold.languages, self.gold.texts))
        words: list[object] = ["--path", self.checkpoints[first], "--data", self.models, "--cpu", "--tokenizer", "none"]
        words += ["--bpe-codes", self.models / "codes.bpe", "-s", source, "-t", target]
        words += ["--source-text", texts[source], "--target-text", texts[target]]
        words += ["--reverse-path", self.checkpoints[reverse[0]] if way == BOTH else "none", *options]
        made = self.out / "made" / f"{name}.pharaoh"
        return make(made, *NORM_ALIGN, *words, "-o", made)

    def printed(self, way: str) -> Path:
        """The links of fairseq's own ``--print-alignment``: a target subword's largest weight in the last layer."""
        source, target = way.split("-")
        folder = self.out / f"printed-{way}"
        subwords = {}
        for language, text in zip(self.gold.languages, self.gold.texts):
            codes, file = self.models / "codes.bpe", folder / f"test.{language}"
            make(file, "subword-nmt", "apply-bpe", "--codes", codes, "--input", text, "--output", file)
            subwords[language] = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
        words: list[object] = ["fairseq-preprocess", "-s", source, "-t", target, "--testpref", folder / "test"]
        for side, language in (("--srcdict", source), ("--tgtdict", target)):
            words += [side, self.models / f"dict.{language}.txt"]
        make(folder / "bin/preprocess.log", *words, "--destdir", folder / "bin")
        words = ["fairseq-generate", folder / "bin", "--path", self.checkpoints[way], "-s", source, "-t", target]
        words += ["--cpu", "--score-reference", "--print-alignment", "hard", "--required-batch-size-multiple", "1"]
        trusted = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}  # fairseq cannot read its own files with torch >= 2.6
        make(folder / "generate-test.txt", *words, "--results-path", folder, env=trusted)
        links = ae.read_links(folder / "generate-test.txt", swap=source != self.gold.languages[0])
        made = (self._of_words(*sides) for sides in zip(links, *(subwords[name] for name in self.gold.languages)))
        return write(self.out / "links" / f"printed-{way}.pharaoh", map(format_links, made))

    def _of_words(self, links: Links, *sides: Sequence[str]) -> Links:
        """Links of subwords as links of words; those of ``</s>`` go."""
        first, second = (list(itertools.accumulate([0, *(not t.endswith("@@") for t in side[:-1])])) for side in sides)
        return frozenset((first[i], second[j]) for i, j in links if i < len(first) and j < len(second))

    def profile(self, way: str) -> Profile:
        """The profile of a direction's model."""
        return read_profile(Path(f"{self.checkpoints[way]}.align.json"))

    def read(self, way: str, what: str, kind: str) -> Path:
        """The links that one way of :data:`READ` makes of maps of a kind."""
        maps = str(self.profile(way).maps.heads)
        options = [option.format(awi=maps.split(",")[0], maps=maps) for option in READ[what]]
        return self.links(f"{way}-{''.join(filter(str.isalnum, what))}-{kind}", way, "--kind", kind, *options)


def main_table(aligner: Aligner, text: str) -> list[dict[str, str]]:
    """The rows of our models: group, name, text and file of links."""
    rows = {}
    for way in aligner.ways:
        languages = "-".join(NAMES[language] for language in way.split("-")) if way != BOTH else ""
        for table, what in TABLES.items():
            name = f"{f'{languages} alone' if languages else 'both models'}, {what}"
            rows[name] = aligner.links(f"{way}-{table}", way, *(() if table == "profile" else ("--table", table)))
        if languages:
            layers = [aligner.read(way, what, "attn_n") for what in LAYERS]
            best = min(layers, key=lambda links: aligner.gold.score(ae.read_links(links)).aer)
            rows[f"{languages}, norms of the best layer (2020)"] = best
            rows[f"{languages}, fairseq's own --print-alignment"] = aligner.printed(way)
    return [{"group": "ours", "name": name, "text": text, "links": str(path)} for name, path in rows.items()]


def norms_or_weights(aligner: Aligner) -> str:
    """AER of both kinds, and p of the difference."""
    rows = []
    for what in READ:
        cells = [what]
        for way in aligner.checkpoints:
            weights, norms = (aligner.read(way, what, kind) for kind in ("attn_w", "attn_n"))
            cells += [*map(aligner.gold.aer, (weights, norms)), f"{aligner.gold.p(weights, norms):.4f}"]
        rows.append(cells)
    header = (f"{way}: {c}" for way in aligner.checkpoints for c in ("weights", "norms", "p"))
    return markdown(["what is read", *header], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with the set")
    parser.add_argument("--set", choices=SETS, default=TEST)
    parser.add_argument("--text", default="87,652 pairs", help="what the models were trained on, for the rows")
    parser.add_argument("--models", type=Path, default=DEMO, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    aligner = Aligner(args.models, Gold(args.gold, args.set, args.out), args.out)
    pd.DataFrame(main_table(aligner, args.text)).to_csv(args.out / "rows.csv", index=False)
    print(norms_or_weights(aligner))


if __name__ == "__main__":
    run_script(main)
