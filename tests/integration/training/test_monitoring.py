"""AER on every validation of a training run: its figures, its cost to training (none), and what goes wrong."""

import json
import math
import re
import sys
from argparse import Namespace
from unittest.mock import MagicMock

import pytest
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.logging import progress_bar
from fairseq_cli import train, validate

from alignment_eval.errors import InputError, UsageError
from alignment_eval.figures.maps import draw
from fairseq_norm_plugin.hooks.monitoring import Monitor
from tests.demo import written
from tests.facts import facts, says
from tests.integration.conftest import Output, config_of, layer_aers, without_fairseqs_warnings
from tests.integration.training.conftest import comparable

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


#: Validation chooses the rate of each epoch, and when to stop.
FOLLOWING = ["--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", 0.5, "--lr-threshold", 0.02, "--lr", 0.05]
FOLLOWING += ["--patience", 3, "--dropout", 0.2]
EPOCHS = {"updates": 30}  # ten


def test_training_is_stocks_bit_for_bit(monitored, trained, logged):
    """Losses, rates, the best score, parameters and options; and AER is of the sentences that fairseq loses, too."""

    def forget():  # what earlier trainings of this process left on fairseq's functions
        for remembers in (train.should_stop_early, checkpoint_utils.save_checkpoint):
            vars(remembers).clear()

    forget()
    theirs = trained("unwatched", *FOLLOWING, *SUBSETS, "--log-format", "json", **EPOCHS)
    names = ("train", "test", "valid")
    expected = {name: comparable(logged(name)) for name in names}
    assert len({line["lr"] for line in expected["train"]}) > 1
    forget()
    ours = monitored("watched", *FOLLOWING, "--aer-mixing", "attnresln_n", **EPOCHS)
    assert {name: comparable(logged(name)[len(expected[name]) :]) for name in names} == expected
    assert {line["aer_sentences"] for line in logged("test") if "aer" in line} == {"12"}
    states = [torch.load(path, weights_only=True) for path in (ours, theirs)]
    for state in states:
        for group in (state["cfg"]["checkpoint"], vars(state["cfg"]["model"])):
            del group["save_dir"]
    assert states[0]["cfg"] == states[1]["cfg"]
    assert states[0]["extra_state"]["best"] == states[1]["extra_state"]["best"]
    assert states[0]["model"].keys() == states[1]["model"].keys()
    assert all(torch.equal(tensor, states[1]["model"][name]) for name, tensor in states[0]["model"].items())


# In a process that cannot import the plugin; torch must be told to trust the file there.
STOCK = """
import contextlib, io, json, sys
sys.modules["fairseq_norm_plugin"] = None
from fairseq_cli import generate, interactive, validate
from fairseq.models.transformer import TransformerModel
path, data, *options = sys.argv[1:]
def run(command, *words):
    sys.argv = ["fairseq", data, "--path", path, "--cpu", "--num-workers", "0", *options, *words]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        command.cli_main()
    return printed.getvalue()
beam = ["--beam", "3", "--min-len", "3", "--max-len-b", "9"]
found = [run(generate, "--required-batch-size-multiple", "1", *beam), run(validate, "--max-tokens", "200")]
sys.stdin = io.StringIO("ba ki@@ lo\\n")
found += [run(interactive, *beam)]
if "translation" in options:
    found += [TransformerModel.from_pretrained(path.rpartition("/")[0], path.rpartition("/")[2], data).translate("ba")]
json.dump(found, sys.stdout)
"""


@pytest.mark.parametrize("task", ["translation", "translation_multi_simple_epoch"])
def test_a_checkpoint_is_stocks(trained, norm, data, command, task):
    words = [] if task == "translation" else ["--lang-pairs", "xx-yy", "--encoder-langtok", "tgt"]
    path = trained(f"ours {task}", *words, task=f"{task}_norm")
    words += ["--task", task, "-s", "xx", "-t", "yy"]
    result = command(sys.executable, "-c", STOCK, path, data, *words, TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1")
    generated, _, interactive, *_ = json.loads(result.stdout.splitlines()[-1])
    assert len(Output(generated).lines()) == 12 * 3
    assert len(Output(interactive).lines()) == 3
    if task == "translation":
        beam = ["--beam", 3, "--min-len", 3, "--max-len-b", 9]
        assert norm(*beam, "--print-alignment", "hard", path=path).lines() == Output(generated).lines()


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


@pytest.fixture
def run_validate(data, monkeypatch):
    """fairseq-validate in this process, with its own way to override what a checkpoint says."""
    monkeypatch.setattr(validate, "reset_logging", lambda: None)

    def run(path, *words):
        given = [data, "--path", path, "--valid-subset", "test", "--cpu", "--max-tokens", 400, "--num-workers", 0]
        given = [str(word) for word in (*given, "--log-format", "json", "--task", "translation_norm", *words)]
        parse = lambda **kind: options.parse_args_and_arch(options.get_validation_parser(), given, **kind)  # noqa: E731
        with without_fairseqs_warnings():
            validate.main(config_of(parse()), parse(suppress_defaults=True))

    return run


def test_fairseq_validate_says_it_too(monitored, run_validate, logged, gold, tmp_path):
    """With the gold that it is given, that of the training is gone; and of a checkpoint as the plugin once saved it."""
    copy = tmp_path / "gold.talp"
    copy.write_bytes(gold.read_bytes())
    path = monitored("validated", path=copy)
    copy.unlink()
    state = torch.load(path, weights_only=True)
    state["cfg"]["task"].update(_name="translation_norm", aer_gold=f"test={copy}", aer_gold_base="0")
    torch.save(state, tmp_path / "former.pt")
    run_validate(path, "--aer-gold", f"test={gold}", "--aer-gold-base", 1)
    run_validate(tmp_path / "former.pt", "--aer-gold", f"test={gold}", "--aer-gold-base", 1)
    run_validate(tmp_path / "former.pt")
    *_, in_training, ours, former, without = logged("test")
    assert in_training["aer_l1_n_awo"] == ours["aer_l1_n_awo"] == former["aer_l1_n_awo"]
    assert in_training["loss"] == ours["loss"] == without["loss"]
    assert "aer" not in without


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--norm-records", "r"], "--norm-records r has no effect here: … omit --norm-records"),
        (["--aer-gold-base", 1], "--aer-gold-base 1 … belongs to --aer-gold"),
        (["--aer-gold", "test=g", "--aer-picture", 1], "--aer-picture 1 … fairseq-train"),
        (["--task", "translation_multi_simple_epoch_norm"], "was trained with --task 'translation' … translation_norm"),
    ],
)
def test_what_fairseq_validate_would_not_use_is_refused(checkpoint, run_validate, words, message):
    with pytest.raises(UsageError, match=facts(message)):
        run_validate(checkpoint, *words)


# -- wrong options and wrong gold --------------------------------------------------------------------------------


@pytest.fixture
def set_up(train_config):
    """What a monitored training makes before it loads data: the task, its model and criterion."""

    def make(gold, **changes):
        _, cfg = train_config("--criterion", "cross_entropy", *SUBSETS, task="translation_norm")
        for name, value in {"aer_gold": gold and f"test={gold}", "aer_gold_base": "1", **changes}.items():
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
        ({"max_valid_steps": 3}, "--max-valid-steps 3: the AER would cover a part"),
        ({"norm_layer": 2}, "--norm-layer 2: .*layers 0, 1 of"),
        ({"norm_map": "alti"}, "--norm-map alti.*attn_w or attn_n"),
        ({"norm_heads": "1"}, "--norm-heads 1 has no effect here.*omit --norm-heads"),
        ({"norm_records": "r"}, "--norm-records r has no effect"),
        ({"aer_gold": None}, "--aer-gold-base 1 has no effect here: it belongs to --aer-gold"),
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
    with pytest.raises(UsageError, match="--combine-valid-subsets changes the ids"):
        monitored("combined", "--combine-valid-subsets")


def test_cut_sentences_are_refused_before_training(set_up, gold):
    """A cut sentence is as long as the model takes."""
    task, *_ = set_up(gold, truncate_source=True, max_source_positions=4)
    with pytest.raises(UsageError, match=r"--truncate-source .*test"):
        task.load_dataset("test")


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
