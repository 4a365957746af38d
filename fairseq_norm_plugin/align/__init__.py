"""The command line ``norm-align`` (``python -m fairseq_norm_plugin.align``): word alignments of raw parallel text."""
