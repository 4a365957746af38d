"""Links between words, and symmetrisation of two directions."""
