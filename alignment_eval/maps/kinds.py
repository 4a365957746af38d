"""The map kinds: one row for each, which commands, records, tables and figures read (docs/maps.md).

A new kind is a row here and its function in :mod:`fairseq_norm_plugin.formulas.kinds`.  Only quantities that cannot be
derived from others are recorded:

======================== ========= ===========================================================================
quantity                 axes      meaning
======================== ========= ===========================================================================
``head_attn_w``          L H T S   attention weight α after softmax, before dropout
``transformed_norm``     L H S     norm of the transformed vector, ‖f^h(x_j)‖ (Kobayashi et al. 2020)
``head_attn_n``          L H T S   α‖f(x)‖ of each head; recorded only if the two quantities above do not
                                   determine it (the mean over an ensemble)
``layer_attn_n``         L T S     ‖Σ_h α^h f^h(x_j)‖ (Kobayashi et al. 2020, eq. 5 summed over heads)
``head_KIND``            L H T S   head maps of other kinds
``layer_KIND``           L T S     layer maps of other kinds
======================== ========= ===========================================================================

L layers, H heads, T target tokens with ``</s>``, S source tokens with ``</s>``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MapKind:
    """One kind of map."""

    name: str  #: as options, records and tables spell it
    label: str  #: as figures call it
    quantities: tuple[str, ...]  #: what is recorded for it; the layer's map is read from the last one
    heads: bool = False  #: whether it has maps of single heads
    scale: float = 1.0  #: factor of the layer's map, if it is read from a quantity of another kind
    mixing: bool = False  #: whether it has a mixing ratio
    feed_forward: bool = False  #: whether it goes through the feed-forward network, which only some blocks have
    #: whether the token's own part counts; without it nothing but the source mixes in encoder-decoder attention
    residual: bool = True
    #: the kind whose maps of all blocks up to the layer are multiplied; None: a map of one block
    rollout: str | None = None
    costly: bool = False  #: whether it takes many times as long as a forward pass
    colour: str | None = None  #: of its lines in figures; None: the next of the palette
    marker: str | None = None  #: likewise


_FEED_FORWARD: dict[str, Any] = {"mixing": True, "feed_forward": True, "costly": True}
_ROWS = (
    MapKind("attn_w", "weights", ("head_attn_w",), heads=True, mixing=True, residual=False),
    MapKind(
        "attn_n", "norms", ("head_attn_w", "transformed_norm", "layer_attn_n"), heads=True, mixing=True, residual=False
    ),
    MapKind("attn_p", "projections", ("head_attn_p", "layer_attn_p"), heads=True, residual=False),
    MapKind("attn_logit", "logit attributions", ("head_attn_logit", "layer_attn_logit"), heads=True, residual=False),
    MapKind("attnres_w", "weights, residual", ("head_attn_w",), scale=0.5, mixing=True),
    # the residual of encoder-decoder attention belongs to no source token, so source columns do not change
    MapKind("attnres_n", "norms, residual", ("layer_attn_n",), mixing=True),
    MapKind(
        "attnresln_n", "norms, residual, layer norm", ("head_attnresln_n", "layer_attnresln_n"), heads=True, mixing=True
    ),
    MapKind("ff_n", "norms, feed-forward", ("layer_ff_n",), **_FEED_FORWARD),
    MapKind("ffres_n", "norms, feed-forward, residual", ("layer_ffres_n",), **_FEED_FORWARD),
    MapKind(
        "ffresln_n", "norms, feed-forward, residual, layer norm", ("layer_ffresln_n",), **_FEED_FORWARD, colour="0.5"
    ),
    MapKind("alti", "ALTI", ("layer_alti",)),
    MapKind("rollout_w", "rollout of weights", ("layer_rollout_w",), rollout="attnres_w"),
    MapKind("alti_rollout", "ALTI rollout", ("layer_alti_rollout",), rollout="alti"),
)
#: Map kinds by name, in the order in which commands list them.
KINDS: dict[str, MapKind] = {row.name: row for row in _ROWS}
#: The kinds that are recorded by default.
DEFAULT_KINDS = ("attn_w", "attn_n")


def block_kinds() -> tuple[str, ...]:
    """The kinds that are maps of one block."""
    return tuple(name for name, kind in KINDS.items() if kind.rollout is None)


def mixing_kinds() -> tuple[str, ...]:
    """The kinds that have mixing ratios."""
    return tuple(name for name, kind in KINDS.items() if kind.mixing)


def quantities() -> tuple[str, ...]:
    """The recorded quantities, in the order in which records hold them."""
    every = (name for kind in KINDS.values() for name in kind.quantities)
    return tuple(dict.fromkeys(("head_attn_w", "transformed_norm", "head_attn_n", *every)))


def axes_of(quantity: str) -> str:
    """The axes of a recorded quantity, such as ``LHTS``."""
    return "LHS" if quantity == "transformed_norm" else {"head": "LHTS", "layer": "LTS"}[quantity.partition("_")[0]]
