"""The Python interface: load a checkpoint, get maps as arrays, tables and plots, and word alignments."""

from fairseq_norm_plugin import registration as registration  # isort: split  # fairseq is imported there first
from fairseq_norm_plugin.api.align_batch import AlignBatch
from fairseq_norm_plugin.api.block_maps import BlockMaps
from fairseq_norm_plugin.api.loading import load
from fairseq_norm_plugin.api.masked_lm import MaskedLM, load_masked_lm
from fairseq_norm_plugin.api.model import NormModel

__all__ = ["AlignBatch", "BlockMaps", "MaskedLM", "NormModel", "load", "load_masked_lm"]
