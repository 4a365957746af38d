"""The text pipeline of a model: a line of text → its words → the pieces that the model reads, and whose they are."""
