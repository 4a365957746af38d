"""A loaded model: one direction of a pair, its maps, and the Python interface."""

from fairseq_norm_plugin import hooks as hooks  # fairseq is imported there first
