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
from alignment_eval.report.encoding import (
    ERROR,
    NORM_ERROR,
    STEPS,
    KindLayout,
    encode_sentence,
    half,
    layout,
    pack,
    quantise,
    upper,
)

Factory = Callable[..., SentenceMaps]


VALUES = st.floats(1e-30, 1e6) | st.just(0.0)


@given(arrays.arrays(np.float64, (2, 3, 4), elements=VALUES), arrays.arrays(np.float64, (1, 4), elements=VALUES))
def test_a_value_is_off_by_a_share_of_its_row_also_times_norms(planes: np.ndarray, norms: np.ndarray) -> None:
    """The first plane is multiplied by norms, the second is not."""
    norms = half(norms, 5, np.rint)
    steps, (scales, of_normed) = quantise(planes, norms)
    for plane, t in np.ndindex(2, 3):
        row, shares = planes[plane, t], steps[plane, t] / STEPS
        factors = np.full(4, 1 / scales[plane, t] if scales[plane, t] else np.inf)
        if plane == 0 and of_normed[0, t]:
            factors = np.maximum(factors, norms[0] / of_normed[0, t])
        stored = np.where(shares > 0, shares / factors, 0.0)
        assert (np.abs(stored - row) <= ERROR * row.max() * (1 + 1e-9)).all()
        if plane == 0:
            normed = row * norms[0]
            assert (np.abs(stored * norms[0] - normed) <= ERROR * normed.max() * (1 + 1e-9)).all()
    assert not steps[planes == 0].any()


@given(arrays.arrays(np.float64, 9, elements=VALUES))
def test_half(values: np.ndarray) -> None:
    up, near = half(values, 3), half(values, 5, np.rint)
    assert ((up >= values) & (up <= values * (1 + 2**-3))).all()
    assert (np.abs(near - values) <= NORM_ERROR * values).all()
    for found in (up, near):  # which the upper half of a float32 holds
        read = (np.frombuffer(upper(found), "<u2").astype("<u4") << 16).view("<f4")
        np.testing.assert_array_equal(read, found)


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
    assert len(encode_sentence(sentence, kinds, links)) == 14 * T * 2 + 14 * T * S + 16 * 2


@pytest.mark.parametrize("content", [b"", b"</script><!--", bytes(range(256))])
def test_packed_text_ends_no_element(content: bytes) -> None:
    text = pack(content)
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
    assert zlib.decompress(base64.b64decode(text)) == content
