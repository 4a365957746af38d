"""The data in the page: deflate in base64, one block per sentence, which ``report.js`` unpacks when it shows it.

Base64 has no character that ends an HTML element, so no word of a sentence can break out of its block.

A sentence's block has these parts in this order, all little-endian:

======= =================== ==================================================================================
dtype   shape               meaning
======= =================== ==================================================================================
uint16  [layers, heads, S]  norm of the transformed vector, for the kinds whose head maps are weight × norm
uint16  [planes, T]         scale of each row of each plane: its largest value or a little more
uint16  [normed planes, T]  the same of the plane times the norms; the normed planes are the first
uint8   [planes, T, S]      value / scale, in steps of 1 / :data:`STEPS`; of a normed plane: weight · max(1 / scale,
                            norm / scale times the norms)
uint8   [maps, …]           predicted links [source words, target words] of each map, eight per byte, high bit first
======= =================== ==================================================================================

A uint16 is the upper half of a float32.  A value that the page computes from a plane is off by about half a step of the
largest value of its row, also where norms multiply small weights.
Planes are maps of tokens from which all others are computed (:func:`layout`).  T and S are target and source tokens.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.extract import stacked_maps
from alignment_eval.maps.sentence import Array, SentenceMaps

STEPS = 20
#: Bits of a norm and of a scale after the first one; scales have few, so that they compress.
_NORM_BITS, _SCALE_BITS = 5, 3
#: What a stored value is off by at most, as a share of the largest value of its row; and a norm, as a share of itself.
ERROR, NORM_ERROR = (1 + 2**-_SCALE_BITS) / (2 * STEPS), 2 ** -(_NORM_BITS + 1)


@dataclass(frozen=True)
class KindLayout:
    """The planes of a sentence that hold the maps of one kind.

    Attributes:
        heads: number of head maps per layer.
        head_plane: the plane of head 0 of layer 0; that of layer l is ``l * heads`` later.
        layer_plane: the plane of layer 0, followed by those of other layers; None: the mean over the heads.
        normed: whether head maps are planes times the norms.
    """

    heads: int
    head_plane: int
    layer_plane: int | None
    normed: bool


def layout(sentence: SentenceMaps, kinds: Sequence[str]) -> dict[str, KindLayout]:
    """The planes for ``kinds``, from one sentence that has maps; they are the same for all sentences of a run.

    ``attn_w`` and, if it is computed from weights and norms, ``attn_n`` share the planes of the weights.
    """
    layers = len(sentence.layers)
    shared = [kind for kind in kinds if kind == "attn_w" or (kind == "attn_n" and "head_attn_n" not in sentence.arrays)]
    planes = layers * sentence.heads if shared else 0
    result = {}
    for kind in kinds:
        heads = sentence.head_maps(kind).shape[1]
        own = 0 if kind in shared else layers * heads
        layer_plane = None if kind == "attn_w" else planes + own
        result[kind] = KindLayout(heads, planes if own else 0, layer_plane, normed=kind in shared and kind == "attn_n")
        planes += own if layer_plane is None else own + layers
    return result


def encode_sentence(sentence: SentenceMaps, kinds: dict[str, KindLayout], links: NDArray[np.bool_]) -> bytes:
    """The block of a sentence (see above).

    ``links`` are [maps, source words, target words].
    """
    planes = np.concatenate([plane.reshape(-1, *plane.shape[-2:]) for plane in _planes(sentence, kinds)])
    norms = np.empty((0, 1))
    if any(kind.normed for kind in kinds.values()):
        norms = half(sentence.arrays["transformed_norm"], _NORM_BITS, np.rint)
    norms = norms.reshape(-1, norms.shape[-1])
    steps, scales = quantise(planes, norms)
    bits = np.packbits(links.reshape(len(links), -1), axis=-1)
    return b"".join((upper(norms), *map(upper, scales), steps.tobytes(), bits.tobytes()))


def _planes(sentence: SentenceMaps, kinds: dict[str, KindLayout]) -> Iterable[Array]:
    """The planes in the order of :func:`layout`."""
    if any(kind.normed or kind.layer_plane is None for kind in kinds.values()):
        yield sentence.head_maps("attn_w")
    for name, kind in kinds.items():
        maps = stacked_maps(sentence, name)
        if kind.layer_plane is not None:
            if not kind.normed:
                yield maps[:, :-1]
            yield maps[:, -1]


def quantise(planes: Array, norms: Array) -> tuple[NDArray[np.uint8], tuple[Array, Array]]:
    """Store planes in steps of their rows' scales.

    Args:
        planes: [planes, T, S], without negative values.
        norms: [normed planes, S]: by what the first planes are multiplied in other maps, as stored.

    Returns:
        Steps [planes, T, S]; the scales [planes, T], and [normed planes, T] of the planes times the norms.
    """
    wide = planes.astype(np.float64)
    normed = wide[: len(norms)] * norms[:, None, :]
    scales, of_normed = (half(maps.max(axis=-1), _SCALE_BITS) for maps in (wide, normed))
    factors = np.broadcast_to(_inverse(scales)[..., None], wide.shape).copy()
    factors[: len(norms)] = np.maximum(factors[: len(norms)], norms[:, None, :] * _inverse(of_normed)[..., None])
    return np.rint(wide * factors * STEPS).astype(np.uint8), (scales, of_normed)


def _inverse(scales: Array) -> NDArray[np.float64]:
    return np.divide(1, scales, out=np.zeros(scales.shape), where=scales > 0)


def half(values: Array, bits: int, rounded: Callable[[Array], Array] = np.ceil) -> NDArray[np.float64]:
    """``values``, without negative ones, rounded to ``bits`` bits after the first one, at most 7."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    stored: NDArray[np.float64] = np.ldexp(rounded(mantissa * 2 ** (bits + 1)) / 2 ** (bits + 1), exponent)
    return stored


def upper(values: Array) -> bytes:
    """The upper halves of float32 ``values`` of :func:`half`."""
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()


def pack(content: bytes) -> str:
    """Compress with deflate (in zlib's form) and encode in base64."""
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")
