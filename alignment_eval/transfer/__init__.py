"""Moves what marks words of one side of a pair onto the other side, along word links."""
