"""The data in the page: deflate in base64, one block per sentence, which ``report.js`` unpacks when it shows it.

Base64 has no character that ends an HTML element, so no word of a sentence can break out of its block.

A sentence's block has these parts in this order, all little-endian:

======= =================== ==================================================================================
dtype   shape               meaning
======= =================== ==================================================================================
float32 [layers, heads, S]  norm of the transformed vector, for the kinds whose head maps are weight × norm
float32 [planes, T]         largest value of each row of each plane, to 11 significant bits
uint8   [planes, T, S]      √(value / largest), in steps of 1 / :data:`STEPS`
uint8   [maps, …]           predicted links [source words, target words] of each map, eight per byte, high bit first
======= =================== ==================================================================================

Planes are maps of tokens from which all others are computed (:func:`layout`).  T and S are target and source tokens.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.extract import stacked_maps
from alignment_eval.maps.sentence import Array, SentenceMaps

#: The error of a stored value v in a row with the largest value m is at most √(v m) / STEPS + m / (2 STEPS)².  Small
#: values, which large norms may multiply, are stored more precisely than large ones.
STEPS = 127


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

    Args:
        sentence: a sentence that has maps.
        kinds: from :func:`layout`.
        links: [maps, source words, target words].
    """
    planes = np.concatenate([plane.reshape(-1, *plane.shape[-2:]) for plane in _planes(sentence, kinds)])
    steps, largest = quantise(planes)
    normed = any(kind.normed for kind in kinds.values())
    norms = sentence.arrays["transformed_norm"] if normed else np.empty(0)
    bits = np.packbits(links.reshape(len(links), -1), axis=-1)
    return b"".join((norms.astype("<f4").tobytes(), largest.astype("<f4").tobytes(), steps.tobytes(), bits.tobytes()))


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


def quantise(planes: Array) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Steps [..., T, S] and row maxima [..., T] of maps [..., T, S] without negative values."""
    wide = planes.astype(np.float64)
    # Rounded up to 11 significant bits, so that bytes repeat and compress, and no value exceeds its row's maximum.
    mantissa, exponent = np.frexp(wide.max(axis=-1))
    largest = np.ldexp(np.ceil(mantissa * 2**11) / 2**11, exponent).astype(np.float32)
    rows = np.where(largest > 0, largest, 1)[..., None]
    return np.rint(np.sqrt(wide / rows) * STEPS).astype(np.uint8), largest


def pack(content: bytes) -> str:
    """Compress with deflate (in zlib's form) and encode in base64."""
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")
