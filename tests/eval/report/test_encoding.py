import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from alignment_eval.report.encoding import ERROR, STEPS, quantise

VALUES = st.floats(1e-30, 1e6) | st.just(0.0)


@given(arrays.arrays(np.float64, (2, 3, 4), elements=VALUES))
def test_a_value_is_off_by_a_share_of_the_largest_of_its_row(planes):
    steps, scales = quantise(planes)
    stored = steps / STEPS * scales[..., np.newaxis]
    assert (np.abs(stored - planes) <= ERROR * planes.max(axis=-1, keepdims=True) * (1 + 1e-9)).all()
    assert not steps[planes == 0].any()
    # as the page has it, in half of a float32
    assert ((scales.astype("<f4").view("<u4") & 0xFFFF) == 0).all()
