"""Analyses every attention block of a model: ``python -m fairseq_norm_plugin.analyze``."""
