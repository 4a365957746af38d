"""docs/figures/calibration.csv: what maps norm-align calibrate chooses on few pairs of any domain.

    calibration.py --text ../shared/data/train --gold ../shared/data/gold --out CSV NAME=DIRECTORY/CHECKPOINT=de-en …

--text has train.de.xz, train.en.xz and train.domain.xz.  Of each domain the links of all maps of --pool pairs
are counted once; then samples of them are drawn, 20 of each size, and the maps chosen as calibrate chooses.  What a
choice loses is its AER on cmu150 above that of the best choice.  DIRECTORY has the dictionaries and codes.bpe.
"""

from __future__ import annotations

import argparse
import lzma
from pathlib import Path

import numpy as np
import pandas as pd
from gold_sets import DEV, Gold
from numpy.typing import NDArray

from alignment_eval.extraction.defaults import FORMED, KIND, SINGLE_RULE
from alignment_eval.extraction.extract import stacked_maps
from alignment_eval.links.read import ReadOptions, read_gold
from alignment_eval.profiles import search
from alignment_eval.scoring.gold_corpus import aer_of
from fairseq_norm_plugin import NormModel, load
from fairseq_norm_plugin.aligner.calibration import _maps

DOMAINS = {
    "europarl": ("europarl_comtrans", "europarl_nlucw2"),
    "newstest": ("newstest",),
    "ted": ("ted_yash50k",),
    "tatoeba": ("tatoeba_darren",),
    "captions": ("multi30k",),
}
SIZES, DRAWS = (10, 30, 100, 300), 20


def counts(model: NormModel, pairs: list[tuple[str, str]]) -> NDArray[np.float64]:
    """What the links of each pair of maps have in common, for each sentence pair."""
    direction = model.direction
    read = [tuple(pipeline.read(line) for pipeline, line in zip(direction.pipelines, pair)) for pair in pairs]
    encoded = {id_: direction.encode((pair[0], pair[1])) for id_, pair in enumerate(read)}
    encoded = {id_: pair for id_, pair in encoded.items() if direction.fits(pair)}
    rows = []
    for sentence in _maps(direction, encoded, 4000):
        compared = search._Pairs.of(sentence, KIND)
        rows.append(search._links_in_common(sentence, stacked_maps(sentence, KIND), compared))
    return np.array(rows)


def dev_aer(model: NormModel, gold: Gold, backwards: bool) -> tuple[NDArray[np.float64], search._Pairs]:
    """The AER of each pair of maps on cmu150, and last that of the upper layers; and the pairs."""
    links = list(read_gold(gold.options[1], ReadOptions(base=str(gold.options[3]))))
    links = search.exchanged_gold(links) if backwards else links
    texts = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in gold.texts]
    direction = model.direction
    encoded = {}
    for id_, pair in enumerate(zip(*(texts[::-1] if backwards else texts))):
        source, target = (pipeline.read(line) for pipeline, line in zip(direction.pipelines, pair))
        encoded[id_] = direction.encode((source, target))
    scorer = search._GoldCounts(links, KIND, SINGLE_RULE, {})
    compared, hits, _ = search._summed(_maps(direction, encoded, 4000), KIND, scorer)
    return 100 * np.array(aer_of(hits.astype(np.int64), sum(len(sentence.sure) for sentence in links))), compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NAME=CHECKPOINT=LANGUAGES")
    parser.add_argument("--text", type=Path, required=True, metavar="DIR")
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with cmu150")
    parser.add_argument("--pool", type=int, default=300, help="pairs of each domain")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    args = parser.parse_args()
    files = {name: args.text / f"train.{name}.xz" for name in ("de", "en", "domain")}
    lines = {name: lzma.decompress(file.read_bytes()).decode().split("\n") for name, file in files.items()}
    gold = Gold(args.gold, DEV, args.out.parent)
    rows = []
    for name, checkpoint, languages in (model.split("=") for model in args.models):
        source, target = languages.split("-")
        folder = Path(checkpoint).parent
        codes = folder / "codes.bpe"
        model = load(checkpoint, folder, source, target, bpe_codes=codes, tokenizer="none", lowercase=False)
        aer, compared = dev_aer(model, gold, source == "en")
        for domain, parts in DOMAINS.items():
            places = [place for place, part in enumerate(lines["domain"]) if part in parts]
            chosen = np.random.default_rng(1).permutation(places)[: args.pool]
            pool = counts(model, [(lines[source][place], lines[target][place]) for place in chosen])
            for size in SIZES:
                random, lost, figures = np.random.default_rng(7), [], []
                for _ in range(DRAWS):
                    drawn = pool[random.permutation(len(pool))[:size]].sum(axis=0)
                    best, dice = search.best_of(compared, drawn) or (-1, 0.0)
                    figures.append(dice)
                    lost.append(aer[best if dice >= FORMED else -1] - aer.min())
                row = {
                    "model": name,
                    "pairs": size,
                    "domain": domain,
                    "best AER": aer.min(),
                    "mean lost": np.mean(lost),
                }
                agreement = {"least agreement": min(figures), "largest agreement": max(figures)}
                rows.append({**row, "most lost": max(lost), **agreement})
    pd.DataFrame(rows).round(2).to_csv(args.out, index=False)


if __name__ == "__main__":
    main()
