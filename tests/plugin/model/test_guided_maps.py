"""Which maps a checkpoint says it was trained to align with."""

from __future__ import annotations

from argparse import Namespace

import pytest

from alignment_eval.extraction.options import MapName
from fairseq_norm_plugin.model.guided_maps import guided_maps

GUIDED = (MapName(0, 0, "awi"), MapName(1, 0, "awi"), MapName(2, None, "awo"))


def options(maps):
    return Namespace(model=Namespace(guided_maps=maps))


def test_guided_maps_have_their_setting():
    assert guided_maps([options("0.0,1.0:awi,2:awo")]) == GUIDED  # AWI unless stated, as in training


@pytest.mark.parametrize("maps", ["0.0:awi", "2:awo,1:awo", "", "the best", None, 7])
def test_maps_of_one_setting_and_other_things_are_none(maps):
    assert guided_maps([options(maps)]) == ()


def test_a_model_that_was_not_guided():
    assert guided_maps([Namespace(model=Namespace())]) == ()


def test_members_of_an_ensemble_must_share_them():
    assert guided_maps([options("0.0,1.0,2:awo")] * 2) == GUIDED
    assert guided_maps([options("0.0,1.0,2:awo"), options("0.0,2:awo")]) == ()
    assert guided_maps([options("0.0,1.0,2:awo"), Namespace(model=Namespace())]) == ()
