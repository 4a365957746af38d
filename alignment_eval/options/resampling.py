"""Options of the commands that resample sentences."""

from __future__ import annotations

import argparse

from alignment_eval.errors import warn_on_stderr
from alignment_eval.scoring.significance import LEVEL, Resampling, group_size

#: With fewer sentences, bootstrap intervals are too narrow.
_FEW_SENTENCES = 20


def add_resampling_arguments(group: argparse._ActionsContainer) -> None:
    """Declare ``--resamples`` and ``--seed``; both are None where they are not given."""
    default = Resampling()
    group.add_argument("--resamples", type=int, metavar="N", help=f"number of resamples (default: {default.resamples})")
    group.add_argument("--seed", type=int, metavar="N", help=f"seed of the random draws (default: {default.seed})")


def resampling_of(args: argparse.Namespace) -> Resampling:
    """The given options, or their defaults; raises UsageError for impossible values."""
    given = {name: getattr(args, name) for name in ("resamples", "seed") if getattr(args, name) is not None}
    return Resampling(**given)


def resampling_fields(options: Resampling, sentences: int, **methods: str) -> dict[str, str | int | float]:
    """Signature fields: how that many sentences were resampled."""
    size = group_size(sentences)
    grouped = {"drawn_together": size} if size > 1 else {}
    return {"level": LEVEL, **methods, **grouped, "resamples": options.resamples, "seed": options.seed}


def warn_of_few(sentences: int) -> None:
    """Warn if there are too few sentences for a reliable interval."""
    if sentences < _FEW_SENTENCES:
        warn_on_stderr(f"only {sentences} sentences: intervals are too narrow and p-values are coarse")
