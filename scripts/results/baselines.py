"""Statistical word aligners on the text of the models: their links, for the rows of docs/figures/systems.csv.

Each aligner is trained on PAIRS.de and PAIRS.en (or the languages of --sets) with the gold sets behind them, lowercased
and without their links, as such aligners are used.  Both directions run one after the other in --python, which has
eflomal, sil-machine and sil-thot.  How to symmetrise is chosen on the last of --sets.  A file in OUT/made is not made
again.  The links of the first set go to OUT/links, their names to OUT/rows.csv.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from gold_sets import DEV, SETS, TEST, Gold, lowercased, make, run_script, write

import alignment_eval as ae
from alignment_eval.links.formats import Links, format_links
from alignment_eval.links.symmetrize import METHODS, VARIANTS

THOT = Path(__file__).with_name("thot_align.py")
TOOLS = {
    "eflomal": "eflomal",
    "fast_align": "fast_align (sil-thot)",
    "hmm": "HMM (sil-thot)",
    "ibm4": "IBM-4 (sil-thot)",
}
SYMMETRISED = [(m, v) for m in METHODS for v in (VARIANTS if m.startswith("grow") else VARIANTS[:1])]
SYMMETRISED.remove(("grow-diag-final-and", "lilt"))


def links_of(
    tool: str, python: Path, pairs: Path, golds: Sequence[Gold], out: Path
) -> Iterator[tuple[str, list[Links]]]:
    """The source-target links of all gold sets, by direction and symmetrised."""
    texts = []
    for which, language in enumerate(golds[0].languages):
        parts = [Path(f"{pairs}.{language}"), *(gold.texts[which] for gold in golds)]
        lines = (line for part in parts for line in lowercased(part))
        texts.append(write(out / "text" / f"{pairs.name}.{language}", lines))
    last = sum(len(gold.links) for gold in golds)
    first, second = (language.title() for language in golds[0].languages)
    sides = {}
    for side, swap in ((f"{first}-{second}", False), (f"{second}-{first}", True)):
        made = out / "made" / f"{tool}-{pairs.name}-{side}.pharaoh"
        source, target = texts[:: -1 if swap else 1]
        command: Sequence[object] = (python, THOT, tool, source, target, last, made)
        if tool == "eflomal":
            command = (python.with_name("eflomal-align"), "-s", source, "-t", target, "-f", made, "--overwrite")
        sides[side] = ae.read_links(make(made, *command), swap=swap)[-last:]
    yield from sides.items()
    forward, reverse = sides.values()
    ways = {way: ae.symmetrize(forward, reverse, *way) for way in SYMMETRISED}
    best = min(ways, key=lambda way: golds[-1].score(ways[way][-len(golds[-1].links) :]).aer)
    yield f"both ({best[0]})", ways[best]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with the sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=(TEST, DEV), help="one, or a test set and another")
    parser.add_argument("--python", type=Path, required=True, metavar="FILE", help="Python that has the aligners")
    parser.add_argument("--pairs", type=Path, nargs="+", required=True, metavar="PREFIX", help="PREFIX.de, PREFIX.en")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    golds = [Gold(args.gold, name, args.out) for name in args.sets]
    rows = []
    for pairs in args.pairs:
        text = f"{len(lowercased(Path(f'{pairs}.{golds[0].languages[0]}'))):,} pairs"
        for tool in args.tools:
            for what, links in links_of(tool, args.python, pairs, golds, args.out):
                lines = map(format_links, links[: len(golds[0].links)])
                path = write(args.out / "links" / f"{tool}-{pairs.name}-{what}.pharaoh", lines)
                rows.append({"group": "measured", "name": f"{TOOLS[tool]}, {what}", "text": text, "links": str(path)})
    pd.DataFrame(rows).to_csv(args.out / "rows.csv", index=False)


if __name__ == "__main__":
    run_script(main)
