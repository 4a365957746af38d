"""The profile of the model in a run of fairseq-generate."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import torch
from torch import nn

from alignment_eval.errors import warn_on_stderr
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.selection.of_records import NO_PROFILE
from alignment_eval.selection.profile import profile_path, read_profile
from fairseq_norm_plugin.output.identity import model_hash


@dataclass(frozen=True)
class RunProfile:
    """A profile as a run uses it.

    Attributes:
        path: its file.
        content: the profile as JSON; records store it.
        maps: the maps that are read while translating, without a lexicon.
    """

    path: Path
    content: str
    maps: ExtractionOptions

    def announce(self) -> None:
        """Print to standard error which maps the alignments are read from."""
        print(f"--norm-alignments: maps {self.maps.map_names} from {self.path}", file=sys.stderr)


def profile_of_run(cfg: Any, models: Sequence[nn.Module]) -> Optional[RunProfile]:
    """The profile that ``--norm-profile`` names, or the one beside the checkpoint; None if there is none.

    Raises:
        InputError: the profile cannot be read, or belongs to another model.
    """
    named = cfg.norm_profile
    if named == NO_PROFILE or not (named or cfg.norm_checkpoint):
        return None
    path = Path(named) if named else profile_path(cfg.norm_checkpoint)
    if not named and not path.is_file():
        return None
    if next(models[0].parameters()).dtype != torch.float32:
        warn_on_stderr(f"{path}: the profile is ignored, because it was made in float32 and this run has another type")
        return None
    profile = read_profile(path, model_hash(models))
    return RunProfile(path, profile.to_json(), profile.streamed.forward)
