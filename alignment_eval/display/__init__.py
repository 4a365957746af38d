"""Maps and alignments for people to look at: short names, tables, plots, notebook cells."""
