"""Defaults for what is read from a model, chosen on cmu150 (docs/reproduction.md); the same for every command.

If the alignment of a model has formed, two of its maps are multiplied; if it is still forming, its upper layers are
read.  Two directions are multiplied.  Links are read by rule ``grow``, in which small two-way shares need support.
Those of a single direction are read by ``balanced``, in which, besides, all source words weigh the same.  The final
punctuation of both sides is linked, because the last row of an AWI map, which predicts ``</s>``, often looks elsewhere.
A lexicon of the text is counted for a model that is still forming.  Formed models use none, so that a pair is aligned
alone exactly as within a corpus.
"""

from __future__ import annotations

from collections.abc import Sequence

from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions
from alignment_eval.extraction.options import ExtractionOptions, MapName

KIND = "attn_n"
PASSES = 2
#: The smallest number of pairs for which a lexicon helps.
FEWEST_PAIRS = 30
#: The two-way share for one direction without a lexicon.
ALONE = 0.25
#: What a lexicon adds to the share of one direction, by whether its maps have formed.
_LEXICON = {True: 0.05, False: 0.1}
#: The two-way share for the product of both directions.
PRODUCT = 0.4
#: The default rules: for one direction, and for the joined word maps of both.
_SINGLE, _JOINED = "balanced=", "grow="
#: The default rules where options name the maps but not the rule.
SINGLE_RULE, PRODUCT_RULE = "two-way=0.3", f"two-way={PRODUCT}"


def single_rule(share: float) -> str:
    """The default rule for the maps of one direction, with a two-way share."""
    return f"{_SINGLE}{share}"


def joined_rule(share: float) -> str:
    """The default rule for the joined word maps of both directions, with a two-way share.

    The words of each side are the target words of one direction, so all of them weigh the same already.
    """
    return f"{_JOINED}{share}"


def joined(options: ExtractionOptions) -> ExtractionOptions:
    """The options for one direction, with the default rule for joined word maps where they have that for one."""
    if not options.rule.startswith(_SINGLE):
        return options
    return options.with_rule(joined_rule(_share(options)))


def _share(options: ExtractionOptions) -> float:
    return float(options.rule[len(_SINGLE) :])


def upper_layers(layers: Sequence[int]) -> ExtractionOptions:
    """The mean of the last two layers in AWO, which aligns best in a model whose AWI maps are still forming.

    Args:
        layers: the numbers of all layers.
    """
    names = tuple(MapName(layer) for layer in sorted(layers)[-2:])
    return ExtractionOptions(KIND, heads=names, setting="awo", rule=single_rule(ALONE), final_punctuation=True)


def product_of(maps: Sequence[MapName], kind: str = KIND) -> ExtractionOptions:
    """The product of maps of which some are read in AWI and some in AWO, and which agree."""
    rule = single_rule(ALONE)
    return ExtractionOptions(
        kind, heads=tuple(maps), combine="product", setting="awo", rule=rule, final_punctuation=True
    )


def has_formed(maps: ExtractionOptions) -> bool:
    """Whether the maps are those of a formed model: maps of both settings."""
    return len({name.setting or maps.setting for name in maps.maps}) > 1


def one_direction(maps: ExtractionOptions, lexicon: bool, share: float = ALONE) -> AlignmentMethod:
    """The method for one model's maps, with a lexicon of the text or without; ``share`` is that without."""
    if lexicon:
        share = round(share + _LEXICON[has_formed(maps)], 2)
    return AlignmentMethod(maps.with_rule(single_rule(share)), lexicon_passes=PASSES if lexicon else 0)


def both_directions(
    forward: ExtractionOptions, reverse: ExtractionOptions, lexicon: bool, share: float = PRODUCT
) -> AlignmentMethod:
    """The method for the maps of two models: the product of both word maps."""
    rule = joined_rule(share)
    return AlignmentMethod(
        forward.with_rule(rule),
        reverse.with_rule(rule),
        BidirectionalOptions(join="product"),
        PASSES if lexicon else 0,
    )


def with_lexicon(method: AlignmentMethod) -> AlignmentMethod:
    """The method with a lexicon, if it is one for one direction without: the default rule takes a larger share then."""
    if method.lexicon_passes or method.reverse is not None or not method.forward.rule.startswith(_SINGLE):
        return method
    return one_direction(method.forward, lexicon=True, share=_share(method.forward))


def wants_lexicon(maps: Sequence[ExtractionOptions], pairs: int | None) -> bool:
    """Whether to count a lexicon on a text of ``pairs`` sentence pairs (None: unknown), by the maps of each model."""
    enough = pairs is not None and pairs >= FEWEST_PAIRS
    return enough and not all(map(has_formed, maps))
