"""Alignment formats and text files: detection, reading, checking, writing."""
