"""Models in the format of Transformers as fairseq's; registers the networks that fairseq lacks, Marian's and BERT's.

Whoever reads a model imports this package before fairseq: a fairseq that lacks what is needed is refused here, and the
types that checkpoints may hold are admitted.
"""

from fairseq_norm_plugin.environment import importing_fairseq

with importing_fairseq():
    from fairseq_norm_plugin.checkpoints.read import admit_checkpoint_types
    from fairseq_norm_plugin.transformers import networks as networks

    admit_checkpoint_types()
