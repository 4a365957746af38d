"""Reading fairseq's attention layers during a forward pass."""
