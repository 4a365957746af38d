"""fairseq plugin (``--user-dir``): norm-weighted encoder-decoder attention maps of any trained Transformer."""

from fairseq_norm_plugin.checkpoints import admit_checkpoint_types

admit_checkpoint_types()

from fairseq_norm_plugin import task as task  # noqa: E402  # registers the tasks
from fairseq_norm_plugin.api import NormModel, load  # noqa: E402

__all__ = ["NormModel", "load"]
