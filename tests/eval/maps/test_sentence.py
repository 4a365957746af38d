from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.maps.kinds import DEFAULT_KINDS
from alignment_eval.maps.sentence import status_of
from tests.facts import facts


def test_kinds_are_derived_as_the_slow_loop(make_sentence):
    s = make_sentence(3)
    assert s.kinds == (*DEFAULT_KINDS, "attnres_w", "attnres_n")
    assert s.heads == 3
    weights, norms = s.arrays["head_attn_w"], s.arrays["transformed_norm"]
    expected = np.empty_like(weights)
    for layer, head, row, column in np.ndindex(weights.shape):
        expected[layer, head, row, column] = weights[layer, head, row, column] * norms[layer, head, column]
    np.testing.assert_array_equal(s.head_maps("attn_w"), weights)
    np.testing.assert_array_equal(s.head_maps("attn_n"), expected)
    np.testing.assert_array_equal(s.layer_maps("attn_n"), s.arrays["layer_attn_n"])
    mean = s.layer_maps("attn_w")
    assert mean.dtype == np.float64
    np.testing.assert_allclose(mean, weights.astype(np.float64).sum(axis=1) / 3, rtol=1e-15)
    np.testing.assert_array_equal(s.layer_maps("attnres_w"), mean / 2)


def test_recorded_head_norms_win_over_the_product(make_sentence):
    s = make_sentence()
    own = np.full_like(s.arrays["head_attn_w"], 7)
    s = replace(s, arrays={"head_attn_n": own, "layer_attn_n": s.arrays["layer_attn_n"]})
    assert s.kinds == ("attn_n", "attnres_n")
    np.testing.assert_array_equal(s.head_maps("attn_n"), own)
    assert replace(s, arrays={"head_attn_n": own}).kinds == ()


def test_errors(make_sentence):
    with pytest.raises(InputError, match=facts("unknown map kind 'attn_x' … one of attn_w, attn_n")):
        make_sentence().head_maps("attn_x")
    stub = make_sentence(4, status="skipped: too long")
    with pytest.raises(InputError, match=r"sentence 4 has no maps: skipped: too long"):
        stub.layer_maps("attn_w")
    weights = {"head_attn_w": make_sentence().arrays["head_attn_w"]}
    only_weights = replace(make_sentence(), arrays=weights)
    assert only_weights.kinds == ("attn_w", "attnres_w")
    for read in (only_weights.head_maps, only_weights.layer_maps):
        with pytest.raises(InputError, match=facts("map kind 'attn_n' … attn_w, attnres_w): record it")):
            read("attn_n")
    with pytest.raises(InputError, match=r"they have none"):
        replace(make_sentence(), arrays={}).head_maps("attn_w")


def test_uncertain_words(make_sentence):
    s = replace(make_sentence(), status=status_of(False, True))
    assert not s.ok
    assert s.head_maps("attn_w").shape == (2, 3, 5, 5)
    assert s.confirmed().status == "ok"
    tokens = s.by_tokens()
    assert (tokens.ok, tokens.source.words.tolist()) == (True, [0, 1, 2, 3, -1])
    assert status_of(True, True) == "ok"
