"""The complete method that turns maps into word alignments: extraction, both directions, lexicon."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Optional

from alignment_eval.errors import UsageError
from alignment_eval.extraction.options import ExtractionOptions, Value
from alignment_eval.extraction.rules import rule_of
from alignment_eval.links.symmetrize import DEFAULT_VARIANT, check_method
from alignment_eval.maps.words import require_known

#: A lexicon is counted on this number of sentence pairs, the first of the text.
LEXICON_PAIRS = 10_000
#: Ways to combine two directions (:func:`alignment_eval.extraction.bidirectional.join`).
JOINS = ("mutual", "average", "product")


@dataclass(frozen=True)
class BidirectionalOptions:
    """How to combine the two directions of a sentence pair: either a join or a symmetrisation.

    Attributes:
        join: joins word maps or links and keeps confidences (:data:`JOINS`).
        method: symmetrises links, without confidences (:data:`alignment_eval.links.symmetrize.METHODS`).
        variant: variant of the method (:data:`alignment_eval.links.symmetrize.VARIANTS`).

    Raises:
        UsageError: both or neither are given, or one is unknown.
    """

    join: Optional[str] = None
    method: Optional[str] = None
    variant: str = DEFAULT_VARIANT

    def __post_init__(self) -> None:
        if (self.join is None) == (self.method is None):
            raise UsageError("two directions need a way to combine them; give either --join or --symmetrize")
        if self.join is not None:
            require_known("join", self.join, JOINS)
        if self.method is not None:
            check_method(self.method, self.variant)

    @property
    def joins_maps(self) -> bool:
        """Whether both word maps become one, of which the rule makes links."""
        return self.join in ("average", "product")

    def fields(self) -> dict[str, Value]:
        """Its fields in a signature."""
        if self.join is not None:
            return {"join": self.join}
        grown = self.method not in ("intersection", "union")
        return {"symmetrized": self.method, "variant": self.variant if grown else None}


@dataclass(frozen=True)
class AlignmentMethod:
    """Everything that turns the maps of sentence pairs into word alignments.

    Attributes:
        forward: what is read from the maps of the source-target model.
        reverse: what is read from the maps of the target-source model; None: one direction only.
        both: how the two directions are combined.
        lexicon_passes: how often a lexicon that reweights word maps is counted on the text
            (:mod:`alignment_eval.extraction.lexicon`); 0: no lexicon.
        lexicon_pairs: the number of sentence pairs, the first of the text, that it is counted on.

    Raises:
        UsageError: only one of ``reverse`` and ``both`` is given, or the options do not work together.
    """

    forward: ExtractionOptions
    reverse: Optional[ExtractionOptions] = None
    both: Optional[BidirectionalOptions] = None
    lexicon_passes: int = 0
    lexicon_pairs: int = LEXICON_PAIRS

    def __post_init__(self) -> None:
        if (self.reverse is None) != (self.both is None):
            raise UsageError("maps of the other direction need a way to combine both directions; give both or neither")
        if self.lexicon_passes < 0:
            raise UsageError(f"lexicon passes {self.lexicon_passes}: the number must be 1 or more, or 0 for no lexicon")
        if self.lexicon_pairs < 1:
            raise UsageError(f"lexicon pairs {self.lexicon_pairs}: the number must be 1 or more")
        join = None if self.both is None else self.both.join
        if join in ("average", "product"):
            self._check_joined(join)
        if self.lexicon_passes:
            self.check_lexicon()

    def _check_joined(self, join: str) -> None:
        if rule_of(self.forward.rule).units != "words":
            raise UsageError(
                f"join {join!r} does not work with rule {self.forward.rule!r}, which reads maps between subwords; the "
                f"two models may segment words differently; choose a rule for words, such as kobayashi2020, or join "
                f"'mutual'"
            )
        if join == "product" and self.forward.null != "mask":
            raise UsageError(
                "join 'product' does not work with null 'allow', because the reverse model has no score for target "
                "words and null; choose null 'mask'"
            )

    def check_lexicon(self) -> None:
        """Check that a lexicon, counted on this text or on another, can reweight the word maps.

        Raises:
            UsageError: the rule does not read word maps, null may win, or links are made before the lexicon applies.
        """
        if rule_of(self.forward.rule).units != "words" or self.forward.null != "mask":
            raise UsageError(
                f"a lexicon does not work with rule {self.forward.rule!r} and null {self.forward.null!r}: it reweights "
                f"maps between words, without null; choose a rule for words and null 'mask', such as rule two-way=0.3"
            )
        if self.both is not None and not self.both.joins_maps:
            way = "--symmetrize" if self.both.join is None else f"join {self.both.join!r}"
            raise UsageError(
                f"a lexicon does not work with {way}, which makes links before the lexicon applies; choose join "
                f"'average' or 'product'"
            )

    @property
    def lexicon_exponent(self) -> float:
        """The power of a lexicon's association: 1 / the number of multiplied maps, so that it weighs as much as one."""
        multiplied = (len(o.maps) for o in (self.forward, self.reverse) if o is not None and o.combine == "product")
        return 1 / max(multiplied, default=1)

    def fields(self) -> dict[str, Value]:
        """The fields of the method in a signature."""
        fields = self.forward.fields()
        if self.both is not None and self.reverse is not None:
            fields |= {**self.both.fields(), "reverse_heads": self.reverse.map_names}
            for name in ("kind", "setting", "combine"):  # as in the forward direction unless it is stated
                value = getattr(self.reverse, name)
                if value != getattr(self.forward, name) and (name != "combine" or self.reverse.heads):
                    fields[f"reverse_{name}"] = value
        if self.lexicon_passes:
            fields |= {"lexicon": self.lexicon_passes, "lexicon_pairs": self.lexicon_pairs}
        return fields

    def to_dict(self) -> dict[str, Any]:
        """The method for JSON, without ``lexicon_pairs``, which depends on the text; msgspec reads it."""
        return {
            "forward": self.forward.to_dict(),
            "reverse": None if self.reverse is None else self.reverse.to_dict(),
            "both": None if self.both is None else asdict(self.both),
            "lexicon_passes": self.lexicon_passes,
        }
