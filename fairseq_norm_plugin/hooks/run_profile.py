"""The profile of the model in a run of fairseq-generate."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.profiles.chosen import NO_PROFILE
from alignment_eval.profiles.profile import read_profile
from fairseq_norm_plugin.checkpoints.files import profile_file
from fairseq_norm_plugin.recording.identity import told_hash


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


def profile_of_run(task: Any, parameters: str) -> RunProfile | None:
    """The profile that ``--norm-profile`` names, or the one beside the checkpoint; None if there is none.

    Args:
        task: a norm task.
        parameters: the hash of the models' parameters in float32 (identity.ParameterHash).

    Raises:
        InputError: the profile cannot be read, or belongs to another model.
    """
    named, checkpoint = task.cfg.norm_profile, task.cfg.norm_checkpoint
    if named == NO_PROFILE or not (named or checkpoint):
        return None
    path = Path(named) if named else profile_file(str(checkpoint).split(":"), task.told_direction)
    if not named and not path.is_file():
        return None
    profile = read_profile(path, told_hash(parameters, task.frames))
    return RunProfile(path, profile.to_json(), profile.streamed.forward)
