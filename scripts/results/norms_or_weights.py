"""Norms against weights, everything else the same, and the defaults of norm-align as rows of the ablation.

Paired tests on vilar508 (docs/reproduction-tables.md).  One seed: they say whether a difference holds for other
sentences, not for other models.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from bundled import BOTH, FORWARD, LEXICON, REVERSE, Models, Text, both_ways, links_of, read, read_pairs
from experiment_steps import DEV, FILES, TEST
from experiment_tables import markdown

from alignment_eval.extraction.extract import PairMap
from alignment_eval.extraction.options import ExtractionOptions, MapName, MapNames
from alignment_eval.formats.reading import ReadOptions, read_gold, read_hypothesis
from alignment_eval.links.table import Links
from alignment_eval.scoring.aer import Score, score
from alignment_eval.scoring.significance import Difference, Resampling, compare, confidence
from fairseq_norm_plugin.aligning.text import TokenPair

KINDS = {"attn_w": "weights", "attn_n": "norms"}
#: Maps that are read alone: what, name, setting.
SINGLE = (
    ("layer 0, AWI", MapName(0), "awi"),
    ("layer 1, AWO", MapName(1), "awo"),
    ("layer 2, AWO", MapName(2), "awo"),
    ("head 0 of layer 0, AWI", MapName(0, 0), "awi"),
)
NULLS = {"allow": "", "mask": ", `</s>` masked"}
#: The row that others are compared with: a layer of each model in AWO, as in the ablation.
NORMS = {FORWARD: "layer 1, AWO", REVERSE: "layer 2, AWO"}
DEFAULTS = {"": "two maps, default", LEXICON: "two maps, default, lexicon of the text"}

#: Direction, what is read, links of each kind.
Case = tuple[str, str, list[list[Links]]]


def cases(models: Models, sets: Sequence[Sequence[TokenPair]]) -> Iterator[Case]:
    """Each model reads all sets once; a lexicon is counted on each set by itself."""
    pairs = [pair for one in sets for pair in one]
    found: dict[str, list[list[PairMap]]] = {}
    for way, of in both_ways(pairs).items():
        alone = [
            (what + words, ExtractionOptions(kind, heads=MapNames([name]), setting=setting, null=null))
            for what, name, setting in SINGLE
            for null, words in NULLS.items()
            for kind in KINDS
        ]
        default = [dataclasses.replace(models.maps[way], kind=kind) for kind in KINDS]
        *single, weights, norms = read(models.directions[way], [*(of for _, of in alone), *default], of)
        for first in range(0, len(single), 2):
            options = [of for _, of in alone[first : first + 2]]
            yield way, alone[first][0], list(map(links_of, [way] * 2, single[first : first + 2], options))
        found[way] = [weights, norms]
    ends = [0, len(sets[0]), len(pairs)]
    for way in (FORWARD, REVERSE, BOTH):
        for lexicon, what in DEFAULTS.items():
            kinds = []
            for number, kind in enumerate(KINDS):
                maps = {one: dataclasses.replace(models.maps[one], kind=kind) for one in found}
                text = Text(pairs, maps, {one: found[one][number] for one in found})
                parts = [text.links(way + lexicon, range(*span)) for span in zip(ends, ends[1:])]
                kinds.append([links for part in parts for links in part])
            yield way, what, kinds


def tested(difference: Difference) -> str:
    return "" if difference.delta is None else f"{100 * difference.delta:+.2f} ({difference.p_randomisation:.4f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with vilar508 and cmu150")
    parser.add_argument("--baselines", type=Path, required=True, metavar="DIR", help="with eflomal's links")
    parser.add_argument("--models", type=Path, default=Path("data/demo"), metavar="DIR")
    args = parser.parse_args()
    files = {name: [args.gold / name / file for file in FILES[name]] for name in (TEST, DEV)}
    golds = [list(read_gold(str(files[name][2]), ReadOptions(base="1"))) for name in files]
    sets = [read_pairs(*of[:2]) for of in files.values()]
    eflomal = read_hypothesis(args.baselines / "eflomal" / "test.deen.fwd.talp").each_links()
    against = score(eflomal, golds[0])
    lines: list[list[str]] = []
    rows: list[list[str]] = []
    norms_of: dict[str, Score] = {}
    for way, what, kinds in cases(Models(args.models), sets):
        test = [score(links[: len(sets[0])], golds[0]) for links in kinds]
        dev = [score(links[len(sets[0]) :], golds[1]) for links in kinds]
        figures = [f"{100 * of.aer:.2f}" for of in (*dev, *test)]
        lines.append([way, what, *figures, tested(_compared(test[0], test[1]))])
        print(*lines[-1], sep="\t", flush=True)
        if what == NORMS.get(way):
            norms_of[way] = test[1]
        if what in DEFAULTS.values():
            for kind, of, on_dev in zip(KINDS.values(), test, dev):
                interval = confidence(of.per_sentence, Resampling())["aer"]
                reach = "" if interval is None else f" [{100 * interval.low:.2f}, {100 * interval.high:.2f}]"
                differences = [tested(_compared(norms_of[FORWARD if way == BOTH else way], of))]
                differences.append(tested(_compared(against, of)))
                rows.append(
                    [way, f"{kind}, {what}", f"{100 * on_dev.aer:.2f}", f"{100 * of.aer:.2f}{reach}", *differences]
                )
    header = ["model", "maps", "weights, cmu150", "norms, cmu150", "weights", "norms", "norms − weights (p)"]
    print(markdown(header, lines))
    print(markdown(["direction", "row", "cmu150", "vilar508 [95 %]", "against norms (p)", "against eflomal (p)"], rows))


def _compared(baseline: Score, system: Score) -> Difference:
    return compare(baseline.per_sentence, [system.per_sentence], Resampling())[0]["aer"]


if __name__ == "__main__":
    main()
