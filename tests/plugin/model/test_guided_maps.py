"""Which maps a checkpoint says it was trained to align with."""

from argparse import Namespace

import pytest

from alignment_eval.extraction.method import MapName
from fairseq_norm_plugin.model.load import guided_maps

GUIDED = (MapName(0, 0, "awi"), MapName(1, 0, "awi"), MapName(2, None, "awo"))


def options(maps):
    return Namespace(model=Namespace(guided_maps=maps))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([options("0.0,1.0:awi,2:awo")], GUIDED),  # AWI unless stated, as in training
        *(([options(maps)], ()) for maps in ("0.0:awi", "2:awo,1:awo", "", "the best", None, 7)),
        ([Namespace(model=Namespace())], ()),
        ([options("0.0,1.0,2:awo")] * 2, GUIDED),
        ([options("0.0,1.0,2:awo"), options("0.0,2:awo")], ()),
    ],
)
def test_maps_of_both_settings_that_all_members_share(members, expected):
    assert guided_maps(members) == expected
