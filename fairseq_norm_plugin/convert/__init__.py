"""Turns models in the format of Transformers into fairseq checkpoints (``python -m fairseq_norm_plugin.convert``)."""
