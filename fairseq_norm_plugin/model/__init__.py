"""A loaded model: one direction of a pair, its maps, and the Python interface."""

import fairseq_norm_plugin.transformers  # noqa: F401  # fairseq is imported there first
