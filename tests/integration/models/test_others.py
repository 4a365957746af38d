"""A model that somebody else trained, against the attention that another implementation computes for it."""

import json

import numpy as np
import pytest

import fairseq_norm_plugin as fnp

pytestmark = pytest.mark.shared


def test_attention_of_ctranslate2(shared):
    """OpenNMT's transliteration model: CTranslate2's own weights of head 0 in the last layer, for six words."""
    directory = shared / "models/aren-transliteration"
    model = fnp.load(
        *(directory / "checkpoint.pt", directory),
        source_lang="src",
        target_lang="tgt",
        tokenizer="none",
        bpe="none",
    )
    words = json.loads((directory / "ref.json").read_text(encoding="utf-8"))
    assert len(words) == 6
    for word in words:
        maps = model.maps(" ".join(word["src"]), " ".join(word["tgt"]), kinds=["attn_w"])
        rows = maps.head_maps("attn_w")[-1, 0][: len(word["attn"])]
        assert rows == pytest.approx(np.array(word["attn"]), abs=1e-6)
