"""Options of ``python -m fairseq_norm_plugin.align`` that several of its tests give."""

PAPER = ("--kind", "attn_n", "--heads", 0, "--setting", "awo", "--rule", "kobayashi2020")
#: What is done with --table text, by a model of two layers whose text is too short to choose maps by.
DEFAULT = ("--kind", "attn_n", "--heads", "0,1", "--setting", "awo", "--table", "text")
