"""Registers the plugin with fairseq: tasks, models, a criterion, and the types that checkpoints may hold.

Modules of fairseq call ``logging.basicConfig(level=logging.DEBUG)`` when they are imported.  The debug messages of all
libraries would then go to the standard error of a program that imports the plugin.  So the root logger has a handler
meanwhile: then ``basicConfig`` does nothing.  With torch 2.14 they also warn of ``torch.jit.script``, which they call.

A fairseq that lacks what the plugin needs is refused here.
"""

import logging
import sys
import warnings

from alignment_eval.errors import InputError
from fairseq_norm_plugin.environment import check_calls, check_installed, set_up_command, unsuitable

check_installed()
_root, _placeholder = logging.getLogger(), logging.NullHandler()
_root.addHandler(_placeholder)
try:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*torch.jit", category=FutureWarning)
        check_calls()

        from fairseq_norm_plugin.checkpoints.read import admit_checkpoint_types

        admit_checkpoint_types()

        from fairseq_norm_plugin.hooks import criterion as criterion
        from fairseq_norm_plugin.hooks import tasks as tasks
        from fairseq_norm_plugin.transformers import bert as bert
        from fairseq_norm_plugin.transformers import marian as marian
except (InputError, OSError, MemoryError):
    raise
except Exception as _error:  # whatever another fairseq lacks, or raises with this Python
    raise unsuitable(_error) from _error
finally:
    _root.removeHandler(_placeholder)
set_up_command(sys.argv[0])
