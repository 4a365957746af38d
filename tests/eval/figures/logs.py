"""Lines of logs of fairseq-train."""

import json

STAMP = "2026-01-05 10:00:00 | INFO | "


def printed(subset, update, **values):
    """The statistics of a subset at an update."""
    fields = {f"{subset}_{name}": value for name, value in {**values, "num_updates": str(update)}.items()}
    return f"{STAMP}{subset} | {json.dumps({'epoch': 1, **fields})}\n"
