"""Models of one direction."""

import pytest

from fairseq_norm_plugin.model.model import Model
from fairseq_norm_plugin.text.pair import SentencePair, TextPipeline
from fairseq_norm_plugin.text.subwords import MarkedSubwords
from fairseq_norm_plugin.text.tokens import SpecialTokens, Vocabulary, special_ids


def pair_of(source, target):
    """The lines of these pieces, which ``@@`` marks."""
    pipeline = TextPipeline(MarkedSubwords("@@"))
    return SentencePair(pipeline.read(" ".join(source)), pipeline.read(" ".join(target)))


@pytest.fixture
def make_direction(build, tgt_dict):
    """Make a direction of models, or of random ones of these seeds."""

    def make(*models, name="checkpoint.pt", mark="@@", **options):
        members = [build(model, **options) if isinstance(model, int) else model for model in models]
        pipeline = TextPipeline(MarkedSubwords(mark))
        vocabulary = Vocabulary(tgt_dict, mark, special_ids(tgt_dict))
        tokens = SpecialTokens.untagged(tgt_dict.eos())
        return Model(members, (vocabulary, vocabulary), (pipeline, pipeline), name, tokens)

    return make
