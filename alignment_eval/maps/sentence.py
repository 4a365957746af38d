"""The maps of a sentence pair, and how each kind is derived from the recorded quantities.

What is recorded for each kind: :mod:`alignment_eval.maps.kinds`.

L layers, H heads, T target tokens with ``</s>``, S source tokens with ``</s>``.  Row r of a map has decoder input r and
predicts target token r.  Kinds with the residual connection also have a part from the target token itself, which
belongs to no source token; records do not hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.maps.kinds import KINDS, MapKind, axes_of
from alignment_eval.maps.subwords import word_strings

Array = NDArray[Any]
#: The words of a sentence pair, source and target.
PairWords = tuple[Sequence[str], Sequence[str]]
#: Characters of a line, counted in code points from 0; the end is exclusive.
Span = tuple[int, int]
#: A line, and the span of each word in it.
SpannedLine = tuple[str, tuple[Span, ...]]


@dataclass(frozen=True)
class SentenceSide:
    """The tokens of one side of a sentence pair, ``</s>`` included.

    ``words[i]`` is the word (from 0) that ``tokens[i]`` belongs to, -1 for a special token.

    Subwords may span words of the text, such as a Chinese one of two characters if characters are the words.  Then
    ``words`` counts runs of words that no subword spans the ends of, and ``spans`` says how many words each run has;
    None: one each.  ``forms`` are the words of the text; None: the tokens spell them.  ``line`` is the raw line, with
    the characters of each word in it; None: only the words are known.
    """

    tokens: tuple[str, ...]
    words: NDArray[np.int32]
    spans: NDArray[np.int32] | None = None
    forms: tuple[str, ...] | None = None
    line: Optional[SpannedLine] = None

    @classmethod
    def of_words(cls, words: Sequence[str]) -> SentenceSide:
        """Words without subwords and special tokens."""
        return cls(tuple(words), np.arange(len(words), dtype=np.int32))

    @cached_property
    def special(self) -> NDArray[np.bool_]:
        """True at tokens that belong to no word (``</s>``, language tags)."""
        result: NDArray[np.bool_] = self.words < 0
        return result

    @cached_property
    def runs(self) -> NDArray[np.intp]:
        """The starts of runs of tokens of the same word (or of special tokens)."""
        return np.flatnonzero(np.diff(self.words, prepend=-2))

    @cached_property
    def word_count(self) -> int:
        """Number of words."""
        return int(self.words.max(initial=-1)) + 1 if self.spans is None else int(self.spans.sum())

    @cached_property
    def _words(self) -> Sequence[str]:
        return word_strings(self.tokens, self.words) if self.forms is None else self.forms

    def word_strings(self) -> list[str]:
        """The words: those of the text if they are known, else what the tokens spell."""
        return list(self._words)

    def by_tokens(self) -> SentenceSide:
        """The same tokens, where each token that belongs to a word becomes a word of its own."""
        ordinary = ~self.special
        return SentenceSide(self.tokens, np.where(ordinary, np.cumsum(ordinary) - 1, -1).astype(np.int32))


#: Whether the words of source and target are certain -> the status of a sentence that has maps.  They are not certain
#: if ``<unk>`` may stand for a part of a word, because then the word numbers of all later tokens are uncertain.
_STATUS = {
    (True, True): "ok",
    (False, True): "unknown source subwords",
    (True, False): "unknown target subwords",
    (False, False): "unknown subwords on both sides",
}


def status_of(source_certain: bool, target_certain: bool) -> str:
    """The status of a sentence that has maps: ``ok`` only if the words of both sides are certain."""
    return _STATUS[source_certain, target_certain]


@dataclass(frozen=True)
class SentenceMaps:
    """The recorded quantities of one sentence pair.

    ``status`` is ``"ok"``, or the reason why its words cannot be aligned: there are no maps (then both sides may be
    empty), or the words are not certain (:func:`status_of`).
    ``rank`` is the place in the n-best list (0 is the best; 0 in forced scoring).  ``score`` is the model's score.
    ``layers[k]`` is the fairseq number (from 0) of the layer at index k of the L axis.  ``log_probs`` [T] are the log
    probabilities of the target tokens (base e), if they were computed; they are not recorded.
    """

    id: int
    source: SentenceSide
    target: SentenceSide
    layers: tuple[int, ...]
    rank: int = 0
    score: float | None = None
    status: str = "ok"
    arrays: Mapping[str, Array] = field(default_factory=dict)
    log_probs: NDArray[np.float64] | None = None

    @property
    def ok(self) -> bool:
        """Whether the sentence has maps and words that can be aligned."""
        return self.status == "ok"

    def confirmed(self) -> SentenceMaps:
        """The sentence with status ``ok`` if it has maps, for a caller who knows that its words are right."""
        return replace(self, status="ok") if self.status in _STATUS.values() else self

    def by_tokens(self) -> SentenceMaps:
        """The same sentence with each token that belongs to a word as a word of its own; these words are certain."""
        return replace(self.confirmed(), source=self.source.by_tokens(), target=self.target.by_tokens())

    @property
    def kinds(self) -> tuple[str, ...]:
        """The map kinds that can be read."""
        return tuple(kind for kind in KINDS if self._has(kind))

    @property
    def heads(self) -> int:
        """Number of heads H; 0 if no quantity of single heads was recorded."""
        return next((a.shape[1] for name, a in self.arrays.items() if "H" in axes_of(name)), 0)

    def head_maps(self, kind: str) -> Array:
        """The head maps of ``kind``, [L, H, T, S].

        H is 0 for kinds that have only layer maps.

        Raises:
            InputError: the kind is unknown or was not recorded.
        """
        self._require(kind)
        if f"head_{kind}" in self.arrays:
            return self.arrays[f"head_{kind}"]
        if kind == "attn_n":
            product: Array = self.arrays["head_attn_w"] * self.arrays["transformed_norm"][..., None, :]
            return product
        return self.layer_maps(kind)[:, None][:, :0]

    def layer_maps(self, kind: str) -> Array:
        """The layer maps of ``kind``, [L, T, S]: mean of the heads for ``attn_w``, norm of the sum for ``attn_n``.

        Raises:
            InputError: the kind is unknown or was not recorded.
        """
        name = self._require(kind, whole_layer=True).quantities[-1]
        if name.startswith("layer_"):
            return self.arrays[name]
        mean: Array = KINDS[kind].scale * self.arrays[name].mean(axis=1, dtype=np.float64)
        return mean

    def layer_index(self, layer: int) -> int:
        """The index on the L axis of layer number ``layer`` (fairseq's, from 0).

        Raises:
            UsageError: that layer was not recorded.
        """
        if layer not in self.layers:
            raise UsageError(
                f"the records have no layer {layer}; name one of {', '.join(map(str, self.layers))} (counted from 0)"
            )
        return self.layers.index(layer)

    def at(self, layer: int) -> SentenceMaps:
        """The sentence with only the maps of layer number ``layer``; errors as for :meth:`layer_index`."""
        index = self.layer_index(layer)
        arrays = {name: array[index : index + 1] for name, array in self.arrays.items()}
        return replace(self, layers=(layer,), arrays=arrays)

    def _has(self, kind: str) -> bool:
        if kind == "attn_n":
            heads = "head_attn_n" in self.arrays or {"head_attn_w", "transformed_norm"} <= self.arrays.keys()
            return heads and "layer_attn_n" in self.arrays
        return all(name in self.arrays for name in KINDS[kind].quantities)

    def _require(self, kind: str, whole_layer: bool = False) -> MapKind:
        """The row of ``kind``, if its maps can be read, or those of whole layers."""
        if kind not in KINDS:
            raise InputError(f"unknown map kind {kind!r}; choose one of {', '.join(KINDS)}")
        if not (self.ok or self.arrays):
            raise InputError(f"sentence {self.id} has no maps: {self.status}")
        if not (KINDS[kind].quantities[-1] in self.arrays if whole_layer else self._has(kind)):
            raise InputError(
                f"the records have no map kind {kind!r} (they have {', '.join(self.kinds) or 'none'}): record it"
            )
        return KINDS[kind]


def words_of(sentence: SentenceMaps) -> PairWords:
    """The words of a sentence pair, source and target."""
    return sentence.source.word_strings(), sentence.target.word_strings()
