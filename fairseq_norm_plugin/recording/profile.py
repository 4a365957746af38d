"""The profile of the model in a run of fairseq-generate."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.profiles.chosen import NO_PROFILE
from alignment_eval.profiles.profile import profile_path, read_profile
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


def profile_file(checkpoints: Sequence[str], direction: str | None) -> Path:
    """Where the profile of a model is by default: beside its first checkpoint, with what else it depends on.

    Args:
        checkpoints: the files of the models of an ensemble.
        direction: the direction that language tags tell the model; None: it has no tags.
    """
    first = Path(checkpoints[0])
    others = f"+{len(checkpoints) - 1}" if len(checkpoints) > 1 else ""
    told = "" if direction is None else "." + re.sub(r"[^\w@+-]", "_", direction)
    return profile_path(first.with_name(f"{first.name}{others}{told}"))


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
