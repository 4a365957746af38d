"""Choosing maps and rules, and the file that keeps a choice.

``profile`` compares maps, and is the choice and its file; ``chosen`` has the options of an alignment, and makes the
method of them and of profiles.  ``norm-align calibrate`` writes profiles.
"""
