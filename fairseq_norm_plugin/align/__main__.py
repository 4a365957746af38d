"""``python -m fairseq_norm_plugin.align``."""

import sys

from fairseq_norm_plugin.align.cli import main

if __name__ == "__main__":
    sys.exit(main())
