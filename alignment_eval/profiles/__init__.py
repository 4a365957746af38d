"""Choosing maps and rules, and the file that keeps a choice."""
