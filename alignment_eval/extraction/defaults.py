"""The defaults of alignment, where no option says otherwise; commands, Python and the fairseq tasks read them here.

If the alignment of a model has formed, two of its maps are multiplied; if it is still forming, the mean of its last two
layers in AWO is read.  Two directions are multiplied.  A lexical table and neighbours sharpen the word map.  The final
punctuation of both sides is linked, because the last row of an AWI map, which predicts ``</s>``, often looks elsewhere.

Constants of a rule, a search, a check or a lexical table stand in its own module.  All were chosen on cmu150
(docs/reproduction.md).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Defaults:
    """What is read of a model, and how links are made of it.

    Attributes:
        kind: the kind of the maps: norms; in the products of a profile weights do as well.
        setting: the setting of maps that a command line names.
        combine: how several named maps become one.
        map_rule: the rule of single maps that nobody chose to align by: of ``plot``, ``report``, fairseq-generate,
            monitoring, and of Python's ``ExtractionOptions``.
        map_setting: the setting of the last.
        one_direction: the rule for the map of one direction; it takes a share.
        share: its least two-way share.
        two_directions: the rule for the combined word map of two directions; it takes a share, too.  The words of each
            side are the target words of one direction, so all of them weigh the same already.
        share_sharp: the same for a word map that is sharp: sharpened, or the product of two directions.
        join: how the word maps of two directions become one.
        final_punctuation: whether the final punctuation of both sides is linked to each other only, by a profile; where
            maps are named it is not.
        table_pairs: a lexical table is counted on this number of sentence pairs, the first of the text.
        fewest_pairs: the fewest sentence pairs for a choice of maps, and for a lexical table that nobody asked for: on
            fewer, the choice changes from text to text.
        profile_pairs: how many sentence pairs maps are chosen on: more do not change the choice.
        max_tokens: tokens of a batch, pads included.
    """

    kind: str = "attn_n"
    setting: str = "awo"
    combine: str = "mean"
    map_rule: str = "kobayashi2020"
    map_setting: str = "awi"
    one_direction: str = "balanced"
    share: float = 0.25
    two_directions: str = "grow"
    share_sharp: float = 0.4
    join: str = "product"
    final_punctuation: bool = True
    table_pairs: int = 20_000
    fewest_pairs: int = 30
    profile_pairs: int = 300
    max_tokens: int = 4000

    def rule(self, join: str | None = None, sharpened: bool = False) -> str:
        """The rule of one direction, or of the word maps of two that ``join`` makes one (``average``, ``product``).

        ``sharpened``: a lexical table and neighbours sharpen the word map.
        """
        share = self.share_sharp if sharpened or join == "product" else self.share
        return f"{self.two_directions if join in ('average', 'product') else self.one_direction}={share}"


DEFAULTS = Defaults()
