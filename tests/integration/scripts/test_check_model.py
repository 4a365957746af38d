"""scripts/check_model.py: what it says of models that stock fairseq or Transformers runs alike, and of damaged ones."""

import json
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from check_model import LIMITS
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel

import fairseq_norm_plugin
from tests.demo import written
from tests.facts import says
from tests.families import save
from tests.integration.scripts.preparing import run

#: All options that fairseq 0.10 saves of the training of a small model.
OPTIONS = json.loads((Path(__file__).parent / "options-of-fairseq-0.10.json").read_text(encoding="utf-8"))
SYLLABLES = ("ba", "ki", "lo", "mu", "ne", "ra")
WORDS = {
    language: [f"{first}{second}" for first in SYLLABLES for second in ends]
    for language, ends in (("de", SYLLABLES), ("en", "aeioux"))
}


@pytest.fixture(scope="module")
def old(made_once):
    """A checkpoint of 2021: its options are a Namespace; its weights are random, and so are translations."""

    def make(directory):
        dictionaries = {}
        for language, words in WORDS.items():
            dictionaries[language] = Dictionary()
            for word in words:
                dictionaries[language].add_symbol(word)
            dictionaries[language].save(str(directory / f"dict.{language}.txt"))
        task = Namespace(source_dictionary=dictionaries["de"], target_dictionary=dictionaries["en"])
        torch.manual_seed(1)
        network = TransformerModel.build_model(Namespace(**OPTIONS), task)
        for name, parameter in network.named_parameters():
            if "norm" not in name:  # so large that translations depend on the source
                parameter.data.normal_(std=0.3)
        end = network.decoder.output_projection.weight[2].detach()  # of </s>, which is to come after some tokens
        network.decoder.layers[-1].final_layer_norm.bias.data += 4 * end / end.square().sum()
        history = {"criterion_name": "CrossEntropyCriterion", "optimizer_name": "FairseqAdam", "num_updates": 9}
        state = {"args": Namespace(**OPTIONS), "model": network.state_dict(), "extra_state": {"val_loss": 3.1}}
        state["optimizer_history"] = [{**history, "lr_scheduler_state": {"best": 3.1}}]
        torch.save({**state, "last_optimizer_state": None}, directory / "checkpoint_best.pt")
        written(directory / "text", [" ".join(WORDS["de"][n : n + 7]) for n in range(0, 30, 5)])

    return made_once("fairseq-0.10", make)


@pytest.fixture
def check(old):
    """Run the script on the old model."""
    return lambda *options: run(
        "check_model.py", old / "checkpoint_best.pt", "--bpe", "none", "--source-text", old / "text", *options
    )


def test_a_checkpoint_of_fairseq_0_10(check, old, monkeypatch):
    """Read without the plugin's reader, too."""
    assert len(OPTIONS) == 174
    read = checkpoint_utils.load_checkpoint_to_cpu.__wrapped__
    monkeypatch.setattr(checkpoint_utils, "load_checkpoint_to_cpu", read)
    done = check()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("6 of 6 lines") == 2
    model = fairseq_norm_plugin.load(old / "checkpoint_best.pt", bpe="none", profile="none")
    lines = (old / "text").read_text().splitlines()
    assert len({found.target for found in model.translate(lines, heads="1", setting="awo")}) > 3


@pytest.mark.parametrize(
    ("part", "differing"),
    [
        ("encoder_attn.k_proj.weight", ["log probability", "attention weight"]),
        ("encoder_attn.v_proj.weight", list(LIMITS)),
        ("final_layer_norm.bias", ["log probability"]),
    ],
)
def test_a_network_that_computes_something_else(check, monkeypatch, part, differing):
    """Of each, one number of the first layer has changed once the plugin has loaded it."""
    load = fairseq_norm_plugin.load

    def damaged(*words, **options):
        model = load(*words, **options)
        with torch.no_grad():
            model.models[0].decoder.layers[0].get_parameter(part).flatten()[3] += 0.5
        return model

    monkeypatch.setattr(fairseq_norm_plugin, "load", damaged, raising=False)
    done = check()
    assert done.returncode == 1
    found = {name for name in LIMITS if any(name in row and "DIFFERS" in row for row in done.stdout.splitlines())}
    assert found >= set(differing)
    assert says(done.stderr, f"{differing[0]} … stock fairseq")


def test_a_directory_of_transformers(tmp_path):
    save(tmp_path, "fsmt", sharp=True, max_position_embeddings=80)
    done = run("check_model.py", tmp_path, "--transformers")
    assert (done.returncode, done.stdout.count("6 of 6 lines")) == (0, 2), done.stdout
    done = run("check_model.py", tmp_path)
    assert (done.returncode, says(done.stderr, "format of Transformers … --transformers")) == (2, True)


def test_what_cannot_be_compared(check, old, tmp_path):
    path = old / "checkpoint_best.pt"
    for status, words, message in (
        (2, [path, "--transformers"], "not … Transformers … --transformers"),
        (2, [f"{path}:{path}", "--source-text", old / "text"], "an ensemble"),
        (1, [path], "knows none … --source-text"),
        (1, [tmp_path / "none.pt"], "none.pt"),
    ):
        done = run("check_model.py", *words, "--bpe", "none", "--data", old)
        assert (done.returncode, says(done.stderr, message), done.stderr.count("\n")) == (status, True, 1), done.stderr
