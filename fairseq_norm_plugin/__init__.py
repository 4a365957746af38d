"""fairseq plugin (``--user-dir``): norm-weighted encoder-decoder attention maps of any trained Transformer.

A command of this package parses its options first, and then imports :mod:`fairseq_norm_plugin.registration`, with torch
and fairseq.  Every other program gets the whole plugin at once, because fairseq takes what an import registers.
"""

import sys

from fairseq_norm_plugin.console import set_up
from fairseq_norm_plugin.process import is_own_command, let_waiting_threads_sleep

if is_own_command(getattr(sys, "orig_argv", sys.argv)):  # Python 3.9 has only argv
    let_waiting_threads_sleep()
else:
    set_up(sys.argv[0])

    from fairseq_norm_plugin import registration as registration
    from fairseq_norm_plugin.api import AlignBatch, BlockMaps, MaskedLM, NormModel, load, load_masked_lm

__all__ = ["AlignBatch", "BlockMaps", "MaskedLM", "NormModel", "load", "load_masked_lm"]
