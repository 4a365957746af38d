"""Turns maps into links: by a rule, from one direction or both, with or without a lexical table."""
