"""From maps to links: which maps, which rule, one direction or two, with or without a lexicon."""
