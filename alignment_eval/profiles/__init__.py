"""Choosing maps and rules, and the file that keeps a choice.

``search`` compares maps; ``profile`` is the choice and its file; ``chosen`` decides which profile counts, and applies
options to it; ``of_records`` does so for recorded maps.  ``norm-align calibrate`` and ``align-eval select`` write it.
"""
