"""The fairseq models; fairseq imports this folder itself."""
