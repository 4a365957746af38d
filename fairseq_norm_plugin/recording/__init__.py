"""Output of a run: its identity, its parts, its writers."""
