"""A whole way from the maps of sentence pairs to word alignments: extraction, both directions, lexicon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from alignment_eval.errors import UsageError
from alignment_eval.extraction.options import ExtractionOptions, Value
from alignment_eval.extraction.rules import rule_of
from alignment_eval.links.symmetrize import DEFAULT_VARIANT, check_method
from alignment_eval.maps.words import require_known

#: On how many sentence pairs, the first of a text, a lexicon is counted.
LEXICON_PAIRS = 10_000
#: How two directions become one alignment (:func:`alignment_eval.extraction.bidirectional.join`).
JOINS = ("mutual", "average", "product")


def check_join(how: str, options: ExtractionOptions) -> None:
    """Check that two directions can be joined so under the rule of ``options``.

    Raises:
        UsageError: ``how`` is unknown, or it makes one word map of two and the rule reads none, or null may win in
            ``product``, which has no null.
    """
    require_known("join", how, JOINS)
    if how == "mutual":
        return
    if rule_of(options.rule).units != "words":
        raise UsageError(
            f"join {how!r} with rule {options.rule!r}: that rule reads maps between subwords, which the two models "
            f"may cut differently: expected a rule of words, such as kobayashi2020; or take join 'mutual'"
        )
    if how == "product" and options.null != "mask":
        raise UsageError(
            "join 'product' with null 'allow': the reverse model says nothing of target words and null, so that there "
            "is no product; expected null 'mask'"
        )


def check_lexicon(options: ExtractionOptions, join: str | None) -> None:
    """Check that links can be read from word maps that a lexicon has weighed.

    Raises:
        UsageError: the rule does not read word maps, null may win, or ``join`` draws links before.
    """
    if rule_of(options.rule).units != "words" or options.null != "mask":
        raise UsageError(
            f"a lexicon with rule {options.rule!r} and null {options.null!r}: it weighs maps between words, and null "
            f"is none: expected a rule of words and null 'mask', such as rule two-way=0.3"
        )
    if join == "mutual":
        raise UsageError("a lexicon with join 'mutual': links are drawn before; expected join 'average' or 'product'")


@dataclass(frozen=True)
class BidirectionalOptions:
    """How the two directions of a sentence pair become one alignment: one of a join and a symmetrisation.

    Attributes:
        join: of word maps or links, with confidences (:data:`JOINS`).
        method: of links, without confidences (:data:`alignment_eval.links.symmetrize.METHODS`).
        variant: of the method (:data:`alignment_eval.links.symmetrize.VARIANTS`).

    Raises:
        UsageError: both or neither are named, or one is unknown.
    """

    join: str | None = None
    method: str | None = None
    variant: str = DEFAULT_VARIANT

    def __post_init__(self) -> None:
        if (self.join is None) == (self.method is None):
            raise UsageError("two directions need one way to become one: expected one of --join and --symmetrize")
        if self.join is not None:
            require_known("join", self.join, JOINS)
        if self.method is not None:
            check_method(self.method, self.variant)

    def fields(self) -> dict[str, Value]:
        """What a signature says of it."""
        if self.join is not None:
            return {"join": self.join}
        grown = self.method not in ("intersection", "union")
        return {"symmetrized": self.method, "variant": self.variant if grown else None}


@dataclass(frozen=True)
class AlignmentMethod:
    """Everything that turns the maps of sentence pairs into word alignments.

    Attributes:
        forward: what is read from the maps of the source-target model.
        reverse: what is read from those of the target-source model; None: there is none.
        both: how the two directions become one.
        lexicon_passes: how often a lexicon that reweights word maps is counted on the text
            (:mod:`alignment_eval.extraction.lexicon`); 0: not.
        lexicon_pairs: on how many sentence pairs, the first of the text.

    Raises:
        UsageError: only one of ``reverse`` and ``both`` is given, or the options do not go together.
    """

    forward: ExtractionOptions
    reverse: ExtractionOptions | None = None
    both: BidirectionalOptions | None = None
    lexicon_passes: int = 0
    lexicon_pairs: int = LEXICON_PAIRS

    def __post_init__(self) -> None:
        if (self.reverse is None) != (self.both is None):
            raise UsageError("maps of the other direction and a way to combine both: expected both or neither")
        if self.lexicon_passes < 0:
            raise UsageError(f"{self.lexicon_passes} passes over a lexicon: expected 1 or more, or 0 for no lexicon")
        if self.lexicon_pairs < 1:
            raise UsageError(f"a lexicon of {self.lexicon_pairs} sentence pairs: expected 1 or more")
        if self.both is not None and self.both.join is not None:
            check_join(self.both.join, self.forward)
        if self.lexicon_passes:
            self.check_lexicon()

    def check_lexicon(self) -> None:
        """Check that a lexicon, of this text or of another, can reweight the word maps.

        Raises:
            UsageError: links are drawn before there is a word map of both directions, or see :func:`check_lexicon`.
        """
        if self.both is not None and self.both.method is not None:
            raise UsageError("a lexicon with --symmetrize: links are drawn before; expected --join product")
        check_lexicon(self.forward, None if self.both is None else self.both.join)

    @property
    def lexicon_exponent(self) -> float:
        """The power of a lexicon's association: 1 / the number of maps multiplied, so that it counts as one of them."""
        multiplied = (len(o.maps) for o in (self.forward, self.reverse) if o is not None and o.combine == "product")
        return 1 / max(multiplied, default=1)

    def fields(self) -> dict[str, Value]:
        """What a signature says of the method."""
        fields = self.forward.fields()
        if self.both is not None and self.reverse is not None:
            fields |= {**self.both.fields(), "reverse_heads": self.reverse.map_names}
            for name in ("kind", "setting", "combine"):  # as in the forward direction unless it is stated
                mine, its = getattr(self.forward, name), getattr(self.reverse, name)
                if its != mine and (name != "combine" or self.reverse.heads):
                    fields[f"reverse_{name}"] = its
        if self.lexicon_passes:
            fields |= {"lexicon": self.lexicon_passes, "lexicon_pairs": self.lexicon_pairs}
        return fields

    def to_dict(self) -> dict[str, Any]:
        """The method as JSON knows it, but for ``lexicon_pairs``, which is of a text; :meth:`from_dict` reads it."""
        return {
            "forward": self.forward.to_dict(),
            "reverse": None if self.reverse is None else self.reverse.to_dict(),
            "both": None if self.both is None else asdict(self.both),
            "lexicon_passes": self.lexicon_passes,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> AlignmentMethod:
        """The method that :meth:`to_dict` gave; errors as for :meth:`ExtractionOptions.from_dict`."""
        reverse, both = content["reverse"], content["both"]
        return cls(
            ExtractionOptions.from_dict(content["forward"]),
            None if reverse is None else ExtractionOptions.from_dict(reverse),
            None if both is None else BidirectionalOptions(**both),
            content["lexicon_passes"],
        )
