"""Models of one direction."""

from __future__ import annotations

import pytest

from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.text.pieces import MarkedPieces
from fairseq_norm_plugin.text.tokenise import TextPipeline


@pytest.fixture
def make_direction(build, tgt_dict):
    def make(seed, name="checkpoint.pt", mark="@@", **options):
        pipeline = TextPipeline(MarkedPieces(mark))
        return Direction([build(seed, **options)], (tgt_dict, tgt_dict), (pipeline, pipeline), name)

    return make
