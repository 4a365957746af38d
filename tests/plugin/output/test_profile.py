"""Where the profile of a model is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fairseq_norm_plugin.output.profile import profile_file


@pytest.mark.parametrize(
    ("checkpoints", "direction", "dtype", "name"),
    [
        (["d/a.pt"], None, torch.float32, "a.pt.align.json"),
        (["d/a.pt", "d/b.pt"], None, torch.float32, "a.pt+1.align.json"),
        (["d/a.pt"], "deu_Latn-eng_Latn", torch.float32, "a.pt.deu_Latn-eng_Latn.align.json"),
        (["d/a.pt", "d/b.pt"], "de-en", torch.bfloat16, "a.pt+1.de-en.bfloat16.align.json"),
        (["d/a.pt"], "en-x/y", torch.float16, "a.pt.en-x_y.float16.align.json"),
    ],
)
def test_beside_the_checkpoint(checkpoints, direction, dtype, name):
    assert profile_file(checkpoints, direction, dtype) == Path("d") / name
