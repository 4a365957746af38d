"""fairseq plugin (``--user-dir``): norm-weighted encoder-decoder attention maps of any trained Transformer.

A command of this package parses its options first, and then imports :mod:`fairseq_norm_plugin.hooks.registration`,
with torch and fairseq.  Every other program gets the whole plugin at once, because fairseq takes what an import
registers.
"""

import sys

if sys.version_info < (3, 10):  # noqa: UP036  # pip refuses it, but --user-dir may name a clone
    sys.exit(f"fairseq_norm_plugin: this is Python {sys.version.split()[0]}: expected 3.10 or newer")

from fairseq_norm_plugin.process import is_own_command, let_waiting_threads_sleep, set_up_command

if is_own_command(sys.orig_argv):
    let_waiting_threads_sleep()
else:
    set_up_command(sys.argv[0])

    from fairseq_norm_plugin.hooks import registration as registration  # isort: split  # fairseq is imported there first
    from fairseq_norm_plugin.model.align_batch import AlignBatch
    from fairseq_norm_plugin.model.block_maps import BlockMaps
    from fairseq_norm_plugin.model.loading import load
    from fairseq_norm_plugin.model.masked_lm import MaskedLM, load_masked_lm
    from fairseq_norm_plugin.model.norm_model import NormModel

__all__ = ["AlignBatch", "BlockMaps", "MaskedLM", "NormModel", "load", "load_masked_lm"]
