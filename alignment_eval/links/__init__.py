"""Links between words, and the symmetrisation of two directions."""
