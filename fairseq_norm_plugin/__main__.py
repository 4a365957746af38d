"""``python -m fairseq_norm_plugin`` prints the path to give to ``--user-dir``."""

from pathlib import Path

print(Path(__file__).resolve().parent)
