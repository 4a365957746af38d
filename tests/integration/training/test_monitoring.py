"""AER on every validation of a training run: its figures, its cost to training (none), and what goes wrong."""

import math
import re
from argparse import Namespace
from collections import Counter
from unittest.mock import MagicMock

import pytest
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.logging import progress_bar
from fairseq_cli import validate

from alignment_eval.errors import InputError, UsageError
from alignment_eval.figures.maps import draw
from fairseq_norm_plugin.hooks.tasks import TranslationNormTask
from fairseq_norm_plugin.hooks.validation import GOLD_KEY, Monitor
from tests.demo import written
from tests.facts import says
from tests.integration.conftest import Output, config_of, layer_aers
from tests.integration.training.conftest import halves

SUBSETS = ("--valid-subset", "test,valid")


@pytest.fixture
def monitored(trained, gold):
    """Train with monitoring, once a name, and give the last checkpoint."""

    def make(name, *extra, subsets=SUBSETS, path=None, **fields):
        options = ["--aer-gold", f"test={path or gold}", "--aer-gold-base", 1, *subsets, "--log-format", "json"]
        return trained(name, *options, *extra, task="translation_norm", **fields)

    return make


def test_the_figures_are_those_of_records_of_the_same_model(monitored, logged, norm, gold, tmp_path):
    path = monitored("figures", "--norm-layer", 0, "--norm-map", "attn_w", "--norm-setting", "awi")
    found = logged("test")[-1]
    norm("--score-reference", "--gen-subset", "test", "--norm-records", tmp_path / "records", path=path)
    layers = layer_aers(tmp_path / "records", gold)
    assert len(layers) == 8
    for name, row in layers.items():
        assert float(found[name]) == round(row.aer, 6), name
    main = layers["aer_l0_w_awi"]
    for name, value in (("aer", main.aer), ("aer_precision", main.precision), ("aer_recall", main.recall)):
        assert float(found[name]) == round(value, 6)
    assert (found["aer_sentences"], found["aer_sentences_gold"], found["aer_unaligned"]) == ("12", "12", "0")
    assert not any(key.startswith("aer") for line in logged("valid") for key in line)


def test_training_is_untouched(monitored, trained, monkeypatch):
    """The very parameters; and each validation in between sees every sentence once."""
    seen = Counter()
    step = TranslationNormTask.valid_step

    def noting(self, sample, model, criterion):
        seen.update((GOLD_KEY in sample, id_) for id_ in sample["id"].tolist())
        return step(self, sample, model, criterion)

    monkeypatch.setattr(TranslationNormTask, "valid_step", noting)
    ours = monitored("watched", "--dropout", 0.2, "--attention-dropout", 0.1, "--aer-mixing", "attnresln_n")
    theirs = trained("unwatched", "--dropout", 0.2, "--attention-dropout", 0.1, *SUBSETS)
    states = [torch.load(path, weights_only=True) for path in (ours, theirs)]
    assert states[0]["cfg"]["task"]["_name"] == "translation_norm"
    assert states[0]["model"].keys() == states[1]["model"].keys()
    assert all(torch.equal(tensor, states[1]["model"][name]) for name, tensor in states[0]["model"].items())
    assert len(set(seen.values())) == 1
    assert set(seen) == {(True, id_) for id_ in range(12)} | {(False, id_) for id_ in range(11)}


def test_a_checkpoint_trained_under_the_plugin_is_stocks(trained, norm, command, data):
    """In a process that never sees the plugin; torch ≥ 2.6 must be told to trust the file there."""
    path, beam = trained("ours", task="translation_norm"), ["--beam", "3", "--min-len", "3", "--max-len-b", "9"]
    words = [data, "--path", path, "--task", "translation", "--cpu", "--required-batch-size-multiple", 1, *beam]
    result = command("fairseq-generate", *words, TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1")
    expected = Output(result.stdout).lines()
    assert len(expected) == 12 * 3
    assert norm(*beam, path=path).lines() == expected
    assert norm(*beam, "--print-alignment", "hard", path=path).lines() == expected


def test_the_best_checkpoint_and_patience_follow_aer(monitored, logged, caplog):
    options = ["--best-checkpoint-metric", "aer", "--patience", 2, "--save-interval-updates", 2, "--lr", "0.02"]
    path = monitored("best", *options, "--validate-interval-updates", 2, updates=12)
    lines = logged("test")
    figures, losses = ([float(line[name]) for line in lines] for name in ("aer", "loss"))
    assert len(figures) == figures.index(min(figures)) + 3 < 6  # two without a lower figure stop training
    assert losses.index(min(losses)) == len(losses) - 1
    state = torch.load(path.with_name("checkpoint_best.pt"), weights_only=True)
    assert state["extra_state"]["best"] == min(figures)
    assert all(line["aer"] is None for line in logged("valid"))  # not measured there


def test_the_best_aer_of_another_gold_is_forgotten(monitored, gold, tmp_path, caplog, monkeypatch):
    """The checkpoint of a better figure is not kept as the best if that figure is of another gold, map or rule."""
    options = ["--best-checkpoint-metric", "aer", "--validate-interval-updates", 2]
    state = torch.load(monitored("begun", *options, updates=4), weights_only=True)
    state["extra_state"]["best"] = 0.001
    torch.save(state, tmp_path / "restored.pt")
    other = written(tmp_path / "other.talp", [line.split()[0] for line in gold.read_text().splitlines()])
    runs = {"same": [], "gold": ["--aer-gold", f"test={other}"], "rule": ["--norm-rule", "shift-att"]}
    for name, changed in runs.items():
        caplog.clear()
        monkeypatch.delattr(checkpoint_utils.save_checkpoint, "best", raising=False)
        path = monitored(f"{name} again", *options, "--restore-file", tmp_path / "restored.pt", *changed, updates=6)
        best = torch.load(path, weights_only=True)["extra_state"]["best"]
        said = re.findall("cannot be compared, because these differ: (.*); it is", caplog.text)
        if name == "same":
            assert (best, said) == (0.001, [])
        else:
            assert best > 0.001
            assert name in said[0].split(", ")


@pytest.mark.parametrize(("unaligned", "said"), [(5, False), (6, True)])
def test_links_lost_to_unknown_words_are_told_above_5_percent(set_up, gold, caplog, unaligned, said):
    task, model, _ = set_up(gold)
    task.post_validate(model, {"aer_sentences": 100, "aer_sentences_gold": 100, "aer_unaligned": unaligned}, None)
    message = f"{unaligned} of 100 sentences of the gold … no links … --norm-source-text"
    assert says(caplog.text, message) == said


def test_translating_beside_it_changes_nothing(monitored, logged):
    monitored("no bleu")
    bleu = ["--eval-bleu", "--eval-bleu-remove-bpe", "--eval-bleu-args", '{"beam": 2, "max_len_b": 9}']
    monitored("bleu beside", *bleu)
    without, beside = halves(logged("test"))
    assert "bleu" in beside
    assert {key: beside[key] for key in without if "aer" in key} == {k: v for k, v in without.items() if "aer" in k}


@pytest.mark.filterwarnings("ignore")
def test_fairseq_validate_says_it_too(monitored, logged, data, gold, tmp_path):
    """With the gold that it is given: that of the training is gone."""
    copy = tmp_path / "gold.talp"
    copy.write_bytes(gold.read_bytes())
    path = monitored("validated", path=copy)
    copy.unlink()
    words = [data, "--path", path, "--valid-subset", "test", "--cpu", "--max-tokens", 200, "--num-workers", 0]
    words += ["--log-format", "json", "--task", "translation"]  # not read: the checkpoint's is taken
    parser = options.get_validation_parser()
    cfg = config_of(options.parse_args_and_arch(parser, input_args=[str(word) for word in words]))
    validate.main(cfg, Namespace(data=str(data), aer_gold=f"test={gold}"))
    *_, in_training, afterwards = logged("test")
    assert afterwards["aer_l1_n_awo"] == in_training["aer_l1_n_awo"]


# -- wrong options and wrong gold --------------------------------------------------------------------------------


@pytest.fixture
def set_up(train_config):
    """What a monitored training makes before it loads data: the task, its model and criterion."""

    def make(gold, **changes):
        _, cfg = train_config("--criterion", "cross_entropy", *SUBSETS, task="translation_norm")
        for name, value in {"aer_gold": f"test={gold}", "aer_gold_base": "1", **changes}.items():
            next(cfg[group] for group in ("task", "dataset", "checkpoint") if name in cfg[group])[name] = value
        task = tasks.setup_task(cfg.task)
        return task, task.build_model(cfg.model), task.build_criterion(cfg.criterion)

    return make


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"aer_gold": "test"}, "give SUBSET=FILE"),
        ({"aer_gold": "train=g"}, "subset 'train' is not in --valid-subset test,valid; add it"),
        ({"aer_gold_base": None}, "--aer-gold-base is missing; give 0 or 1"),
        ({"max_valid_steps": 3}, "--max-valid-steps 3, because the AER would cover only a part"),
        ({"norm_layer": 2}, "--norm-layer 2: .*choose 0 to 1"),
        ({"norm_map": "alti"}, "--norm-map alti .*monitoring reads whole layers with map attn_w or attn_n"),
        ({"norm_heads": "1"}, "omit --norm-heads"),
        ({"aer_mixing": "ffresln_n"}, "--aer-mixing 'ffresln_n': choose from .*, attnresln_n$"),
        ({"norm_source_text": "valid=f"}, "--norm-source-text valid=f: subset 'valid' has no gold; choose one of test"),
        ({"best_checkpoint_metric": "aer", "valid_subset": "valid,test"},
         "first subset of --valid-subset valid,test .*has no gold; give --valid-subset test,valid"),
        ({"best_checkpoint_metric": "aer", "maximize_best_checkpoint_metric": True}, "smaller is better; omit --max"),
        ({"best_checkpoint_metric": "aer_recall"}, "larger is better; give --maximize-best-checkpoint-metric"),
        ({"best_checkpoint_metric": "aerr"}, "aerr: no validation subset logs it; choose one of aer, .* aer_l1_n_awo,"),
        ({"best_checkpoint_metric": "aer_l5_n_awo"}, "aer_l5_n_awo: no validation subset logs it"),
    ],
)  # fmt: skip
def test_wrong_options_are_told_before_training(set_up, changes, message):
    with pytest.raises(UsageError, match=message):
        set_up("gold", **changes)


def test_an_aer_without_gold_cannot_choose_checkpoints(train_config):
    _, cfg = train_config("--criterion", "cross_entropy", task="translation_norm")
    cfg.checkpoint.best_checkpoint_metric = "aer"
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    task.build_criterion(cfg.criterion)  # fairseq-validate goes so far, too
    with pytest.raises(UsageError, match=r"--best-checkpoint-metric aer: .*give --aer-gold"):
        task.begin_epoch(1, model)


def test_combined_subsets_are_refused_before_training(monitored):
    with pytest.raises(UsageError, match="omit --combine-valid-subsets"):
        monitored("combined", "--combine-valid-subsets")


# -- what fails at run time --------------------------------------------------------------------------------------


def test_a_failing_monitor_does_not_end_training(monitored, logged, caplog, monkeypatch):
    hits = Monitor.hits
    calls = []

    def failing(self, sample, quantities):
        calls.append(sample)
        if len(calls) == 2:
            raise InputError("no more")
        return hits(self, sample, quantities)

    monkeypatch.setattr(Monitor, "hits", failing)
    monitored("failing", "--max-tokens", 40, "--validate-interval-updates", 4, updates=8)
    first, *_, last = logged("test")
    assert first["aer"] == "inf"
    assert 0 < int(first["aer_sentences"]) < 12
    assert math.isfinite(float(last["aer"]))
    errors = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert [error for error in errors if "InputError: no more" in error] == errors[:1]
    assert errors[1:] == ["monitoring failed in 1 batches of this process"]


def test_a_picture_of_a_sentence_at_each_validation(monitored, logged, monkeypatch, tmp_path):
    """In the save directory, in TensorBoard and in W&B, of the layer and map with the lowest AER."""
    runs, writer, drawn = [], MagicMock(), MagicMock(wraps=draw)
    wandb = Namespace(run=1, Image=str, log=lambda values, step: runs.append(values))
    monkeypatch.setattr(progress_bar, "SummaryWriter", writer)
    monkeypatch.setattr(progress_bar, "wandb", wandb)
    monkeypatch.setattr("fairseq_norm_plugin.hooks.monitoring.draw", drawn)
    often = ("--validate-interval-updates", 4, "--num-workers", 1)  # whose batches are copies
    path = monitored("picture", "--aer-picture", 3, "--tensorboard-logdir", tmp_path, *often)
    files, validations = sorted((path.parent / "aer-picture").iterdir()), logged("test")
    updates = [int(line["num_updates"]) for line in validations]
    assert len(files) > 1
    assert [int(file.stem) for file in files] == updates
    writer.assert_called_with(str(tmp_path / "test"))
    images = [call.args for call in writer.return_value.__enter__.return_value.add_image.call_args_list]
    assert [(tag, image.shape[2], update) for tag, image, update in images] == [("aer_picture", 3, n) for n in updates]
    assert runs == [{"test/aer_picture": str(file)} for file in files]
    for call, line in zip(drawn.call_args_list, validations, strict=True):
        lowest = min(float(value) for name, value in line.items() if name.startswith("aer_l"))
        assert f"AER {100 * lowest:.1f} %" in call.args[0].title


def test_a_picture_of_no_sentence_is_refused_before_training(monitored):
    with pytest.raises(UsageError, match=r"--aer-picture 12: .*0 to 11"):
        monitored("none", "--aer-picture", 12)
