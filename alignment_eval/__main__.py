"""``python -m alignment_eval`` is ``align-eval``."""

import sys

from alignment_eval.commands import main

sys.exit(main())
