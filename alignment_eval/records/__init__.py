"""Recorded maps on disk: parts, their manifests, and merging."""
