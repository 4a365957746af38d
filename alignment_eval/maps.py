"""The maps of one sentence pair, and how each kind is read from what was recorded.

Only quantities that follow from nothing else are recorded; the maps are derived here, in one place:

==================== ========= =================================================================
quantity             axes      meaning
==================== ========= =================================================================
``head_attn_w``      L H T S   attention weight α after softmax, before dropout
``transformed_norm`` L H S     norm of the transformed vector, ‖f^h(x_j)‖ (Kobayashi et al. 2020)
``head_attn_n``      L H T S   α‖f(x)‖ a head; recorded only where it does not follow from the two
                               above (the mean over an ensemble)
``layer_attn_n``     L T S     ‖Σ_h α^h f^h(x_j)‖ (Kobayashi et al. 2020, eq. 5 summed over heads)
==================== ========= =================================================================

L layers, H heads, T target tokens with ``</s>``, S source tokens with ``</s>``.  Row r of a map
belongs to decoder input r and predicts target token r.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError

Array = NDArray[Any]

#: Recorded quantity -> its axes.
QUANTITIES: dict[str, str] = {
    "head_attn_w": "LHTS",
    "transformed_norm": "LHS",
    "head_attn_n": "LHTS",
    "layer_attn_n": "LTS",
}

#: Map kind -> the quantities that are recorded for it.
KINDS: dict[str, tuple[str, ...]] = {
    "attn_w": ("head_attn_w",),
    "attn_n": ("head_attn_w", "transformed_norm", "layer_attn_n"),
}


@dataclass(frozen=True)
class Side:
    """The tokens of one side of a sentence pair, ``</s>`` included.

    ``words[i]`` is the word (from 0) that ``tokens[i]`` is a piece of, -1 for a special token.
    """

    tokens: tuple[str, ...]
    words: NDArray[np.int32]

    @property
    def special(self) -> NDArray[np.bool_]:
        """True at tokens that belong to no word (``</s>``, language tags)."""
        result: NDArray[np.bool_] = self.words < 0
        return result

    @property
    def word_count(self) -> int:
        """Number of words."""
        return int(self.words.max(initial=-1)) + 1


@dataclass(frozen=True)
class SentenceMaps:
    """All that was recorded of one sentence pair.

    ``status`` is ``"ok"``, or says why there are no maps; then both sides and ``arrays`` may be empty.
    ``rank`` is the place in the n-best list (0 best; 0 in forced scoring).  ``score`` is the model's.
    ``layers[k]`` is the fairseq number (from 0) of the layer at index k of the L axis.
    """

    id: int
    source: Side
    target: Side
    layers: tuple[int, ...]
    rank: int = 0
    score: float | None = None
    status: str = "ok"
    arrays: Mapping[str, Array] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there are maps."""
        return self.status == "ok"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The map kinds that can be read."""
        return tuple(kind for kind in KINDS if self._has(kind))

    @property
    def heads(self) -> int:
        """Number of heads H."""
        return int(self._array("head_attn_w").shape[1])

    def head_maps(self, kind: str) -> Array:
        """The head maps of ``kind``, [L, H, T, S], in the dtype that was recorded (products in float32 at least).

        Raises:
            InputError: the kind is unknown or was not recorded.
        """
        self._require(kind)
        if kind == "attn_w":
            return self._array("head_attn_w")
        if "head_attn_n" in self.arrays:
            return self._array("head_attn_n")
        norms = self._array("transformed_norm").astype(np.promote_types(self._array("transformed_norm").dtype, "f4"))
        product: Array = self._array("head_attn_w") * norms[:, :, None, :]  # a product in float16 could overflow
        return product

    def layer_maps(self, kind: str) -> Array:
        """The layer maps of ``kind``, [L, T, S]: mean of the heads for ``attn_w``, norm of the sum for ``attn_n``.

        Raises:
            InputError: the kind is unknown or was not recorded.
        """
        self._require(kind)
        if kind == "attn_w":
            mean: Array = self._array("head_attn_w").mean(axis=1, dtype=np.float64)
            return mean
        return self._array("layer_attn_n")

    def layer_index(self, layer: int) -> int:
        """The index on the L axis of layer number ``layer`` (fairseq's, from 0).

        Raises:
            InputError: that layer was not recorded.
        """
        if layer not in self.layers:
            raise InputError(
                f"layer {layer} is not in the records: recorded (counted from 0) are "
                f"{', '.join(map(str, self.layers))}; name one of them"
            )
        return self.layers.index(layer)

    def _has(self, kind: str) -> bool:
        if kind == "attn_n":
            heads = "head_attn_n" in self.arrays or {"head_attn_w", "transformed_norm"} <= self.arrays.keys()
            return heads and "layer_attn_n" in self.arrays
        return all(name in self.arrays for name in KINDS[kind])

    def _require(self, kind: str) -> None:
        if kind not in KINDS:
            raise InputError(f"unknown map kind {kind!r}: expected one of {', '.join(KINDS)}")
        if not self.ok:
            raise InputError(f"sentence {self.id} has no maps: {self.status}")
        if not self._has(kind):
            raise InputError(
                f"map kind {kind!r} is not in the records (they hold {', '.join(self.kinds) or 'none'}): "
                f"record it with --norm-record-kinds"
            )

    def _array(self, name: str) -> Array:
        return self.arrays[name]
