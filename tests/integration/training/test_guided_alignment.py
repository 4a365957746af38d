"""Training on alignments that the plugin made, with monitoring beside it."""

import math

import pytest
import torch

from alignment_eval.errors import UsageError
from fairseq_norm_plugin.align import cli
from tests.facts import facts
from tests.integration.training.conftest import halves


@pytest.fixture(scope="module")
def guided(texts, norm, program, data, tmp_path_factory):
    """Training data with alignments that the plugin made: forced scoring, links of tokens, fairseq-preprocess."""
    directory = tmp_path_factory.mktemp("guided")
    for name, pairs in (("train", texts[0]), ("test", texts[2])):
        for lang, side in zip(("xx", "yy"), zip(*pairs)):
            (directory / f"{name}.{lang}").write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
        records = directory / f"records-{name}"
        norm("--score-reference", "--gen-subset", name, "--norm-records", records)
        extract = ["extract", records, "--kind", "attn_n", "--layer", 0, "--setting", "awo", "--rule", "kobayashi2020"]
        program("align-eval", *extract, "--level", "token", "--output", directory / f"{name}.align")
    program(
        *("fairseq-preprocess", "-s", "xx", "-t", "yy", "--trainpref", directory / "train"),
        *("--testpref", directory / "test", "--align-suffix", "align", "--srcdict", data / "dict.xx.txt"),
        *("--joined-dictionary", "--destdir", directory / "bin"),
    )
    return directory


def test_alignments_of_tokens_come_back_as_they_were(guided, texts):
    from fairseq.data import data_utils

    loaded = data_utils.load_indexed_dataset(str(guided / "bin" / "train.align.xx-yy"), None)
    lines = (guided / "train.align").read_text(encoding="utf-8").splitlines()
    assert len(loaded) == len(lines) == 60
    for pairs, line, (source, target) in zip(loaded, lines, texts[0]):
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert pairs.view(-1, 2).tolist() == [list(link) for link in links]
        assert all(i < len(source.split()) and j < len(target.split()) for i, j in links)
    assert any(lines)


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*OURS, "2.0:awi"), "--guided-maps 2.0:awi … 2 decoder layers of 4 heads"),
        ((*OURS, "0.4"), "--guided-maps 0.4 … 2 decoder layers of 4 heads"),
        ((*OURS, "0.0:low"), "0.0:low … LAYER.HEAD"),
        (("--criterion", "guided_alignment"), "subset train has no links … --load-alignments … --align-suffix"),
    ],
)
def test_what_cannot_be_guided_is_refused(trained, guided, words, message):
    with pytest.raises(UsageError, match=facts(message)):
        trained(message, *words, data=guided / "bin", task="translation_norm", updates=1)


@pytest.mark.parametrize(
    ("name", "words", "arch"),
    [
        ("aligns ours", (*OURS, "0.1:awi"), "transformer"),
        ("aligns stock", (*STOCK, "--alignment-layer", 1), "transformer_align"),
        ("aligns full", (*STOCK, "--alignment-layer", 1, "--full-context-alignment"), "transformer_align"),
    ],
)
def test_guided_models_generate_align_and_calibrate(trained, guided, norm, tmp_path, capsys, name, words, arch):
    path = trained(name, *words, data=guided / "bin", task="translation_norm", arch=arch, updates=4)
    generated = norm("--print-alignment", "hard", "--gen-subset", "test", path=path, data=guided / "bin")
    assert len(generated.lines("A")) == 12
    text = ["--source-text", guided / "train.xx", "--target-text", guided / "train.yy", "--bpe", "none", "--cpu"]
    model = ["--path", path, "--data", guided / "bin", *text, "--overwrite"]
    profile = tmp_path / "profile"
    align = [*model, "--profile", profile, "-o", tmp_path / "links", "--force"]  # 4 updates tell no pair from another
    for command in (["calibrate", *model, "-o", profile], align):
        assert cli.main([str(word) for word in command]) == 0, capsys.readouterr().err
    assert any(line.split() for line in (tmp_path / "links").read_text().splitlines())


def test_a_guided_model_is_read_by_the_maps_that_it_was_trained_to_align_with(trained, guided, tmp_path, capsys):
    words = (*OURS, "0.0,0.1,1:awo")
    path = trained("reads its own", *words, data=guided / "bin", task="translation_norm", arch="transformer", updates=4)
    text = ["--source-text", guided / "train.xx", "--target-text", guided / "train.yy", "--bpe", "none", "--cpu"]
    model = ["--path", path, "--data", guided / "bin", *text, "--overwrite"]
    align = [*model, "-o", tmp_path / "links", "--force"]  # 4 updates tell no pair from another
    profile = tmp_path / "profile"
    assert cli.main([str(word) for word in ["calibrate", *model, "-o", profile]]) == 0
    maps = "head 0.0 (AWI) × head 0.1 (AWI) × layer 1 (AWO)"
    assert f"{maps}, which it was trained to align with; on " in capsys.readouterr().out
    assert cli.main([str(word) for word in [*align, "--profile", profile]]) == 0
    assert "|heads:0.0:awi,0.1:awi,1|combine:product|" in capsys.readouterr().err
    assert cli.main([str(word) for word in align]) == 0  # on the text itself
    assert "|heads:0.0:awi,0.1:awi,1|combine:product|" in (said := capsys.readouterr().err)
    assert "|rule:balanced=0.35|" in said
    assert "|profile:training|" in said
