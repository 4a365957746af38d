"""Aligns sentence pairs: batches of tokens, maps of one model or two, links by one method."""

from fairseq_norm_plugin.hooks import registration as registration  # fairseq is imported there first
