"""Captures maps from fairseq's attention layers during a forward pass."""
