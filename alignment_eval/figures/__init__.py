"""Figures: sentences, heatmaps, training curves."""
