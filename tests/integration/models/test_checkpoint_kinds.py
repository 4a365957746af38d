"""Checkpoints of every kind load, decode as stock fairseq does and give their maps; unsuitable ones are refused."""

import numpy as np
import pytest
from fairseq import tasks

from alignment_eval.errors import InputError
from alignment_eval.records import Records

LONG_ENOUGH = ["--beam", 2, "--min-len", 4, "--max-len-b", 8]  # models of 8 updates would say next to nothing
SCORE = "--score-reference"
KINDS = {
    "pre-norm": {"extra": ["--encoder-normalize-before", "--decoder-normalize-before"]},
    "align": {"arch": "transformer_align"},
    "align-full-context": {"arch": "transformer_align", "extra": ["--full-context-alignment"]},
    "quant-noise": {"extra": ["--quant-noise-pq", 0.1]},
    "learned-positions": {
        "extra": ["--encoder-learned-pos", "--decoder-learned-pos", "--layernorm-embedding", "--share-all-embeddings"]
    },
}


def check_same_and_recorded(stock, norm, path, tmp_path):
    """Stock's lines without and with maps, in generation and forced scoring; weights are a distribution."""
    for mode in (LONG_ENOUGH, [SCORE]):
        expected = stock(*mode, path=path).lines()
        directory = tmp_path / str(mode[0])
        output = norm(*mode, "--print-alignment", "hard", "--norm-records", directory, path=path)
        assert output.lines() == expected
        assert [bool(content) for _, _, content in output.lines("A")] == [True] * 12
        sentences = list(Records(directory))
        assert len(sentences) == 12
        for sentence in sentences:
            np.testing.assert_allclose(sentence.head_maps("attn_w").sum(axis=-1), 1, atol=1e-5)
            assert sentence.layer_maps("attn_n").shape[0] == 2
            assert (sentence.layer_maps("attn_n") > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_architectures(stock, norm, trained, tmp_path, kind):
    arguments = dict(KINDS[kind])
    path = trained(kind, *arguments.pop("extra", []), **arguments)
    check_same_and_recorded(stock, norm, path, tmp_path)


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated:FutureWarning")
@pytest.mark.parametrize(
    ("arch", "options", "text"),
    [
        ("lstm", [], "model LSTMModel, .*LSTM"),
        ("cmlm_transformer", [], "CMLMNATransformerModel decodes non-autoregressively"),
        ("transformer", ["--cross-self-attention"], "trained with --cross-self-attention"),
    ],
)
def test_unsuitable_models_are_refused_by_name(train_config, arch, options, text):
    _, cfg = train_config(*options, arch=arch, task="translation_norm")
    task = tasks.setup_task(cfg.task)
    with pytest.raises(InputError, match=text):
        task.build_model(cfg.model)
