"""Training on alignments that the plugin made, with monitoring beside it."""

import math
import shutil

import pytest
import torch

from alignment_eval.errors import UsageError
from tests.demo import written
from tests.facts import facts
from tests.integration.training.conftest import halves


@pytest.fixture(scope="module")
def guided(texts, norm, program, data, tmp_path_factory):
    """Training data with alignments that the plugin made: forced scoring, links of tokens, fairseq-preprocess."""
    directory = tmp_path_factory.mktemp("guided")
    for name, pairs in (("train", texts[0]), ("test", texts[2])):
        for lang, side in zip(("xx", "yy"), zip(*pairs)):
            written(directory / f"{name}.{lang}", side)
        records = directory / f"records-{name}"
        norm("--score-reference", "--gen-subset", name, "--norm-records", records)
        extract = ["extract", records, "--kind", "attn_n", "--heads", 0, "--setting", "awo", "--rule", "kobayashi2020"]
        program("align-eval", *extract, "--level", "token", "--output", directory / f"{name}.align")
    for lang in ("xx", "yy"):
        shutil.copy(directory / f"test.{lang}", directory / f"valid.{lang}")  # without links
    program(
        *("fairseq-preprocess", "-s", "xx", "-t", "yy", "--trainpref", directory / "train"),
        *("--validpref", directory / "valid", "--testpref", directory / "test", "--align-suffix", "align"),
        *("--srcdict", data / "dict.xx.txt"),
        *("--joined-dictionary", "--destdir", directory / "bin"),
    )
    return directory


@pytest.mark.parametrize("extra", [[], ["--full-context-alignment"]])
def test_guided_alignment_keeps_its_probabilities(trained, guided, gold, logged, extra):
    words = ["--load-alignments", "--criterion", "label_smoothed_cross_entropy_with_alignment", *extra]
    words += ["--valid-subset", "test", "--log-format", "json", "--alignment-layer", 1]
    fields = {"data": guided / "bin", "arch": "transformer_align", "task": "translation_norm", "updates": 4}
    ours = trained(f"guided{extra}", *words, "--aer-gold", f"test={gold}", "--aer-gold-base", 1, **fields)
    theirs = trained(f"guided stock{extra}", *words, **fields)
    watched, stock = halves(logged("test"))
    assert float(stock["alignment_loss"]) > 0
    same = [key for key in stock if "wps" not in key and "best" not in key]
    assert [watched[key] for key in same] == [stock[key] for key in same]
    assert math.isfinite(float(watched["aer"]))
    states = [torch.load(path, weights_only=True)["model"] for path in (ours, theirs)]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


@pytest.fixture
def align(guided, program):
    """norm-align of the training text."""
    text = ["--source-text", guided / "train.xx", "--target-text", guided / "train.yy", "--bpe", "none", "--cpu"]
    return lambda *words: program("norm-align", *words, "--data", guided / "bin", *text)


STOCK = ("--load-alignments", "--criterion", "label_smoothed_cross_entropy_with_alignment")
OURS = ("--load-alignments", "--criterion", "guided_alignment", "--guided-maps")


def parameters(path):
    return torch.load(path, weights_only=True)["model"]


def test_in_awo_the_criterion_is_fairseqs(trained, guided):
    fields = {"data": guided / "bin", "task": "translation_norm", "updates": 4}
    layer = ("--alignment-layer", 1, "--alignment-heads", 1)
    stock = parameters(trained("awo stock", *STOCK, *layer, arch="transformer_align", **fields))
    ours = parameters(trained("awo ours", *OURS, "1.0:awo", arch="transformer", **fields))
    assert all(torch.equal(tensor, stock[name]) for name, tensor in ours.items())


def test_guided_maps_learn_the_links_with_monitoring_beside_them(trained, guided, gold, logged):
    fields = {"data": guided / "bin", "task": "translation_norm", "updates": 30}
    watched = ("--valid-subset", "test", "--log-format", "json", "--aer-gold", f"test={gold}", "--aer-gold-base", 1)
    trained("awi", *OURS, "0.1:awi,1:awo", "--alignment-lambda", 1, *watched, **fields)
    assert math.isfinite(float(logged("test")[-1]["aer"]))
    epochs = [float(line["alignment_loss"]) for line in logged("train")]
    assert epochs[-1] < 0.9 * epochs[0]


def test_layers_that_are_computed_twice_learn_the_same(trained, guided):
    fields = {"data": guided / "bin", "task": "translation_norm", "updates": 4}
    once, twice = (
        parameters(trained(f"activations{extra}", *OURS, "0.1:awi,1:awo", *extra, **fields))
        for extra in ([], ["--checkpoint-activations"])
    )
    assert all(torch.equal(tensor, once[name]) for name, tensor in twice.items())


def test_a_subset_with_links_has_an_alignment_loss_and_one_without_has_none(trained, guided, tmp_path, logged):
    fields = {"data": guided / "bin", "task": "translation_norm", "updates": 2}
    trained("valid", *OURS, "0.1", "--valid-subset", "test,valid", "--log-format", "json", **fields)
    assert float(logged("test")[-1]["alignment_loss"]) > 0
    assert "alignment_loss" not in logged("valid")[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*OURS, "2.0:awi"), "--guided-maps … 2.0:awi … decoder layers 0, 1 of 4 heads"),
        ((*OURS, "0.4"), "--guided-maps … 0.4 … decoder layers 0, 1 of 4 heads"),
        ((*OURS, "0.0:low"), "0.0:low … LAYER.HEAD"),
        (("--criterion", "guided_alignment"), "subset train has no links … --load-alignments … --align-suffix"),
    ],
)
def test_what_cannot_be_guided_is_refused(trained, guided, words, message):
    with pytest.raises(UsageError, match=facts(message)):
        trained(message, *words, data=guided / "bin", task="translation_norm", updates=1)


def test_a_guided_model_is_read_by_the_maps_that_it_was_trained_to_align_with(trained, guided, align, tmp_path):
    words = (*OURS, "0.0,0.1,1:awo")
    path = trained("reads its own", *words, data=guided / "bin", task="translation_norm", arch="transformer", updates=4)
    said = align("calibrate", "--path", path, "-o", tmp_path / "profile").stdout
    assert "head 0.0 (AWI) × head 0.1 (AWI) × layer 1 (AWO), which it was trained to align with; on " in said
    maps = "|heads:0.0:awi,0.1:awi,1|combine:product|"
    options = ("--path", path, "-o", tmp_path / "links", "--force")  # 4 updates tell no pair from another
    assert maps in align(*options, "--profile", tmp_path / "profile", "--overwrite").stderr
    said = align(*options, "--overwrite").stderr  # on the text itself
    assert all(fact in said for fact in (maps, "|rule:two-way=0.4|", "|profile:training|"))
