"""Defaults for how alignments are read from a model, where no option names them.

``plot`` and ``report`` show single maps and read links by kobayashi2020, as fairseq-generate and monitoring do where no
profile says otherwise (hooks/options.py); ``sweep`` tries all rules.  Constants of a rule, a search, a check or a word
table stand in its own module.

If the alignment of a model has formed, two of its maps are multiplied; if it is still forming, the mean of its last two
layers in AWO is read, with a word table of the text.  Two directions are multiplied.  The final punctuation of both
sides is linked, because the last row of an AWI map, which predicts ``</s>``, often looks elsewhere.  Formed models use
no word table, so that a pair is aligned alone exactly as within a corpus.

All figures were chosen on cmu150 (docs/reproduction.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions, ExtractionOptions, MapName, MapNames

#: The kind of the maps: norms; in these products weights do as well.
KIND = "attn_n"
#: The two-way share for one direction.
SHARE_ALONE = 0.25
#: The two-way share for one direction of a model that was trained to align, whose maps are sharper.
SHARE_GUIDED = 0.35
#: The two-way share for the product of both directions: larger, because a product is sharper.
SHARE_BOTH = 0.4
#: What a word table adds to the share of one direction, by whether its maps have formed: it makes a map sharper.
_WORD_TABLE = {True: 0.05, False: 0.1}
#: Passes over a word_table: 2 were mostly best.
PASSES = 2
#: The fewest sentence pairs for a word table, and for a choice of maps: on fewer, the choice changes from text to text.
FEWEST_PAIRS = 30
#: How many sentence pairs maps are chosen on: more do not change the choice.
PAIRS = 100
#: Pairs of maps that agree by so little less than the best are as good by agreement: their place in the model decides.
CLOSE = 0.05
#: Two words are linked in the comparison of maps from this two-way share on: 0.2 to 0.35 give the same choice.
LINKED = 0.3
#: The alignment of a model has formed from this agreement on: formed models have 0.5 or more, others 0.36 or less.
FORMED = 0.4
#: Formed models whose maps agree less gained up to 4 points from a word table.
WEAK = 0.52


def single_rule(share: float) -> str:
    """The default rule for the maps of one direction, with a two-way share: all source words weigh the same."""
    return f"balanced={share}"


def joined_rule(share: float) -> str:
    """The default rule for the joined word maps of both directions, with a two-way share.

    The words of each side are the target words of one direction, so all of them weigh the same already.
    """
    return f"grow={share}"


#: The default rule for one model.
SINGLE_RULE = single_rule(SHARE_ALONE)


def default_rule(both: BidirectionalOptions | None) -> str:
    """The default rule, by how two directions are combined; None: there is one direction."""
    if both is None or not both.joins_maps:
        return SINGLE_RULE
    return joined_rule(SHARE_BOTH if both.join == "product" else SHARE_ALONE)


def joined(options: ExtractionOptions) -> ExtractionOptions:
    """The options for one direction, with the default rule for joined word maps where they have that for one."""
    share = _share(options)
    return options if share is None else options.with_rule(joined_rule(share))


def _share(options: ExtractionOptions) -> float | None:
    """The share of the default rule for one direction; None: the options have another rule."""
    name, _, value = options.rule.partition("=")
    return float(value) if name == "balanced" else None


def upper_layers(layers: Sequence[int]) -> ExtractionOptions:
    """The mean of the last two layers in AWO, which aligns best in a model whose AWI maps are still forming."""
    names = MapNames(MapName(layer) for layer in sorted(layers)[-2:])
    return ExtractionOptions(KIND, names, setting="awo", rule=SINGLE_RULE, final_punctuation=True)


def product_of(maps: Sequence[MapName], kind: str = KIND) -> ExtractionOptions:
    """The product of maps of which some are read in AWI and some in AWO, and which agree."""
    return ExtractionOptions(
        kind, MapNames(maps), combine="product", setting="awo", rule=SINGLE_RULE, final_punctuation=True
    )


def has_formed(maps: ExtractionOptions) -> bool:
    """Whether the maps are those of a formed model: maps of both settings."""
    return len({name.setting or maps.setting for name in maps.heads}) > 1


def one_direction(maps: ExtractionOptions, word_table: bool, share: float = SHARE_ALONE) -> AlignmentMethod:
    """The method for one model's maps, with a word table of the text or without; ``share`` is that without."""
    if word_table:
        share = round(share + _WORD_TABLE[has_formed(maps)], 2)
    return AlignmentMethod(maps.with_rule(single_rule(share)), word_table_passes=PASSES if word_table else 0)


def both_directions(
    forward: ExtractionOptions, reverse: ExtractionOptions, word_table: bool, share: float = SHARE_BOTH
) -> AlignmentMethod:
    """The method for the maps of two models: the product of both word maps."""
    rule = joined_rule(share)
    return AlignmentMethod(
        forward.with_rule(rule),
        reverse.with_rule(rule),
        BidirectionalOptions(join="product"),
        PASSES if word_table else 0,
    )


def with_word_table(method: AlignmentMethod) -> AlignmentMethod:
    """The method with a word table, if it is one for one direction without: its default share is then larger."""
    share = _share(method.forward)
    if method.word_table_passes or method.reverse is not None or share is None:
        return method
    return one_direction(method.forward, word_table=True, share=share)


def wants_word_table(maps: Sequence[ExtractionOptions], pairs: int | None) -> bool:
    """Whether to count a word table on a text of ``pairs`` sentence pairs (None: unknown), by each model's maps."""
    enough = pairs is not None and pairs >= FEWEST_PAIRS
    return enough and not all(map(has_formed, maps))
