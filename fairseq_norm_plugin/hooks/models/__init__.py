"""Models for fairseq, which imports this folder itself."""
