"""Alignment formats and text files: detecting, reading, checking and writing them."""
