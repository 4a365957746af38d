"""Finds misreadings of the files that explain a suspicious AER."""
