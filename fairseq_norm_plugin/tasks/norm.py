"""Registers the plugin."""

from fairseq_norm_plugin import register

register()
