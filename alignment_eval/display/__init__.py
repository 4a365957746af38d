"""Maps and alignments as people look at them: short names, tables, pictures, notebook cells."""
