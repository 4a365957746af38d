"""What a run writes: its identity, its parts, its writers."""
