"""``python -m fairseq_norm_plugin.convert``."""

import sys

from fairseq_norm_plugin.convert.cli import main

if __name__ == "__main__":
    sys.exit(main())
