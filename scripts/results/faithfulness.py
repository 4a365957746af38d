"""Which kind of map says best what a prediction needs, and is it the one that aligns best?  For docs/maps.md.

    faithfulness.py measure --gold DIR --set SET --out DIR --csv CSV
    faithfulness.py figure CSV PNG

A map names a source word for each target word: the one with its largest share.  Without it the model gives the target
word another probability (NormModel.deletion); the loss says how much the prediction needed it.  The layer, head and
setting of each kind are those with the largest loss on cmu150, by the bundled model; OUT/maps.txt keeps them.
Comprehensiveness and sufficiency (DeYoung et al. 2020) are of two target words a pair: the loss without the words of
the largest shares, 10, 20 and 50 % of the source, and without all others.  p: paired randomisation over sentences,
against norms.  CSV gets the means of the set; rows of other sets stay.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from gold_sets import CHECKPOINTS, DEV, SETS, Gold, lowercased, markdown, run_script, write
from numpy.typing import NDArray

import alignment_eval as ae
import fairseq_norm_plugin as fnp
from alignment_eval.extraction.extract import links_of, read_word_map
from alignment_eval.extraction.method import ExtractionOptions, MapName, MapNames
from alignment_eval.figures.style import COLUMN, MARKERS, add_legend, new_figure, save_figure, styled
from alignment_eval.maps.sentence import KINDS, SentenceMaps
from alignment_eval.maps.words import SETTINGS, row_shares
from fairseq_norm_plugin.model.inspection import losses_of_words, word_log_probs
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.text.pair import SentencePair

Floats = NDArray[np.float64]
#: attnres_n has the source columns of attn_n; kinds through the feed-forward network take too long.
MEASURED = ("attn_w", "attn_n", "attn_p", "attn_logit", "attnresln_n", "alti", "rollout_w", "alti_rollout")
LARGEST = (0.1, 0.2, 0.5)
#: Target words of a pair whose sets of words are deleted.
WORDS = 2
COLUMNS = ("loss", "loss, unk", "rank correlation", "comprehensiveness", "sufficiency")
#: What the losses are to be compared with.
RANDOM, MOST = "a random word", "the word needed most"


class Pair:
    """A sentence pair, its maps, and the losses without each of its source words, by both ways."""

    def __init__(self, model: NormModel, source: str, target: str, kinds: Sequence[str]) -> None:
        self.maps: SentenceMaps = model.maps(source, target, kinds=kinds)
        self.model, encode = model.forward, model.forward.encode_sentence
        self.encoded = SentencePair(encode(source, 0, "source"), encode(target, 1, "target"))
        self.losses, self.unknown = (losses_of_words(self.model, self.encoded, way) for way in (False, True))

    def shares(self, options: ExtractionOptions) -> Floats:
        """The shares of source words in a map, without null, [target words, source words]."""
        scores = read_word_map(self.maps, options).scores
        assert scores is not None
        return row_shares(scores[:, :-1])

    def loss(self, shares: Floats) -> float:
        """The sum over target words of the losses without the named words."""
        return float(np.take_along_axis(self.losses, shares.argmax(1)[:, None], 1).sum())

    def singles(self, shares: Floats) -> Floats:
        """The sums over target words of both losses and the rank correlation, and the number of words."""
        rows, named = np.arange(len(shares)), shares.argmax(1)
        correlated = np.nan_to_num((ranks(shares) * ranks(self.losses)).sum(1)).sum()
        return np.array([self.losses[rows, named].sum(), self.unknown[rows, named].sum(), correlated, len(rows)])

    def sets(self, every: Sequence[Floats], words: Sequence[int]) -> Floats:
        """Of each of several maps, the sums of comprehensiveness and sufficiency over ``words``."""
        size = self.losses.shape[1]
        cases, places = [np.zeros(size, dtype=bool)], []
        for number, shares in enumerate(every):
            for word in words:
                order = (-shares[word]).argsort(kind="stable")
                for share in LARGEST:
                    largest = np.isin(np.arange(size), order[: max(1, round(share * size))])
                    cases += [largest, ~largest]
                    places += [(number, word, 0), (number, word, 1)]
        distinct, which = np.unique(np.array(cases), axis=0, return_inverse=True)
        found = word_log_probs(self.model, self.encoded, distinct)[which.ravel()]
        sums = np.zeros((len(every), 2))
        for case, (number, word, kind) in enumerate(places, 1):
            sums[number, kind] += (found[0, word] - found[case, word]) / len(LARGEST)
        return sums


def ranks(values: Floats) -> Floats:
    """The ranks of each row, with mean 0 and length 1, whose products are Spearman's correlation; NaN if constant."""
    centred = pd.DataFrame(values).rank(axis=1).to_numpy() - (values.shape[1] + 1) / 2
    with np.errstate(invalid="ignore"):
        return np.asarray(centred / np.sqrt((centred**2).sum(1, keepdims=True)))


def pairs_of(model: NormModel, gold: Gold, size: int) -> dict[int, Pair]:
    """About ``size`` pairs of two source words or more, evenly from a set."""
    texts = list(zip(lowercased(gold.texts[0]), lowercased(gold.texts[1])))
    drawn = range(0, len(texts), max(1, len(texts) // size))
    longer = ((number, *texts[number]) for number in drawn if len(texts[number][0].split()) > 1)
    return {number: Pair(model, source, target, MEASURED) for number, source, target in longer}


def named_maps(model: NormModel, kind: str) -> Iterator[ExtractionOptions]:
    """Every map of a kind: layers, heads, settings."""
    heads = range(model.heads) if KINDS[kind].heads else ()
    for setting in SETTINGS:
        for layer in range(model.layers):
            for head in (None, *heads):
                yield ExtractionOptions(kind, MapNames([MapName(layer, head)]), setting=setting)


def chosen(model: NormModel, pairs: Iterable[Pair], file: Path) -> list[ExtractionOptions]:
    """Of each kind, the map whose named words are needed most, from ``file`` if it is there."""
    if not file.is_file():
        options = [map_ for kind in MEASURED for map_ in named_maps(model, kind)]
        losses = np.sum([[pair.loss(pair.shares(map_)) for map_ in options] for pair in pairs], axis=0)
        table = pd.DataFrame({"kind": [map_.kind for map_ in options], "loss": losses})
        best = [options[number] for number in table.groupby("kind")["loss"].idxmax()]
        write(file, [f"{map_.kind} {map_.heads} {map_.setting}" for map_ in best])
    lines = sorted(map(str.split, file.read_text().splitlines()), key=lambda line: MEASURED.index(line[0]))
    return [ExtractionOptions(kind, MapNames(heads), setting=setting) for kind, heads, setting in lines]


def measure(
    pairs: Mapping[int, Pair], gold: Gold, maps: Sequence[ExtractionOptions]
) -> tuple[Floats, list[str], Floats]:
    """Sums of each pair [pairs, maps, 6]; AER of each map; losses of a random, gold's and the worst word."""
    chance, sums, others = np.random.default_rng(0), [], []
    links: list[list[frozenset[tuple[int, int]]]] = [[] for _ in maps]
    for number, pair in pairs.items():
        every = [pair.shares(map_) for map_ in maps]
        drawn = chance.choice(len(pair.losses), min(WORDS, len(pair.losses)), replace=False)
        found = np.stack([pair.singles(shares) for shares in every])
        sums.append(np.column_stack([found[:, :3], pair.sets(every, drawn.tolist()), found[:, 3:]]))
        for of_map, map_ in zip(links, maps):
            of_map.append(links_of(read_word_map(pair.maps, map_).linked(map_)))
        sure = list(gold.links[number].sure)
        losses = [pair.losses[j, i] for i, j in sure]
        of_gold = pd.Series(losses).groupby([j for _, j in sure]).mean() if sure else pd.Series(dtype=float)
        row_means, largest = pair.losses.mean(1), pair.losses.max(1)
        others.append([row_means.sum(), of_gold.sum(), largest.sum(), len(row_means), len(of_gold), len(row_means)])
    of_pairs = [gold.links[number] for number in pairs]
    return np.stack(sums), [f"{100 * ae.score(of_map, of_pairs).aer:.1f}" for of_map in links], np.array(others)


def p_value(differences: Floats) -> float:
    """Two-sided paired randomisation over sentences, 10,000 draws."""
    signs = np.random.default_rng(0).choice([-1, 1], (10_000, len(differences)))
    return float((1 + (abs(signs @ differences) >= abs(differences.sum()) - 1e-12).sum()) / 10_001)


def measured(args: argparse.Namespace) -> None:
    """Print the table of a set, and put its rows into the CSV."""

    def loaded(path: Path, languages: tuple[str, str]) -> NormModel:
        source, target = languages
        codes = path.parent / "codes.bpe"
        return fnp.load(path, path.parent, source_lang=source, target_lang=target, tokenizer="none", bpe_codes=codes)

    dev = Gold(args.gold, DEV, args.out)
    bundled = loaded(CHECKPOINTS["de"], dev.languages)
    file = args.out / "maps.txt"
    pairs = pairs_of(bundled, dev, args.pairs) if args.set == DEV or not file.is_file() else {}
    maps = chosen(bundled, pairs.values(), file)
    gold = dev if args.set == DEV else Gold(args.gold, args.set, args.out)
    if gold is not dev:
        pairs = pairs_of(loaded(args.path, gold.languages) if args.path else bundled, gold, args.pairs)
    sums, aers, others = measure(pairs, gold, maps)
    words = sums[:, 0, -1]
    sampled = np.minimum(words, WORDS)
    means = sums[..., :-1].sum(0) / np.array([words.sum()] * 3 + [sampled.sum()] * 2)
    norms = MEASURED.index("attn_n")
    table, frames = [], [pd.read_csv(args.csv)] if args.csv.exists() else []
    for number, (map_, aer) in enumerate(zip(maps, aers)):
        tests = [p_value(sums[:, number, c] - sums[:, norms, c]) for c in range(len(COLUMNS))]
        cells = [f"{mean:.2f}" + ("" if number == norms else f" ({p:.2g})") for mean, p in zip(means[number], tests)]
        table.append((f"`{map_.kind}`", map_.titles[0], *cells, aer))
        row = {"set": gold.name, "kind": map_.kind, "map": map_.titles[0], "aer": aer}
        frames.append(pd.DataFrame([{**row, **dict(zip(COLUMNS, means[number].round(3)))}]))
    print(markdown(("kind", "map", *COLUMNS, "AER %"), table))
    totals = others.sum(0)
    for name, loss in zip((RANDOM, "gold's sure words", MOST), totals[:3] / totals[3:]):
        print(f"loss without {name}: {loss:.2f}")
        frames.append(pd.DataFrame([{"set": gold.name, "kind": name, "loss": round(loss, 3)}]))
    pd.concat(frames).drop_duplicates(["set", "kind"], keep="last").to_csv(args.csv, index=False)


@styled()
def figure(args: argparse.Namespace) -> None:
    """Draw the loss without the named word beside AER, of the sets that no map was chosen on."""
    frame = pd.read_csv(args.csv)
    shown = [kind for kind in MEASURED if kind != "attnresln_n"]  # nearly the norms; nor has the page's table it
    rows = {MOST: MOST, **{kind: KINDS[kind].label for kind in shown}, RANDOM: RANDOM}
    drawn = new_figure(COLUMN, 0.75 * COLUMN)
    panels = drawn.subplots(1, 2, sharey=True)
    for number, (name, of_set) in enumerate(frame[frame["set"] != DEV].groupby("set", sort=False)):
        look = {"marker": MARKERS[number], "color": f"C{2 * number}", "label": name, "linestyle": ""}
        for axes, column in zip(panels, ("loss", "aer")):
            axes.plot(of_set.set_index("kind").loc[list(rows), column], range(len(rows)), **look)
    panels[0].set_yticks(range(len(rows)), rows.values())
    panels[0].invert_yaxis()
    for axes, label in zip(panels, ("loss without\nthe word, nats", "AER %")):
        axes.set_xlabel(label)
        axes.set_xlim(left=0)
        axes.grid()
    add_legend(drawn, *panels[0].get_legend_handles_labels())
    save_figure(drawn, args.png, "Loss of log probability without the word that a map names, beside AER")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    made = commands.add_parser("measure")
    made.set_defaults(run=measured)
    made.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with the sets")
    made.add_argument("--set", default=DEV, choices=list(SETS))
    made.add_argument("--pairs", type=int, default=150, metavar="N", help="about this many of a set")
    made.add_argument("--path", type=Path, help="checkpoint of the set's direction, with dictionaries and codes.bpe")
    made.add_argument("--out", type=Path, required=True, metavar="DIR")
    made.add_argument("--csv", type=Path, required=True, metavar="FILE")
    drawn = commands.add_parser("figure")
    drawn.set_defaults(run=figure)
    drawn.add_argument("csv", type=Path)
    drawn.add_argument("png", type=Path)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    run_script(main)
