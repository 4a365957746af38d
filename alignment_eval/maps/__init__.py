"""Maps of one sentence pair: between tokens, and merged into words."""
