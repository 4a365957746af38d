"""Where the profile of a model is."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_norm_plugin.recording.profile import profile_file


@pytest.mark.parametrize(
    ("checkpoints", "direction", "name"),
    [
        (["d/a.pt"], None, "a.pt.align.json"),
        (["d/a.pt", "d/b.pt"], None, "a.pt+1.align.json"),
        (["d/a.pt"], "deu_Latn-eng_Latn", "a.pt.deu_Latn-eng_Latn.align.json"),
        (["d/a.pt", "d/b.pt"], "de-en", "a.pt+1.de-en.align.json"),
        (["d/a.pt"], "en-x/y", "a.pt.en-x_y.align.json"),
    ],
)
def test_beside_the_checkpoint(checkpoints, direction, name):
    assert profile_file(checkpoints, direction) == Path("d") / name
