from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.report.encoding import (
    ERROR,
    STEPS,
    KindLayout,
    half,
    layout,
    quantise,
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
