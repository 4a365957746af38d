"""Word alignments from maps, scored against gold: extraction, AER, sweeps (no torch, no fairseq)."""

__version__ = "0.1.0"
