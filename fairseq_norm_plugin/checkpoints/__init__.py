"""Checkpoints and what lies next to them; nothing that a checkpoint holds is run."""
