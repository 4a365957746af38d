"""fairseq plugin (``--user-dir``): norm-weighted encoder-decoder attention maps of any trained Transformer."""

import sys

from fairseq_norm_plugin.console import set_up
from fairseq_norm_plugin.root_logger import kept_root_logger
from fairseq_norm_plugin.waiting_threads import let_waiting_threads_sleep

let_waiting_threads_sleep(sys.orig_argv)
set_up(sys.argv[0])

with kept_root_logger():
    from fairseq_norm_plugin.checkpoints import admit_checkpoint_types

    admit_checkpoint_types()

    from fairseq_norm_plugin.api import AlignBatch, BlockMaps, MaskedLM, NormModel, load, load_masked_lm
    from fairseq_norm_plugin.models import bert as bert  # registers the models
    from fairseq_norm_plugin.models import marian as marian
    from fairseq_norm_plugin.tasks import masked_lm as masked_lm  # registers the tasks
    from fairseq_norm_plugin.tasks import multilingual as multilingual
    from fairseq_norm_plugin.tasks import translation as translation
    from fairseq_norm_plugin.training import guided as guided

__all__ = ["AlignBatch", "BlockMaps", "MaskedLM", "NormModel", "load", "load_masked_lm"]
