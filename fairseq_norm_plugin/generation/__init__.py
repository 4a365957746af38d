"""Beam search and forced scoring with maps."""
