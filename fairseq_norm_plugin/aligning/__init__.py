"""From sentence pairs to word alignments: models of one direction, their text, their maps and links."""
