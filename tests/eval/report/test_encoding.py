from __future__ import annotations

import base64
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.report.encoding import STEPS, KindLayout, encode_sentence, layout, pack, quantise

Factory = Callable[..., SentenceMaps]


@given(arrays.arrays(np.float64, (2, 3, 4), elements=st.floats(1e-30, 1e6) | st.just(0.0)))
def test_quantise_keeps_to_its_bound(planes: np.ndarray) -> None:
    steps, largest = quantise(planes)
    stored = largest[..., None].astype(np.float64) * (steps / STEPS) ** 2
    m = np.broadcast_to(largest[..., None].astype(np.float64), planes.shape)
    bound = np.sqrt(stored * m) / STEPS + m / (2 * STEPS) ** 2
    assert (np.abs(stored - planes) <= bound * (1 + 1e-9)).all()
    top = planes.max(axis=-1)
    assert (largest >= top * (1 - 1e-7)).all()
    assert (largest <= top * (1 + 2**-10)).all()
    assert not steps[planes == 0].any()


def test_row_maxima_have_few_digits() -> None:
    """Which lets them compress: the low 13 of 24 bits are 0."""
    _, largest = quantise(np.random.default_rng(0).uniform(0, 9, (5, 7, 3)))
    assert not (largest.view(np.uint32) & (2**13 - 1)).any()


def test_layout(make_sentence: Factory) -> None:
    assert layout(make_sentence(0), ["attn_w", "attn_n"]) == {
        "attn_w": KindLayout(heads=3, head_plane=0, layer_plane=None, normed=False),
        "attn_n": KindLayout(heads=3, head_plane=0, layer_plane=6, normed=True),
    }
    assert layout(make_sentence(0), ["attnres_n", "attn_n", "attnres_w"]) == {
        "attnres_n": KindLayout(heads=0, head_plane=0, layer_plane=6, normed=False),
        "attn_n": KindLayout(heads=3, head_plane=0, layer_plane=8, normed=True),
        "attnres_w": KindLayout(heads=0, head_plane=0, layer_plane=10, normed=False),
    }
    assert layout(make_sentence(0), ["attnres_n"]) == {"attnres_n": KindLayout(0, 0, 0, False)}


def test_layout_of_recorded_norms(make_sentence: Factory) -> None:
    """Of an ensemble, whose head norms do not follow from weights and norms."""
    sentence = make_sentence(0)
    arrays = {"head_attn_w": sentence.arrays["head_attn_w"], "layer_attn_n": sentence.arrays["layer_attn_n"]}
    arrays["head_attn_n"] = 2 * arrays["head_attn_w"]
    sentence = make_sentence(0, arrays=arrays)
    kinds = layout(sentence, ["attn_w", "attn_n"])
    assert kinds["attn_n"] == KindLayout(heads=3, head_plane=6, layer_plane=12, normed=False)
    T, S = 5, 5
    links = np.zeros((16, 3, 3), dtype=np.bool_)
    assert len(encode_sentence(sentence, kinds, links)) == 14 * T * 4 + 14 * T * S + 16 * 2


@pytest.mark.parametrize("content", [b"", b"</script><!--", bytes(range(256))])
def test_packed_text_ends_no_element(content: bytes) -> None:
    text = pack(content)
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
    assert zlib.decompress(base64.b64decode(text)) == content
