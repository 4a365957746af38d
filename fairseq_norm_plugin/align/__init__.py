"""The command line ``norm-align``: word alignments of raw parallel text."""
