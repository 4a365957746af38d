"""Training and validation under the plugin: fairseq's own, but for the sentences that its validation loses."""

from collections import Counter

import pytest
import torch
from fairseq import tasks

from fairseq_norm_plugin.hooks.tasks.translation import TranslationNormTask

HYPOTHESES = ("H", "D", "P")
BEAM = ["--beam", "3", "--min-len", "3", "--max-len-b", "9"]


@pytest.fixture
def batches(train_config):
    """The ids of each batch of a subset, with fairseq's default multiple of 8."""

    def make(task_name, subset, training):
        _, cfg = train_config("--criterion", "cross_entropy", task=task_name)
        task = tasks.setup_task(cfg.task)
        if training:
            task.build_criterion(cfg.criterion)
        for name in ("train", "valid"):
            task.load_dataset(name)
        iterator = task.get_batch_iterator(
            task.dataset(subset), max_tokens=100, max_positions=(1024, 1024), required_batch_size_multiple=8
        )
        return [[int(id_) for id_ in batch] for batch in iterator.frozen_batches]

    return make


def test_training_keeps_fairseqs_batches(batches):
    expected = batches("translation", "train", training=True)
    assert batches("translation_norm", "train", training=True) == expected
    # generation from the training set is no training
    generated = batches("translation_norm", "train", training=False)
    assert sorted(id_ for batch in generated for id_ in batch) == list(range(60))


def test_training_under_the_plugin_is_fairseqs(trained, batches, monkeypatch):
    """The very parameters; and the validation in between sees every sentence once."""
    seen = []
    step = TranslationNormTask.valid_step

    def noting(self, sample, model, criterion):
        seen.extend(sample["id"].tolist())
        return step(self, sample, model, criterion)

    monkeypatch.setattr(TranslationNormTask, "valid_step", noting)
    options = ["--dropout", 0.2, "--attention-dropout", 0.1]
    ours = trained("noted", *options, "--valid-subset", "valid", task="translation_norm")
    states = [torch.load(path, weights_only=True) for path in (ours, trained("theirs", *options))]
    assert states[0]["cfg"]["task"]["_name"] == "translation_norm"
    assert states[0]["model"].keys() == states[1]["model"].keys()
    for name, tensor in states[0]["model"].items():
        assert torch.equal(tensor, states[1]["model"][name]), name
    assert sorted(Counter(seen).items()) == [(id_, len(seen) // 11) for id_ in range(11)]  # once a validation


def test_a_checkpoint_trained_under_the_plugin_is_stocks(trained, norm, command, bin_directory, data, parse_output):
    """In a process that never sees the plugin; torch ≥ 2.6 must be told to trust the file there."""
    path = trained("ours", task="translation_norm")
    words = [data, "--path", path, "--task", "translation", "--cpu", "--required-batch-size-multiple", 1, *BEAM]
    result = command(bin_directory / "fairseq-generate", *words, TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1")
    expected = parse_output(result.stdout).lines(*HYPOTHESES)
    assert len(expected) == 12 * len(HYPOTHESES)
    assert norm(*BEAM, path=path).lines(*HYPOTHESES) == expected
    assert norm(*BEAM, "--print-alignment", "hard", path=path).lines(*HYPOTHESES) == expected
