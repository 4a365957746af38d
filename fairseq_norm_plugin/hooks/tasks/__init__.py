"""The fairseq tasks; fairseq imports this folder itself."""
