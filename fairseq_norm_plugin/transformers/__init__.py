"""Models in the format of Transformers, read into the networks of fairseq."""
