"""``python -m fairseq_norm_plugin.analyze``."""

import sys

from fairseq_norm_plugin.analyze.cli import main

if __name__ == "__main__":
    sys.exit(main())
