"""Work in parts: what a run has done so far, and the files that are made of it."""
