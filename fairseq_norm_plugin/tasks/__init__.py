"""What fairseq imports of the package that ``--user-dir`` names: the modules of its folder ``tasks``."""
