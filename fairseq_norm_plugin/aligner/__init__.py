"""Aligns sentence pairs: batches of tokens, maps of one model or two, links by one method."""
