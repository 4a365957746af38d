"""The defaults of alignment, where no option says otherwise; commands, Python and the fairseq tasks read them here.

If the alignment of a model has formed, two of its maps are multiplied; if it is still forming, the mean of its last two
layers in AWO is read, with a lexical table of the text.  Two directions are multiplied.  The final punctuation of both
sides is linked, because the last row of an AWI map, which predicts ``</s>``, often looks elsewhere.  Formed models use
no lexical table, so that a pair is aligned alone exactly as within a corpus.

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
        share_guided: the same for a model that was trained to align, whose maps are sharper.
        added_formed: what a lexical table adds to the share of one direction if its maps have formed: it makes them
            sharper.
        added_unformed: the same for other maps.
        two_directions: the rule for the combined word map of two directions; it takes a share, too.  The words of each
            side are the target words of one direction, so all of them weigh the same already.
        share_product: its least two-way share for the product: larger, because a product is sharper.  For the average
            it is that of one direction.
        join: how the word maps of two directions become one.
        final_punctuation: whether the final punctuation of both sides is linked to each other only, by a profile; where
            maps are named it is not.
        lexical_table_passes: passes over a lexical table: 2 were mostly best.
        lexical_table_pairs: a lexical table is counted on this number of sentence pairs, the first of the text.
        fewest_pairs: the fewest sentence pairs for a lexical table, and for a choice of maps: on fewer, the choice
            changes from text to text.
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
    share_guided: float = 0.35
    added_formed: float = 0.05
    added_unformed: float = 0.1
    two_directions: str = "grow"
    share_product: float = 0.4
    join: str = "product"
    final_punctuation: bool = True
    lexical_table_passes: int = 2
    lexical_table_pairs: int = 10_000
    fewest_pairs: int = 30
    profile_pairs: int = 100
    max_tokens: int = 4000

    def rule(self, join: str | None = None, guided: bool = False, added: float = 0.0) -> str:
        """The rule of one direction, or of the word maps of two that ``join`` makes one (``average``, ``product``).

        Args:
            join: how two directions become one; others than these two leave the rule of one direction.
            guided: whether the model was trained to align.
            added: what is added to the share of one direction.
        """
        share = self.share_guided if guided else self.share
        if join == "product":
            return f"{self.two_directions}={self.share_product}"
        if join == "average":
            return f"{self.two_directions}={share}"
        return f"{self.one_direction}={round(share + added, 2)}"


DEFAULTS = Defaults()
