"""``python -m alignment_eval`` is ``align-eval``."""

import sys

from alignment_eval.cli import main

sys.exit(main())
