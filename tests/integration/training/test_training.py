"""Training and validation under the plugin: fairseq's own, but for the sentences that its validation loses."""

from collections import Counter

import torch

from fairseq_norm_plugin.hooks.tasks.translation import TranslationNormTask
from tests.integration.conftest import Output

BEAM = ["--beam", "3", "--min-len", "3", "--max-len-b", "9"]


def test_training_under_the_plugin_is_fairseqs(trained, monkeypatch):
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


def test_a_checkpoint_trained_under_the_plugin_is_stocks(trained, norm, command, data):
    """In a process that never sees the plugin; torch ≥ 2.6 must be told to trust the file there."""
    path = trained("ours", task="translation_norm")
    words = [data, "--path", path, "--task", "translation", "--cpu", "--required-batch-size-multiple", 1, *BEAM]
    result = command("fairseq-generate", *words, TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1")
    expected = Output(result.stdout).lines()
    assert len(expected) == 12 * 3
    assert norm(*BEAM, path=path).lines() == expected
    assert norm(*BEAM, "--print-alignment", "hard", path=path).lines() == expected
