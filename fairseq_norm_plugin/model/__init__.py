"""A loaded model: one direction of a pair, its maps, and the Python interface."""

from fairseq_norm_plugin.hooks import registration as registration  # fairseq is imported there first
