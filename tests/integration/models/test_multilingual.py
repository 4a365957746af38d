"""Multilingual and pretrained models: M2M-100's and NLLB's task, mBART's task; their language tags and their rows."""

import json
import logging

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.tasks.translation_from_pretrained_bart import TranslationFromPretrainedBARTTask

from alignment_eval import commands as cli
from alignment_eval.errors import InputError, UsageError
from alignment_eval.records import Records
from tests.integration.conftest import layer_aers
from tests.integration.models.tags import EXTRACTION, GENERATE, KINDS, MULTI, PREFIX, SCORE


@pytest.fixture(autouse=True)
def _stock_mbart_task_that_runs(monkeypatch):
    """fairseq's task reads its options by a name that it no longer has."""
    monkeypatch.setattr(
        TranslationFromPretrainedBARTTask, "args", property(lambda self: self.cfg, lambda *_: None), False
    )


def tokens_of(pattern, text):
    """The tokens of a side: the text in the place of the dots."""
    return [token for part in pattern for token in (text.split() if part == "…" else [part])]


def word_numbers(tokens):
    """By hand: a word begins at ▁ and after tags and </s>, which are in none."""
    numbers, word, after_special = [], -1, True
    for token in tokens:
        special = token in ("<s>", "</s>") or token.startswith(("[", "__"))
        word += not special and (after_special or token.startswith("▁"))
        numbers.append(-1 if special else word)
        after_special = special
    return numbers


@torch.no_grad()
def by_hand(model, source, inputs, targets):
    """Attention weights [L, T, S] and log probabilities [T], a decoder pass a target token, without any cache."""
    src = torch.tensor([source])
    maps, scores = [], []
    encoder_out = model.encoder(src, src_lengths=torch.tensor([len(source)]))
    for row, target in enumerate(targets):
        prefix = torch.tensor([inputs[: row + 1]])
        of_layers = []
        for layer in range(len(model.decoder.layers)):
            logits, extra = model.decoder(prefix, encoder_out=encoder_out, alignment_layer=layer)
            of_layers.append(extra["attn"][0][0, -1])
        maps.append(torch.stack(of_layers))
        scores.append(logits[0, -1].log_softmax(-1)[target])
    return torch.stack(maps, dim=1).numpy(), torch.stack(scores).numpy()


@pytest.fixture
def stock_model(corpus, model_of):
    """The model that fairseq's own task loads, and its dictionary."""

    def load(name):
        kind = KINDS[name]
        words = [corpus, "--path", "none", "--task", kind.task, "-s", "xx", "-t", "yy", *kind.options]
        args = options.parse_args_and_arch(options.get_generation_parser(), input_args=[str(word) for word in words])
        task = tasks.setup_task(args)
        (model,), _ = checkpoint_utils.load_model_ensemble([str(model_of(name))], task=task)
        return model.eval(), task.target_dictionary

    return load


@pytest.mark.parametrize(
    ("name", "mode"),
    [("m2m", GENERATE), *((name, PREFIX) for name in KINDS), ("m2m", SCORE), ("mbart", SCORE), ("mbart-bos", SCORE)],
    ids=str,
)
def test_as_stock_and_tags_in_no_word_and_rows_of_a_slow_pass(run, stock_model, lines, tmp_path, capsys, name, mode):
    expected = run(name, *mode, ours=False).lines()
    files = ["--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a"]
    output = run(name, *mode, *files, "--print-alignment", "hard", "--norm-layer", 1)
    assert len(expected) == 3 * 9 * (1 if mode is SCORE else 2)
    assert output.lines() == expected
    kind, records, (model, dictionary) = KINDS[name], list(Records(tmp_path / "r")), stock_model(name)
    assert {record.id for record in records} == set(range(9))
    for record in records:
        source, target = lines[record.id]
        assert list(record.source.tokens) == tokens_of(kind.source, source)
        if mode is SCORE:
            assert list(record.target.tokens) == tokens_of(kind.target, target)
        for side in (record.source, record.target):
            assert side.words.tolist() == word_numbers(side.tokens)
        source, target = ([dictionary.index(token) for token in side.tokens] for side in (record.source, record.target))
        assert dictionary.unk() not in (*source, *target)
        maps, scores = by_hand(model, source, [dictionary.index(kind.first), *target[:-1]], target)
        np.testing.assert_allclose(record.layer_maps("attn_w"), maps, atol=1e-5)
        assert record.score == pytest.approx(scores.mean(), abs=1e-5)
    capsys.readouterr()
    assert cli.main(["extract", str(tmp_path / "r"), *EXTRACTION]) == 0
    assert capsys.readouterr().out == (tmp_path / "a").read_text()
    for (id_, _, printed), record in zip(output.lines("A"), sorted(records, key=lambda r: (r.id, r.rank))):
        assert id_ == record.id
        source, target = (np.flatnonzero(side.words >= 0) for side in (record.source, record.target))
        best = record.layer_maps("attn_n")[1][np.ix_(target, source)].argmax(axis=1)
        assert printed == " ".join(f"{i}-{j}" for j, i in enumerate(best))


@pytest.mark.parametrize(
    ("name", "other", "differing"),
    [("m2m", ["--encoder-langtok", "tgt"], "langtoks"), ("mbart", ["--prepend-bos"], "prepend_bos")],
)
def test_another_tag_is_another_run(run, tmp_path, name, other, differing):
    run(name, *SCORE, "--norm-records", tmp_path / "r")
    with pytest.raises(InputError, match=rf"of another run \(different: {differing}"):
        run(name, *SCORE, *other, "--norm-records", tmp_path / "r", "--norm-records-resume")


@pytest.mark.parametrize(
    ("name", "languages", "extra", "text"),
    [
        ("mbart", ("-s", "xx", "-t", "zz"), [], r"--target-lang zz is not one of .*\(--langs\).* xx, yy"),
        ("mbart", ("-s", "xx", "-t", "yy"), ["--langs", ""], "--langs is missing"),
        ("m2m", ("-s", "xx", "-t", "yy"), ["--norm-special-tokens", "<2zz>"], "neither dictionary has <2zz>"),
    ],
)
def test_languages_are_checked(run, tmp_path, name, languages, extra, text):
    with pytest.raises(UsageError, match=text):
        run(name, *extra, "--norm-records", tmp_path / "r", languages=languages)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_task_is_refused(run, run_generate, corpus, model_of):
    with pytest.raises(InputError, match=r"the checkpoint has \d+ source tokens, but the task has \d+; .*task"):
        run_generate(corpus, "--task", "translation_norm", "-s", "xx", "-t", "yy", "--path", model_of("m2m"))
    with pytest.raises(InputError, match=r"the checkpoint has \d+ "):
        run("mbart", "--langs", "xx,yy,zz")


def test_training_under_our_multilingual_task_is_fairseqs(trained, corpus):
    words = [*KINDS["m2m"].options, "--dropout", 0.2]
    states = [
        torch.load(trained(task, *words, data=corpus, task=task, updates=3), weights_only=True)["model"]
        for task in (MULTI, MULTI + "_norm")
    ]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


def test_mbart_is_monitored(mbart, run, lines, tmp_path, caplog):
    gold = tmp_path / "gold.talp"
    sizes = [source.count("▁") for source, _ in lines[:9]]
    links = ("".join(f"{i + 1}-{size - i} {i + 1}p1 " for i in range(size)) for size in sizes)
    gold.write_text("".join(f"{line}\n" for line in links))
    special = ("--norm-special-tokens", "ki")
    watched = ["--aer-gold", f"test={gold}", "--aer-gold-base", 1, "--valid-subset", "test", "--log-format", "json"]
    caplog.set_level(logging.INFO)
    path = mbart("watched", *watched, *special, updates=20)
    found = [json.loads(record.message) for record in caplog.records if record.name == "test"][-1]
    run("mbart", *SCORE, *special, "--norm-records", tmp_path / "r", path=path)
    layers = layer_aers(tmp_path / "r", gold)
    assert len(layers) == 8
    for name, row in layers.items():
        assert float(found[f"test_{name}"]) == round(row.aer, 6)
