"""The scores of pairs of docs/reproduction.md, against human labels and against noise in a training text.

DATA/use/quality has translations with human labels (Guerreiro et al. 2022).  Rows count from 1: the constants of the
scores were chosen on odd rows, the table is of even rows.  DATA/train gives the noise test: 10,000 pairs, of which 1 %
are shifted, exchanged or from elsewhere.  DATA/gold/vilar508 gives the altered pairs: targets that repeat words, copy
the source or have no words.  AUROC is the chance that a bad pair scores worse than a good one; intervals (95 %)
resample pairs 1,000 times.  Scores in OUT are not made again.
"""

import argparse
import csv
import lzma
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from gold_sets import CHECKPOINTS, NORM_ALIGN, lowercased, make, markdown, run_script, write
from numpy.typing import NDArray

from fairseq_norm_plugin import load

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
#: Pairs of the noise test, how many of them are bad, and further lines that bad targets come from.
PAIRS, BAD, MORE = 10_000, 100, 10_000
NOISE = ("shifted", "exchanged", "from elsewhere")
#: How many pairs are altered.
ALTERED = 150
#: The maps of the bundled models' profiles, with weights instead of norms.
WEIGHTS = ("--kind", "attn_w", "--heads", "0.0:awi,2", "--reverse-heads", "0.0:awi,2", "--combine", "product")


def auroc(bad: Flags, scores: Floats) -> float:
    """The share of pairs (a bad one, a good one) of which the bad one has the larger score; ties count half, in %."""
    ranks = pd.Series(scores).rank().to_numpy()
    positive, negative = bad.sum(), (~bad).sum()
    return float(100 * (ranks[bad].sum() - positive * (positive + 1) / 2) / (positive * negative))


def with_interval(bad: Flags, scores: Floats) -> str:
    """The AUROC with its bootstrap interval."""
    chance = np.random.default_rng(0)
    drawn = (chance.integers(0, len(bad), len(bad)) for _ in range(1000))
    low, high = np.percentile([auroc(bad[rows], scores[rows]) for rows in drawn], [2.5, 97.5])
    return f"{auroc(bad, scores):.1f} [{low:.1f}, {high:.1f}]"


def precision(bad: Flags, scores: Floats) -> str:
    """The precision in % where 90 % of the bad pairs are found."""
    least = np.sort(scores[bad])[::-1][int(np.ceil(0.9 * bad.sum())) - 1]
    return f"{100 * bad[scores >= least].mean():.0f}"


def scores_of(texts: Sequence[Path], made: Path, *options: object) -> pd.DataFrame:
    """The scores of ``norm-align`` with both bundled models."""
    files = ("--source-text", texts[0], "--target-text", texts[1], "-o", made.with_suffix(".pharaoh"))
    return pd.read_csv(make(made, *NORM_ALIGN, "--path", "demo", *files, "--scores", made, "--cpu", *options), sep="\t")


def quality(data: Path, out: Path) -> str:
    """AUROC of each score for the labels of a half of the translations."""
    file = data / "use/quality/guerreiro2022.de-en.tsv"
    rows = pd.read_csv(file, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
    texts = [write(out / "src.de", rows.src), write(out / "mt.en", rows.mt)]
    one = scores_of(texts, out / "one.tsv", "--reverse-path", "none")
    weights = scores_of(texts, out / "weights.tsv", *WEIGHTS, "--join", "product")
    both = scores_of(texts, out / "both.tsv", "--source-contribution")
    maps = load("demo").maps(list(rows.src), list(rows.mt), kinds=["attn_w"])
    to_end = [of_pair.layer_maps("attn_w")[-1][:, -1].mean() for of_pair in maps]
    #: Of each score its answers: is the target unsupported, is something omitted?
    scores = {
        "log probability": (-both.log_prob, -both.log_prob),
        "log probability, both models": (-both.log_prob - both.reverse_log_prob, -both.reverse_log_prob),
        "source contribution (ALTI+)": (-both.source_contribution, -both.source_contribution),
        "attention to </s>": (to_end, to_end),
        "confidence of links": (-both.confidence, -both.confidence),
        "unlinked words": (both.unlinked_target, both.unlinked_source),
        "**scores, one model**": (one.unsupported, one.omitted),
        "**scores, both, weights for norms**": (weights.unsupported, weights.omitted),
        "**scores, both models**": (both.unsupported, both.omitted),
    }
    labels = ("strong-unsupport", "full-unsupport", "omission")
    strongly, fully, omission = ((rows[label] == 1).to_numpy()[1::2] for label in labels)
    bad = {"hallucination": strongly | fully, "fully detached": fully, "omission": omission}
    table = []
    for name, answers in scores.items():
        unsupported, omitted = (np.asarray(answer, dtype=np.float64)[1::2] for answer in answers)
        cells = map(with_interval, bad.values(), (unsupported, unsupported, omitted))
        found = precision(bad["hallucination"], unsupported), precision(omission, omitted)
        table.append([name, *cells, " / ".join(found)])
    sizes = ", ".join(f"{name} {flags.sum()}" for name, flags in bad.items())
    return f"{markdown(['score', *bad, 'precision at 90 % recall'], table)}\n\n{len(omission)} pairs: {sizes}."


def noise(data: Path, out: Path, others: Sequence[str]) -> str:
    """AUROC of each score for the bad pairs of a training text."""
    texts = [data / f"train/train.{language}.xz" for language in ("de", "en")]
    sources, targets = (lzma.decompress(file.read_bytes()).decode().split("\n")[: PAIRS + MORE] for file in texts)
    chance = random.Random(1)
    pairs = list(zip(sources[:PAIRS], targets))
    kinds = np.full(PAIRS, "", dtype=object)
    for number, row in enumerate(chance.sample(range(PAIRS), BAD)):
        kind = number % len(NOISE)
        elsewhere = targets[PAIRS + chance.randrange(MORE)]
        ways = (sources[row], targets[row + 1]), (targets[row], sources[row]), (sources[row], elsewhere)
        kinds[row], pairs[row] = NOISE[kind], ways[kind]
    texts = [write(out / f"noise.{name}", lines) for name, lines in zip(("de", "en"), zip(*pairs))]
    both = scores_of(texts, out / "noise.tsv", "--tokenizer", "none")
    scores = {
        "log probability": -both.log_prob,
        "**`unsupported`**": both.unsupported,
        "`omitted`": both.omitted,
        **{name: np.loadtxt(file) for name, _, file in (other.partition("=") for other in others)},
    }
    bad = kinds != ""
    table = []
    for name, values in scores.items():
        worse = np.asarray(values, dtype=np.float64)
        worse = np.where(np.isnan(worse), np.nanmax(worse), worse)
        of_kinds = (~bad | (kinds == kind) for kind in NOISE)
        cells = [f"{auroc(bad[rows], worse[rows]):.1f}" for rows in of_kinds]
        table.append([name, with_interval(bad, worse), *cells, precision(bad, worse)])
    return markdown(["score", "AUROC", *NOISE, "precision at 90 % recall"], table)


def repeated(words: int, times: int) -> Callable[[str, str], str]:
    """Repeats the last words of a target, before its punctuation."""

    def target(_: str, target: str) -> str:
        tokens = target.split()
        end = max((at + 1 for at, token in enumerate(tokens) if token[0].isalnum()), default=len(tokens))
        return " ".join(tokens[:end] + tokens[max(end - words, 0) : end] * times + tokens[end:])

    return target


#: The targets of altered pairs, by source and target.
ALTERATIONS: Mapping[str, Callable[[str, str], str]] = {
    "as they are": lambda _, target: target,
    **{f"the last word {times} times more": repeated(1, times) for times in (2, 4, 8)},
    **{f"the last three words {times} times more": repeated(3, times) for times in (2, 4)},
    "the sentence twice": lambda _, target: f"{target} {target}",
    "the source": lambda source, _: source,
    "the second half of the source": lambda source, target: " ".join(
        target.split()[: len(target.split()) // 2] + source.split()[len(source.split()) // 2 :]
    ),
    "a full stop": lambda *_: ".",
}


def altered(data: Path, out: Path) -> str:
    """The share of altered pairs whose answers are above 1/2, in both directions."""
    texts = {name: lowercased(data / f"gold/vilar508/test.{name}")[:ALTERED] for name in CHECKPOINTS}
    columns = []
    for source, target in (("de", "en"), ("en", "de")):
        pairs = list(zip(texts[source], texts[target]))
        targets = [alter(*pair) for alter in ALTERATIONS.values() for pair in pairs]
        sides = {source: texts[source] * len(ALTERATIONS), target: targets}
        files = [write(out / f"altered.{source}-{target}.{name}", lines) for name, lines in sides.items()]
        models = ("--path", CHECKPOINTS[source], "--reverse-path", CHECKPOINTS[target])
        scores = scores_of(files, out / f"altered.{source}-{target}.tsv", *models, "--tokenizer", "none", "--force")
        for answer in (scores.unsupported, scores.omitted):
            columns.append(100 * (answer > 0.5).to_numpy().reshape(-1, ALTERED).mean(axis=1))
    rows = [[name, *(f"{value:.0f}" for value in values)] for name, *values in zip(ALTERATIONS, *columns)]
    heads = [f"`{answer}`, {pair}" for pair in ("De-En", "En-De") for answer in ("unsupported", "omitted")]
    return markdown(["target", *heads], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of use/quality, train/ and gold/vilar508")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for texts and scores")
    parser.add_argument("others", nargs="*", metavar="NAME=FILE", help="scores of OUT/noise.*, larger is worse")
    args = parser.parse_args()
    print(quality(args.data, args.out), end="\n\n", flush=True)
    print(noise(args.data, args.out, args.others), end="\n\n")
    print(altered(args.data, args.out))


if __name__ == "__main__":
    run_script(main)
