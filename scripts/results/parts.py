"""What each part of the default alignment is worth, and the order of words: two tables of docs/reproduction.md.

    parts.py --gold DIR --set SET … --out DIR

The word maps of the sets are read once, by MODELS (as of ours.py); then links are made of them, each time with one part
changed.  The tables go to stdout: AER in %, by each model alone and by both.

The first table has the words of each model's source in another order, with their maps and their gold, as if the source
were in another language.  The lexical table and two-way shares do not depend on the order, so it changes the posteriors
of the order only.  The final punctuation is that of the text as it is.

The second table leaves out one part at a time.  A lexical table of a profile stays as it was counted, with all parts.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
from gold_sets import DEMO, SETS, TEST, Gold, lowercased, markdown, run_script
from numpy.typing import NDArray
from ours import BOTH, Aligner

from alignment_eval.align_pairs import align_pairs
from alignment_eval.extraction import extract, lexical_table
from alignment_eval.extraction.extract import WordMap, WordMaps
from alignment_eval.extraction.lexical_table import EMPTY
from alignment_eval.maps import words as sharpen
from alignment_eval.maps.words import Floats
from alignment_eval.profiles.chosen import NO_TABLE, OF_TEXT, AlignmentOptions, ChosenMethod
from fairseq_norm_plugin import load
from fairseq_norm_plugin.model.aligner import Aligner as MapAligner
from fairseq_norm_plugin.model.aligner import choose
from fairseq_norm_plugin.text.pair import SentencePair

#: The lexical table of the models' profiles.
OF_PROFILE = "profile"
#: Added to the log likelihood of an order: no other one counts.
CERTAIN = 1e6
#: Puts so many words into another order: gives the place that each had.
Order = Callable[[int, np.random.Generator], NDArray[np.intp]]


@dataclass(frozen=True)
class Way:
    """One way to align a gold set."""

    name: str  #: the direction of a model, or both
    gold: Gold  #: the set
    chosen: ChosenMethod  #: how pairs are aligned
    maps: Sequence[WordMaps]  #: the word maps of the pairs
    exchanged: bool  #: whether the model's source is the set's target

    def aer(self, change: AbstractContextManager[object] | None = None) -> str:
        """AER in %, with a change."""
        with change or nullcontext():
            aligned = list(align_pairs(self.maps, self.chosen.method, self.chosen.table or EMPTY))
        links = [frozenset((j, i) if self.exchanged else (i, j) for i, j in pair.links) for pair in aligned]
        return f"{100 * self.gold.score(links).aer:.2f}"

    def without_order(self) -> str:
        """AER in % with λ = 0."""
        method = self.chosen.method
        assert method.sharpening is not None
        method = replace(method, sharpening=method.sharpening._replace(of_order=0))
        return replace(self, chosen=replace(self.chosen, method=method)).aer()

    def uniform(self) -> str:
        """AER in % if all cells of a map are alike."""
        maps = [(uniform(one), None if other is None else uniform(other)) for one, other in self.maps]
        return replace(self, maps=maps).aer()

    def in_order(self, order: Order) -> str:
        """AER in % with the words of the source in another order; each run draws the same ones."""
        chance, in_text_order = np.random.default_rng(1), sharpen.ordered_shares

        def ordered_shares(maps: Sequence[Floats]) -> list[Floats]:
            places = [order(word_map.shape[1], chance) for word_map in maps]
            shares = in_text_order([word_map[:, own] for word_map, own in zip(maps, places)])
            return [of_pair[:, np.argsort(own)] for of_pair, own in zip(shares, places)]

        return self.aer(patch.object(sharpen, "ordered_shares", ordered_shares))


def uniform(one: WordMap) -> WordMap:
    """A word map, if it is one, whose cells are alike."""
    return one if one.scores is None else replace(one, scores=np.ones_like(one.scores))


def one_to_the_end(size: int, chance: np.random.Generator) -> NDArray[np.intp]:
    """One word, not the last, comes last."""
    place = chance.integers(max(size - 1, 1))
    return np.append(np.delete(np.arange(size), place), place)


def phrases_reversed(size: int, chance: np.random.Generator) -> NDArray[np.intp]:
    """Phrases of 2 to 4 words, the last phrase first."""
    ends = chance.integers(2, 5, size).cumsum()
    return np.concatenate(np.split(np.arange(size), ends[ends < size])[::-1])


ORDERS: dict[str, Order] = {
    "as it is": lambda size, _: np.arange(size),
    "one word to the end": one_to_the_end,
    "phrases of 2 to 4 words in reverse order": phrases_reversed,
    "all words reversed": lambda size, _: np.arange(size)[::-1],
    "random": lambda size, chance: chance.permutation(size),
}


def forward_order() -> AbstractContextManager[object]:
    """A change: of three orders only the forward one."""
    both_orders = sharpen._both_orders

    def certain(sides: Sequence[Floats], size: int) -> tuple[Floats, Floats]:
        posteriors, logs = both_orders(sides, size)
        return posteriors, logs + np.array([CERTAIN, 0])

    return patch.object(sharpen, "_both_orders", certain)


PARTS: dict[str, Callable[[Way], str]] = {
    "all parts": Way.aer,
    "without the order of words": Way.without_order,
    "the forward order only": lambda way: way.aer(forward_order()),
    "without fertility": lambda way: way.aer(patch.object(sharpen, "FERTILITY", 0)),
    "without first letters": lambda way: way.aer(patch.object(lexical_table, "BEGINNINGS", 0)),
    "without smoothing": lambda way: way.aer(patch.object(extract, "SMOOTHING", 0)),
    "one pass": lambda way: way.aer(patch.object(lexical_table, "PASSES", 1)),
}
#: Means something with a lexical table only.
UNIFORM = "uniform maps: lexical table and order alone"


def read_ways(aligner: Aligner, options: AlignmentOptions) -> Iterator[Way]:
    """Read the word maps of a set; gives the ways to align it."""
    first, reverse = [*aligner.checkpoints.values(), Path("none")][:2]
    codes = aligner.models / "codes.bpe"
    model = load(first, aligner.models, *aligner.gold.languages, codes, reverse_path=reverse, tokenizer="none")
    both_sides = zip(model.forward.pipelines, aligner.gold.texts)
    sides = (map(pipeline.read, lowercased(file)) for pipeline, file in both_sides)
    pairs = list(map(SentencePair, *sides))
    chosen = choose(options, model.both, pairs, len(pairs))
    read = MapAligner(chosen, model.both, options).word_maps(0, pairs)
    maps = [of_pair for _, of_pair in sorted(read, key=lambda placed: placed[0].number)]
    for number, (name, one) in enumerate(zip(aligner.checkpoints, model.both)):
        texts = [pair.exchanged for pair in pairs] if number else pairs
        own = [(of_pair[number] or of_pair[0], None) for of_pair in maps]  # a refused pair has one, without a map
        yield Way(name, aligner.gold, choose(options, [one], texts, len(texts)), own, number > 0)
    if model.reverse is not None:
        yield Way(BOTH, aligner.gold, chosen, maps, False)


def table(what: str, rows: Mapping[str, Callable[[Way], str]], ways: Sequence[Way]) -> str:
    """A table of AER with a column for each way."""
    header = (f"{way.gold.name}, {way.name}" for way in ways)
    return markdown([what, *header], [[name, *map(aer, ways)] for name, aer in rows.items()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with the sets")
    parser.add_argument("--set", nargs="+", choices=SETS, default=[TEST], help="one or more, of the models' languages")
    parser.add_argument("--models", type=Path, default=DEMO, metavar="DIR")
    parser.add_argument("--table", choices=(OF_PROFILE, OF_TEXT, NO_TABLE), default=OF_PROFILE)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    options = AlignmentOptions(table=None if args.table == OF_PROFILE else args.table)
    golds = [Gold(args.gold, name, args.out) for name in args.set]
    ways = [way for gold in golds for way in read_ways(Aligner(args.models, gold, args.out), options)]
    orders = {name: partial(Way.in_order, order=order) for name, order in ORDERS.items()}
    print(table("AER %, order of the source", orders, ways), end="\n\n")
    parts = PARTS if args.table == NO_TABLE else {**PARTS, UNIFORM: Way.uniform}
    print(table("AER %, parts", parts, ways))


if __name__ == "__main__":
    run_script(main)
