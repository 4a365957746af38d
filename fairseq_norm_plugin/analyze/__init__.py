"""Analyses every attention block of a model: ``norm-analyze``."""
