"""The data in the page: deflate in base64, one block per sentence, which ``report.js`` unpacks when it shows it.

Base64 has no character that ends an HTML element, so no word of a sentence can break out of its block.

A sentence's block has these parts in this order, all little-endian:

======= =================== ==================================================================================
dtype   shape               meaning
======= =================== ==================================================================================
uint16  [planes, T]         scale of each row of each plane: its largest value or a little more, as the upper half
                            of a float32
uint8   [planes, T, S]      value / scale, in steps of 1 / :data:`STEPS`
uint8   [maps, …]           predicted links [source words, target words] of each map, eight per byte, high bit first
======= =================== ==================================================================================

Planes are the maps of tokens: of each kind, of each layer, those of the heads and then the layer's own.  T and S are
target and source tokens.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.extract import stacked_maps
from alignment_eval.maps.sentence import SentenceMaps

STEPS = 16
#: Bits of a scale after the first one: few, so that they compress.
_SCALE_BITS = 3
#: What a stored value is off by at most, as a share of the largest value of its row.
ERROR = (1 + 2**-_SCALE_BITS) / (2 * STEPS)


def encode_sentence(sentence: SentenceMaps, kinds: Sequence[str], links: NDArray[np.bool_]) -> bytes:
    """The block of a sentence (see above).

    ``links`` are [maps, source words, target words].
    """
    of_kinds = (stacked_maps(sentence, kind) for kind in kinds)
    steps, scales = quantise(np.concatenate([maps.reshape(-1, *maps.shape[-2:]) for maps in of_kinds]))
    bits = np.packbits(links.reshape(len(links), -1), axis=-1)
    return (scales.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes() + steps.tobytes() + bits.tobytes()


def quantise(planes: NDArray[np.float64]) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Steps [planes, T, S] and scales [planes, T] of ``planes`` [planes, T, S], which have no negative values."""
    mantissa, exponent = np.frexp(planes.max(axis=-1))
    scales = np.ldexp(np.ceil(mantissa * 2 ** (_SCALE_BITS + 1)) / 2 ** (_SCALE_BITS + 1), exponent)
    factors = np.divide(STEPS, scales, out=np.zeros(scales.shape), where=scales > 0)
    return np.rint(planes * factors[..., np.newaxis]).astype(np.uint8), scales


def pack(content: bytes) -> str:
    """Compress with deflate (in zlib's form) and encode in base64."""
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")
