"""Word alignments of raw parallel text: ``python -m fairseq_norm_plugin.align``."""
