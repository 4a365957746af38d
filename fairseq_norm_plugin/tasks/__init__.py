"""Registers the plugin with fairseq: tasks, models, a criterion, and the types that checkpoints may hold."""

import sys

import fairseq_norm_plugin.transformers  # noqa: F401  # fairseq is imported there first

# isort: split
from fairseq_norm_plugin.environment import importing_fairseq, set_up_command

with importing_fairseq():
    from fairseq_norm_plugin.hooks import criterion as criterion
    from fairseq_norm_plugin.tasks import norm as norm
set_up_command(sys.argv[0])
