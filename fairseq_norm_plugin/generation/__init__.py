"""Beam search and forced scoring that carry maps."""
