"""docs/figures/calibration.csv: what maps norm-align calibrate chooses on few pairs of any domain.

    calibration.py --text ../shared/data/train --gold ../shared/data/gold --out CSV NAME=DIRECTORY/CHECKPOINT=de-en …

--text has train.de.xz, train.en.xz and train.domain.xz.  Of each domain 300 pairs are read; then samples of them are
drawn, 20 of each size, and the maps chosen as calibrate chooses.  What a choice loses is its AER on cmu150 above
that of the best choice.  DIRECTORY has the dictionaries and codes.bpe.
"""

import argparse
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from gold_sets import DEV, Gold, lowercased, run_script, training_text

from alignment_eval.extraction.defaults import DEFAULTS
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.method import ExtractionOptions, MapName, MapNames
from alignment_eval.links.sets import GoldSentence, transpose
from alignment_eval.profiles.profile import product_of, upper_layers
from alignment_eval.profiles.search import choose_by_agreement, map_names
from alignment_eval.scoring.aer import score
from fairseq_norm_plugin import NormModel, load

DOMAINS = {
    "europarl": ("europarl_comtrans", "europarl_nlucw2"),
    "newstest": ("newstest",),
    "ted": ("ted_yash50k",),
    "tatoeba": ("tatoeba_darren",),
    "captions": ("multi30k",),
}
#: Pairs of each domain, of which samples are drawn; the sizes of samples, and how many of each.
POOL, SIZES, DRAWS = 300, (10, 30, 100, 300), 20


def dev_aer(model: NormModel, gold: Gold, backwards: bool) -> dict[MapNames, float]:
    """The AER in % of each pair of maps on cmu150, and of the upper layers."""
    sources, targets = map(lowercased, gold.texts[:: -1 if backwards else 1])
    links = [GoldSentence(transpose(s.sure), transpose(s.possible)) if backwards else s for s in gold.links]
    pairs = list(model.maps(sources, targets, kinds=[DEFAULTS.kind]))
    names = map_names(pairs[0], DEFAULTS.kind)

    def aer(maps: ExtractionOptions) -> float:
        read = replace(maps.with_rule(DEFAULTS.rule()), final_punctuation=DEFAULTS.final_punctuation)
        return 100 * score([extract(pair, read) if pair.ok else frozenset() for pair in pairs], links).aer

    products = [
        product_of([MapName(awi.layer, awi.head, "awi"), MapName(awo.layer, awo.head, "awo")])
        for awi, awo in itertools.product(names, names)
        if awi.layer < awo.layer
    ]
    return {maps.heads: aer(maps) for maps in (*products, upper_layers(range(model.direction.layers)))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NAME=CHECKPOINT=LANGUAGES")
    parser.add_argument("--text", type=Path, required=True, metavar="DIR")
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with cmu150")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    args = parser.parse_args()
    lines = {name: training_text(args.text, name) for name in ("de", "en", "domain")}
    gold = Gold(args.gold, DEV, args.out.parent)
    draws = []
    for name, checkpoint, languages in (model.split("=") for model in args.models):
        source, target = languages.split("-")
        folder = Path(checkpoint).parent
        model = load(checkpoint, folder, source, target, folder / "codes.bpe", tokenizer="none", lowercase=False)
        aer = dev_aer(model, gold, source == "en")
        least, upper = min(aer.values()), upper_layers(range(model.direction.layers))
        for domain, parts in DOMAINS.items():
            places = [place for place, part in enumerate(lines["domain"]) if part in parts]
            chosen = np.random.default_rng(1).permutation(places)[:POOL]
            sources, targets = ([lines[language][place] for place in chosen] for language in (source, target))
            pool = model.maps(sources, targets, kinds=[DEFAULTS.kind])
            for size in SIZES:
                random = np.random.default_rng(7)
                for _ in range(DRAWS):
                    drawn = [pool[place] for place in random.permutation(len(pool))[:size]]
                    best = choose_by_agreement(drawn, pairs=size)
                    lost = aer[(product_of(best.maps) if best and best.formed else upper).heads] - least
                    agreement = 0.0 if best is None else best.dice
                    draws.append((name, size, domain, least, lost, agreement))
    by = ["model", "pairs", "domain", "best AER"]
    table = pd.DataFrame(draws, columns=[*by, "lost", "agreement"]).groupby(by, sort=False)
    figures = {
        "mean lost": ("lost", "mean"),
        "most lost": ("lost", "max"),
        "least agreement": ("agreement", "min"),
        "largest agreement": ("agreement", "max"),
    }
    table.agg(**figures).reset_index().round(2).to_csv(args.out, index=False)


if __name__ == "__main__":
    run_script(main)
