"""Checkpoints of every kind load, decode as stock fairseq does and give their maps; unsuitable ones are refused."""

import functools
import re

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq_cli import eval_lm

from alignment_eval.errors import InputError
from alignment_eval.records import Records
from tests.integration.conftest import in_process

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
        ("multilingual_transformer", [], "multilingual_transformer .*--task multilingual_translation; for maps"),
    ],
)
def test_unsuitable_models_are_refused_by_name(train_config, arch, options, text):
    _, cfg = train_config(*options, arch=arch, task="translation_norm")
    task = tasks.setup_task(cfg.task)
    with pytest.raises(InputError, match=text):
        task.build_model(cfg.model)


@pytest.fixture
def with_and_without(monkeypatch):
    """What a run gives under the plugin, and where fairseq itself reads the checkpoints."""

    def both(run):
        ours = run()
        with monkeypatch.context() as stock:
            read = checkpoint_utils.load_checkpoint_to_cpu.__wrapped__
            stock.setattr(checkpoint_utils, "load_checkpoint_to_cpu", read)
            stock.setattr(torch, "load", functools.partial(torch.load, weights_only=False))
            return ours, run()

    return both


def test_a_transformer_for_each_pair_translates_as_in_stock_fairseq(trained, data, run_generate, with_and_without):
    words = ["--lang-pairs", "xx-yy,yy-xx", "--task", "multilingual_translation"]
    path = trained("pairs", *words, arch="multilingual_transformer", task="multilingual_translation")
    words += ["-s", "yy", "-t", "xx", "--path", path, *LONG_ENOUGH]
    ours, stock = with_and_without(lambda: run_generate(data, *words).lines())
    assert ours == stock != []


def test_a_language_model_scores_and_helps_as_in_stock_fairseq(
    trained, data, run_generate, checkpoint, tmp_path, caplog, with_and_without
):
    for file in data.iterdir():
        for name in {file.name, file.name.replace(".xx-yy.yy.", ".").replace("dict.yy.", "dict.")}:
            (tmp_path / name).symlink_to(file)
    size = ["--tokens-per-sample", 16]
    path = trained("lm", *size, data=tmp_path, arch="transformer_lm", task="language_modeling")
    caplog.set_level("INFO")
    words = [tmp_path, "--path", path, "--cpu", "--output-word-probs", "--context-window", 4, *size]

    def scores():
        caplog.clear()
        in_process(eval_lm.main, options.get_eval_lm_parser(), words)
        return [line for line in caplog.messages if line.startswith("Loss") or " [-" in line]

    ours, stock = with_and_without(scores)
    assert ours == stock
    assert float(re.search(r"Loss \(base 2\): ([\d.]+)", ours[-1])[1]) > 1
    words = [tmp_path, "--path", checkpoint, "-s", "xx", "-t", "yy", "--task", "translation"]
    fused = lambda *more: run_generate(*words, *more).lines()  # noqa: E731
    ours, stock = with_and_without(lambda: fused("--lm-path", path, "--lm-weight", 0.8))
    assert ours == stock != fused()
