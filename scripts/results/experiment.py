"""The experiment of docs/reproduction-tables.md: the 2020 table and the ablation, from two models and two gold sets.

Everything is chosen on GOLD/cmu150 and reported on GOLD/vilar508.  Each step runs a command of this project, prints it
on stderr, and is skipped where its output is there already: new models want a new OUT.  The tables go to stdout, all
figures to OUT/rows.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
from experiment_steps import DEV, TEST, Experiment
from experiment_tables import tables

from alignment_eval.files import write_lines
from alignment_eval.links.symmetrize import METHODS, VARIANTS

DIRECTIONS = ("de-en", "en-de")
THRESHOLDS = [f"threshold={share}" for share in (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)]
SHARES = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
TWO_WAY, GROW, BALANCED = ([f"{rule}={share}" for share in SHARES] for rule in ("two-way", "grow", "balanced"))
FINAL = "--final-punctuation"
BOTH_KINDS = ["attn_w", "attn_n", "alti_rollout"]
PAPER = {"rule": "kobayashi2020", "null": "allow"}
SYMMETRISED = [
    (method, variant)
    for method in METHODS
    for variant in (VARIANTS if method.startswith("grow") else VARIANTS[:1])
    if (method, variant) != ("grow-diag-final-and", "lilt")
]


def cell(sweep: pd.DataFrame, **wanted: object) -> pd.Series:
    """The cell with the lowest AER among those with these values."""
    for column, value in wanted.items():
        sweep = sweep[sweep[column].isin(value) if isinstance(value, list) else sweep[column] == value]
    return sweep.iloc[int(sweep["aer"].argmin())]


def extraction(row: pd.Series, final_punctuation: bool = False) -> list[str]:
    """A cell of a sweep as options of ``align-eval extract``."""
    name = str(int(row.layer)) if pd.isna(row["head"]) else f"{int(row.layer)}.{int(row['head'])}"
    words = ["--kind", row.kind, "--heads", name, "--setting", row.setting, "--rule", row["rule"]]
    return [*words, "--null", row.null, *([FINAL] if final_punctuation else [])]


def directional(experiment: Experiment, direction: str) -> list[tuple[str, str, list[object]]]:
    """Ablation rows of one direction: key, description, options of ``extract``; each chosen on the development set."""
    dev = experiment.sweep(direction, DEV)
    punctuated = experiment.sweep(direction, DEV, FINAL)
    paper = {"level": "layer", **PAPER}
    layers = {"level": "layer", "rule": "kobayashi2020"}
    found: list[tuple[str, str, list[object]]] = [
        ("weights-awi", "weights, best layer, AWI", [*extraction(cell(dev, kind="attn_w", setting="awi", **paper))]),
        ("norms-awi", "norms, best layer, AWI", [*extraction(cell(dev, kind="attn_n", setting="awi", **paper))]),
        ("weights", "weights, best layer, AWO", [*extraction(cell(dev, kind="attn_w", setting="awo", **paper))]),
        ("norms", "norms, best layer, AWO", [*extraction(cell(dev, kind="attn_n", setting="awo", **paper))]),
        ("norms-ln", "norms with residual and layer norm", [*extraction(cell(dev, kind="attnresln_n", **paper))]),
        ("norms-masked", "norms, </s> masked", [*extraction(cell(dev, kind="attn_n", null="mask", **layers))]),
        ("merged", "norms, subwords merged as vectors", [*extraction(cell(dev, kind="attn_n_merged", **layers))]),
        (
            "shift-att",
            "norms, rule shift-att",
            [*extraction(cell(dev, kind="attn_n", level="layer", rule="shift-att"))],
        ),
        (
            "punctuation",
            "norms, rule shift-att, final punctuation",
            [*extraction(cell(punctuated, kind="attn_n", level="layer", rule="shift-att"), True)],
        ),
        ("head", "norms, best head", [*extraction(cell(dev, kind="attn_n", level="head"))]),
        ("alti", "ALTI rollout, best layer", [*extraction(cell(dev, kind="alti_rollout", level="layer"))]),
    ]
    chosen = {
        "set-norms": ("norms, set of maps", ["--kinds", "attn_n"]),
        "set": ("set of maps, any kind", []),
        "set-threshold-norms": ("norms, set of maps, threshold", ["--kinds", "attn_n", "--rules", *THRESHOLDS]),
        "set-threshold": ("set of maps, any kind, threshold", ["--rules", *THRESHOLDS]),
        "set-punctuation": (
            "set of maps, any kind, threshold, final punctuation",
            ["--rules", *THRESHOLDS, FINAL],
        ),
        "set-two-way-norms": ("norms, set of maps, two-way", ["--kinds", "attn_n", "--rules", *TWO_WAY]),
        "set-two-way": ("set of maps, any kind, two-way", ["--rules", *TWO_WAY]),
        "set-mixed-norms": (
            "norms, set of maps of AWO and AWI, two-way",
            ["--kinds", "attn_n", "--rules", *TWO_WAY, "--mix-settings"],
        ),
    }
    for rule, values in (("two-way", TWO_WAY), ("grow", GROW), ("balanced", BALANCED)):
        options = ["--kinds", "attn_n", "--rules", *values, "--mix-settings", FINAL]
        chosen[f"set-mixed-{rule}"] = (f"the same, {rule}, final punctuation", options)
    for name, (words, options) in chosen.items():
        found.append((name, words, ["--profile", experiment.choice(name, direction, *options)]))
    return found


def chosen_maps(experiment: Experiment, direction: str, kind: str) -> list[object]:
    """Kind and maps, of both settings, that are best on the development set with two-way, and how to combine them."""
    choice = experiment.choice(
        f"two-way-{kind}-mixed", direction, "--kinds", kind, "--mix-settings", "--rules", *TWO_WAY
    )
    chosen = json.loads(choice.read_text(encoding="utf-8"))["alone"]["forward"]
    # each with its setting: a single map has that of the choice, the other direction's may have another
    heads = [name if ":" in name else f"{name}:{chosen['setting']}" for name in chosen["heads"].split(",")]
    return ["--kind", kind, "--heads", ",".join(heads), "--setting", "awo", "--combine", chosen["combine"]]


def best_on_dev(experiment: Experiment, direction: str, variants: dict[str, list[object]]) -> str:
    """The name of the variant with the lowest AER on the development set."""

    def aer(name: str) -> float:
        return float(experiment.score(experiment.links(name, direction, DEV, *variants[name]), DEV, direction)["aer"])

    with ThreadPoolExecutor(2) as pool:
        figures = dict(zip(variants, pool.map(aer, variants)))
    return min(figures, key=figures.__getitem__)


def both_directions(experiment: Experiment) -> list[tuple[str, str, dict[str, Path]]]:
    """Rows that need both models: key, description, links of each set."""
    found = []
    reverse = {gold: experiment.records("en-de", gold) for gold in (TEST, DEV)}
    for join, rules in {"mutual": [], "average": ["--rules", "kobayashi2020"]}.items():
        agreement = experiment.choice(f"agreement-{join}", "de-en", *rules, "--reverse", reverse[DEV])
        options = ["--profile", agreement, "--join", join, "--reverse"]
        paths = {g: experiment.links(f"agreement-{join}", "de-en", g, *options, reverse[g]) for g in (TEST, DEV)}
        found.append((f"agreement-{join}", f"maps chosen by agreement, without gold, {join}", paths))
    for what, join, rules, extra in (
        ("mean of both directions' word maps, threshold", "average", THRESHOLDS, []),
        ("the same, final punctuation", "average", THRESHOLDS, [FINAL]),
        ("product of both directions' word maps, two-way", "product", TWO_WAY, []),
        ("the same, final punctuation", "product", TWO_WAY, [FINAL]),
        ("the same, grow, final punctuation", "product", GROW, [FINAL]),
    ):
        found.append(joined(experiment, what, join, rules, extra))
    for name in (
        "norms-masked",
        "punctuation",
        "set",
        "set-threshold",
        "set-punctuation",
        "set-two-way",
        "set-mixed-norms",
        "set-mixed-balanced",
    ):
        found.append(symmetrised(experiment, name))
    return found


def joined(
    experiment: Experiment, what: str, join: str, rules: list[str], extra: list[str]
) -> tuple[str, str, dict[str, Path]]:
    """The best way on the development set to read links from the word maps of both directions, made one by ``join``."""
    reverse = {gold: experiment.records("en-de", gold) for gold in (TEST, DEV)}
    variants = {}
    for kind, rule, combine in itertools.product(BOTH_KINDS, rules, ("mean", "product")):
        name = "-".join([join, kind, combine, rule.replace("=", "-"), *(word.strip("-") for word in extra)])
        options = both_chosen_maps(experiment, kind, combine)
        variants[name] = [*options, "--rule", rule, "--null", "mask", "--join", join, *extra, "--reverse"]
    best = best_on_dev(experiment, "de-en", {name: [*options, reverse[DEV]] for name, options in variants.items()})
    test = experiment.links(best, "de-en", TEST, *variants[best], reverse[TEST])
    return best, what, {TEST: test, DEV: experiment.out / "links" / f"de-en-{best}-{DEV}.pharaoh"}


def both_chosen_maps(experiment: Experiment, kind: str, combine: str) -> list[object]:
    """:func:`chosen_maps` of both directions, combined in one way."""
    one, other = (chosen_maps(experiment, direction, kind)[3] for direction in DIRECTIONS)
    return ["--kind", kind, "--heads", one, "--reverse-heads", other, "--setting", "awo", "--combine", combine]


def symmetrised(experiment: Experiment, name: str) -> tuple[str, str, dict[str, Path]]:
    """The row ``name`` of the two directions, symmetrised in the way that is best on the development set."""
    paths: dict[str, dict[str, Path]] = {}
    for gold, (method, variant) in itertools.product((TEST, DEV), SYMMETRISED):
        key = f"{method}-{variant}"
        path = experiment.out / "links" / f"both-{name}-{key}-{gold}.pharaoh"
        sides = [experiment.out / "links" / f"{direction}-{name}-{gold}.pharaoh" for direction in DIRECTIONS]
        words = ["align-eval", "symmetrize", *sides, "--reverse-swap", "--method", method, "--variant", variant]
        experiment.run([*words, "--output", path], makes=path)
        paths.setdefault(key, {})[gold] = path
    best = min(paths, key=lambda key: experiment.score(paths[key][DEV], DEV)["aer"])
    return f"both-{name}", f"'{name}' of both directions, {best.replace('-', ' ')}", paths[best]


def published(experiment: Experiment, baselines: Path) -> list[tuple[str, str, Path]]:
    """eflomal's stored links, of each direction and symmetrised as is best on the test set itself: direction, row."""
    sides = [baselines / "eflomal" / f"test.deen.{side}.talp" for side in ("fwd", "rev")]
    symmetrised = {}
    for method, variant in SYMMETRISED:
        path = experiment.out / "links" / f"eflomal-{method}-{variant}.pharaoh"
        words = ["align-eval", "symmetrize", *sides, "--method", method, "--variant", variant, "--output", path]
        experiment.run(words, makes=path)
        symmetrised[f"{method}, {variant}"] = path
    best = min(symmetrised, key=lambda name: experiment.score(symmetrised[name], TEST)["aer"])
    return [
        ("de-en", "eflomal (trained on 295,000 pairs with these among them)", sides[0]),
        ("reversed", "the same, reversed", sides[1]),
        ("both", f"the same, best of all symmetrised (oracle): {best}", symmetrised[best]),
    ]


class Rows:
    """The rows with their scores."""

    def __init__(self, args: argparse.Namespace, baseline: Experiment) -> None:
        self._baselines = args.baselines
        self._norms = baseline
        self.rows: list[dict[str, Any]] = []

    def add(self, experiment: Experiment, name: str, what: str, direction: str, paths: dict[str, Path]) -> None:
        """Score links, and compare them with the norms of the same direction and with eflomal."""
        way = direction if direction in DIRECTIONS else "de-en"
        item = {"row": name, "what": what, "direction": direction, **experiment.score(paths[TEST], TEST, way)}
        if DEV in paths:
            item["dev_aer"] = experiment.score(paths[DEV], DEV, way)["aer"]
        norms = self._norms.out / "links" / f"{way}-norms-{TEST}.pharaoh"
        if norms != paths[TEST]:
            item["against_norms"] = experiment.compare(norms, paths[TEST], way)["aer"]
        if self._baselines and DEV in paths and way == "de-en":
            eflomal = self._baselines / "eflomal" / "test.deen.fwd.talp"
            item["against_eflomal"] = experiment.compare(eflomal, paths[TEST], way)["aer"]
        self.rows.append(item)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with vilar508 and cmu150")
    parser.add_argument("--baselines", type=Path, metavar="DIR", help="with eflomal's links")
    parser.add_argument("--forward", type=Path, required=True, metavar="CHECKPOINT", help="German to English")
    parser.add_argument("--reverse", type=Path, required=True, metavar="CHECKPOINT", help="English to German")
    parser.add_argument("--data", type=Path, default=Path("data/demo"), metavar="DIR", help="dictionaries and codes")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    experiment = Experiment(args, args.forward, args.reverse, args.out)
    rows = Rows(args, experiment)
    experiment.binarise()

    def one(direction: str) -> list[tuple[str, str, dict[str, Path]]]:
        experiment.sweep(direction, TEST)
        experiment.mixing(direction)
        return [
            (name, what, {gold: experiment.links(name, direction, gold, *options) for gold in (TEST, DEV)})
            for name, what, options in directional(experiment, direction)
        ]

    with ThreadPoolExecutor(len(DIRECTIONS)) as pool:
        for direction, found in zip(DIRECTIONS, pool.map(one, DIRECTIONS)):
            for name, what, paths in found:
                rows.add(experiment, name, what, direction, paths)
    for name, what, paths in both_directions(experiment):
        rows.add(experiment, name, what, "both", paths)
    if args.baselines:
        for direction, what, path in published(experiment, args.baselines):
            rows.add(experiment, "eflomal", what, direction, {TEST: path})
    write_lines(args.out / "rows.json", [json.dumps(rows.rows, indent=1)])
    print(tables(args.out))


if __name__ == "__main__":
    main()
