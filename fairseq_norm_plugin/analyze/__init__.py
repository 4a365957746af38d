"""Analyses of every attention block: ``python -m fairseq_norm_plugin.analyze``."""
