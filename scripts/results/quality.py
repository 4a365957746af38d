"""The tables of docs/scores.md: scores of pairs against human labels, and against noise in a training text.

DATA/use/quality has translations with human labels (Guerreiro et al. 2022).  Rows count from 1: the constants of the
scores were chosen on odd rows, the table is of even rows.  DATA/train gives the noise test: 10,000 pairs, of which 1 %
are shifted, exchanged or from elsewhere.  AUROC is the chance that a bad pair scores worse than a good one; intervals
(95 %) resample pairs 1,000 times.  A file in OUT is not made again.
"""

from __future__ import annotations

import argparse
import itertools
import lzma
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from gold_sets import NORM_ALIGN, markdown, run, write
from numpy.typing import NDArray

from fairseq_norm_plugin import load

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
QUALITY = "use/quality/guerreiro2022.de-en.tsv"
LABELS = ("repetitions", "named-entities", "omission", "strong-unsupport", "full-unsupport")
#: Pairs of the noise test, how many of them are bad, and further lines that bad targets come from.
PAIRS, BAD, MORE = 10_000, 100, 10_000
NOISE = ("shifted", "exchanged", "from elsewhere")
#: The maps of the bundled models' profiles, with weights instead of norms.
WEIGHTS = ("--kind", "attn_w", "--heads", "0.0:awi,2", "--reverse-heads", "0.0:awi,2", "--combine", "product")


def auroc(bad: Flags, scores: Floats) -> float:
    """The share of pairs (a bad one, a good one) of which the bad one has the larger score; ties count half, in %."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positive, negative = bad.sum(), (~bad).sum()
    return float(100 * (ranks[bad].sum() - positive * (positive + 1) / 2) / (positive * negative))


def with_interval(bad: Flags, scores: Floats) -> str:
    """The AUROC with its bootstrap interval."""
    chance = np.random.default_rng(0)
    drawn = (chance.integers(0, len(bad), len(bad)) for _ in range(1000))
    low, high = np.percentile([auroc(bad[rows], scores[rows]) for rows in drawn], [2.5, 97.5])
    return f"{auroc(bad, scores):.1f} [{low:.1f}, {high:.1f}]"


def precision(bad: Flags, scores: Floats, recall: float = 0.9) -> str:
    """The precision in % where this share of the bad pairs is found."""
    least = np.sort(scores[bad])[::-1][int(np.ceil(recall * bad.sum())) - 1]
    return f"{100 * bad[scores >= least].mean():.0f}"


def scores_of(models: Path, texts: Sequence[Path], made: Path, *options: object) -> pd.DataFrame:
    """The scores of ``norm-align`` with one model or both."""
    files = ("--source-text", texts[0], "--target-text", texts[1], "-o", made.with_suffix(".pharaoh"))
    words = ("--path", models / "checkpoint.pt", "-s", "de", "-t", "en", *files, "--scores", made, "--cpu", *options)
    run(*NORM_ALIGN, *words, makes=made)
    return pd.read_csv(made, sep="\t")


def attention_to_end(models: Path, texts: Sequence[Path], made: Path) -> Floats:
    """The mean weight of the source's ``</s>`` in the last layer of the German-English model."""
    if not made.exists():
        model = load(models / "checkpoint.pt", models, "de", "en")
        source, target = (text.read_text(encoding="utf-8").splitlines() for text in texts)
        maps = model.maps(source, target, kinds=["attn_w"])
        write(made, (repr(float(of_pair.layer_maps("attn_w")[-1][:, -1].mean())) for of_pair in maps))
    return np.loadtxt(made)


def quality(data: Path, models: Path, out: Path) -> str:
    """AUROC of each score for the labels of a half of the translations."""
    lines = (data / QUALITY).read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    texts = [write(out / name, [row[which] for row in rows]) for which, name in enumerate(("src.de", "mt.en"))]
    label = {name: np.array([row[3 + k] == "1" for row in rows]) for k, name in enumerate(LABELS)}
    bad = {
        "hallucination": label["strong-unsupport"] | label["full-unsupport"],
        "fully detached": label["full-unsupport"],
        "omission": label["omission"],
    }
    reverse = ("--reverse-path", models / "checkpoint.en-de.pt")
    one = scores_of(models, texts, out / "one.tsv", "--reverse-path", "none")
    weights = scores_of(models, texts, out / "weights.tsv", *reverse, *WEIGHTS, "--join", "product")
    both = scores_of(models, texts, out / "both.tsv", *reverse, "--source-contribution")
    scores: Mapping[str, tuple[object, object]] = {
        "log probability": (-both.log_prob, -both.log_prob),
        "log probability, both models": (-both.log_prob - both.reverse_log_prob, -both.reverse_log_prob),
        "source contribution (ALTI+)": (-both.source_contribution, -both.source_contribution),
        "attention to </s>": (end := attention_to_end(models, texts, out / "end.txt"), end),
        "confidence of links": (-both.confidence, -both.confidence),
        "unlinked words": (both.unlinked_target, both.unlinked_source),
        "**scores, one model**": (one.unsupported, one.omitted),
        "**scores, both, weights for norms**": (weights.unsupported, weights.omitted),
        "**scores, both models**": (both.unsupported, both.omitted),
    }
    even = np.arange(len(rows)) % 2 == 1
    table = []
    for name, answers in scores.items():
        unsupported, omitted = (np.asarray(answer, dtype=np.float64)[even] for answer in answers)
        cells = [
            with_interval(flags[even], omitted if what == "omission" else unsupported) for what, flags in bad.items()
        ]
        found = precision(bad["hallucination"][even], unsupported), precision(bad["omission"][even], omitted)
        table.append([name, *cells, " / ".join(found)])
    sizes = ", ".join(f"{name} {flags[even].sum()}" for name, flags in bad.items())
    return f"{markdown(['score', *bad, 'precision at 90 % recall'], table)}\n\n{even.sum()} pairs: {sizes}."


def noise(data: Path, models: Path, out: Path, others: Sequence[str]) -> str:
    """AUROC of each score for the bad pairs of a training text."""
    read = []
    for language in ("de", "en"):
        with lzma.open(data / f"train/train.{language}.xz", "rt", encoding="utf-8") as file:
            read.append([line.rstrip("\n") for line in itertools.islice(file, PAIRS + MORE)])
    chance = random.Random(1)
    kinds = {row: NOISE[k % len(NOISE)] for k, row in enumerate(chance.sample(range(PAIRS), BAD))}
    pairs = list(zip(*(lines[:PAIRS] for lines in read)))
    for row, kind in kinds.items():
        source, target = read[0][row], read[1][row]
        elsewhere = read[1][PAIRS + chance.randrange(MORE)]
        bad = {NOISE[0]: (source, read[1][row + 1]), NOISE[1]: (target, source), NOISE[2]: (source, elsewhere)}
        pairs[row] = bad[kind]
    texts = [write(out / f"noise.{name}", lines) for name, lines in zip(("de", "en"), zip(*pairs))]
    made = out / "noise.tsv"
    codes = ("--bpe-codes", models / "codes.bpe", "--reverse-path", models / "checkpoint.en-de.pt")
    both = scores_of(models, texts, made, *codes)
    scores = {
        "log probability": -both.log_prob,
        "**`unsupported`**": both.unsupported,
        "`omitted`": both.omitted,
        **{name: np.loadtxt(file) for name, _, file in (other.partition("=") for other in others)},
    }
    flags = np.array([row in kinds for row in range(PAIRS)])
    table = []
    for name, values in scores.items():
        worse = np.asarray(values, dtype=np.float64)
        worse = np.where(np.isnan(worse), np.nanmax(worse), worse)
        of_kinds = [
            f"{auroc(flags[rows], worse[rows]):.1f}"
            for rows in (np.array([kinds.get(row, kind) == kind for row in range(PAIRS)]) for kind in NOISE)
        ]
        table.append([name, with_interval(flags, worse), *of_kinds, precision(flags, worse)])
    return markdown(["score", "AUROC", *NOISE, "precision at 90 % recall"], table)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of use/quality and train/")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for texts and scores")
    parser.add_argument("others", nargs="*", metavar="NAME=FILE", help="scores of OUT/noise.*, larger is worse")
    parser.add_argument("--models", type=Path, default=Path("data/demo"), help="folder of the bundled models")
    args = parser.parse_args()
    print(quality(args.data, args.models, args.out), end="\n\n", flush=True)
    print(noise(args.data, args.models, args.out, args.others))


if __name__ == "__main__":
    main()
