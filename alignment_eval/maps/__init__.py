"""Maps of a sentence pair: between tokens, and merged into words."""
