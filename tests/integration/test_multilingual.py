"""Multilingual and pretrained models: M2M-100's and NLLB's task, mBART's task; their language tags and their rows."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.tasks.translation_from_pretrained_bart import TranslationFromPretrainedBARTTask
from fairseq_cli import preprocess

from alignment_eval import cli
from alignment_eval.records import Records

MULTI, BART = "translation_multi_simple_epoch", "translation_from_pretrained_bart"
PIECES = ("ba", "ki", "lo", "mu", "ne", "ra")
GENERATE = ["--beam", 3, "--nbest", 2, "--max-len-b", 9, "--min-len", 2]
SCORE = ["--score-reference"]
EXTRACTION = ["--kind", "attn_n", "--layer", "1", "--setting", "awo", "--rule", "kobayashi2020"]


@dataclass(frozen=True)
class Kind:
    """A way of naming languages: the task, its options, and what the sides of "w1 w2" become."""

    task: str
    options: tuple[str, ...]
    source: tuple[str, ...]
    target: tuple[str, ...]
    first: str  # input of the decoder's first step


PAIRS = ("--lang-pairs", "xx-yy,yy-xx")
KINDS = {
    "m2m": Kind(
        MULTI,
        (*PAIRS, "--encoder-langtok", "src", "--decoder-langtok"),
        ("__xx__", "…", "</s>"),
        ("__yy__", "…", "</s>"),
        "</s>",
    ),
    "to-target": Kind(MULTI, (*PAIRS, "--encoder-langtok", "tgt"), ("__yy__", "…", "</s>"), ("…", "</s>"), "</s>"),
    "replacing": Kind(
        MULTI,
        (*PAIRS, "--encoder-langtok", "src", "--decoder-langtok", "--lang-tok-replacing-bos-eos"),
        ("…", "__xx__"),
        ("…", "</s>"),
        "__yy__",
    ),
    "mbart50": Kind(
        MULTI,
        (*PAIRS, "--encoder-langtok", "src", "--decoder-langtok", "--lang-tok-style", "mbart"),
        ("[xx]", "…", "</s>"),
        ("[yy]", "…", "</s>"),
        "</s>",
    ),
    "mbart": Kind(BART, ("--langs", "xx,yy"), ("…", "</s>", "[xx]"), ("…", "</s>", "[yy]"), "[yy]"),
}


@pytest.fixture(autouse=True)
def _stock_mbart_task_that_runs(monkeypatch):
    """fairseq's task reads its options by a name that it no longer has."""
    monkeypatch.setattr(
        TranslationFromPretrainedBARTTask, "args", property(lambda self: self.cfg, lambda *_: None), False
    )


@pytest.fixture(scope="module")
def lines():
    """Pairs of SentencePiece text; the target is the source backwards."""
    rng = random.Random(5)
    pairs = []
    for _ in range(48):
        words = [[rng.choice(PIECES) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 6))]
        pairs.append(tuple(" ".join("▁" + " ".join(word) for word in side) for side in (words, words[::-1])))
    return pairs


@pytest.fixture(scope="module")
def corpus(lines, tmp_path_factory):
    """``lines`` binarised: train all, test the first 9."""
    directory = tmp_path_factory.mktemp("multilingual")
    for number, lang in enumerate(("xx", "yy")):
        for name, pairs in (("train", lines), ("test", lines[:9])):
            (directory / f"{name}.{lang}").write_text("".join(f"{pair[number]}\n" for pair in pairs), encoding="utf-8")
    words = ["-s", "xx", "-t", "yy", "--joined-dictionary", "--destdir", directory / "bin"]
    words += ["--trainpref", directory / "train", "--testpref", directory / "test"]
    preprocess.main(options.get_preprocessing_parser().parse_args([str(word) for word in words]))
    return directory / "bin"


@pytest.fixture(scope="module")
def model_of(trained, corpus):
    """The checkpoint for a kind: one pre-norm Transformer and one BART."""

    def make(name):
        kind = KINDS[name]
        if name in ("mbart", "mbart50"):  # the same dictionary
            sizes = [f"--{side}-{what}" for side in ("encoder", "decoder") for what in ("layers", "attention-heads")]
            small = [word for size in sizes for word in (size, 2)]
            small += ["--encoder-embed-dim", 32, "--encoder-ffn-embed-dim", 48, "--encoder-normalize-before"]
            small += ["--decoder-normalize-before", "--layernorm-embedding", "--max-update", 60]
            kind = KINDS["mbart"]
            return trained(
                "mbart",
                *small,
                *kind.options,
                "-s",
                "xx",
                "-t",
                "yy",
                data=corpus,
                arch="mbart_base",
                task=BART + "_norm",
            )
        pre_norm = ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"]
        return trained("m2m", *pre_norm, *KINDS["m2m"].options, data=corpus, task=MULTI, updates=60)

    return make


@pytest.fixture
def run(stock, norm, corpus, model_of):
    """Run fairseq's task and ours of a kind."""

    def both(name, *extra, ours=True, languages=("-s", "xx", "-t", "yy")):
        kind = KINDS[name]
        command = norm if ours else stock
        task = kind.task + "_norm" if ours else kind.task
        return command("--task", task, *languages, *kind.options, *extra, path=model_of(name), data=corpus)

    return both


def tokens_of(pattern, text):
    """The tokens of a side: the text in the place of the dots."""
    return [token for part in pattern for token in (text.split() if part == "…" else [part])]


def word_numbers(tokens):
    """By hand: a word begins at ▁ and after tags and </s>, which are in none."""
    numbers, word, after_special = [], -1, True
    for token in tokens:
        special = token == "</s>" or token.startswith(("[", "__"))
        word += not special and (after_special or token.startswith("▁"))
        numbers.append(-1 if special else word)
        after_special = special
    return numbers


@pytest.mark.parametrize("mode", [GENERATE, SCORE], ids=["generate", "score"])
@pytest.mark.parametrize("name", KINDS)
def test_as_stock_and_tags_in_no_word(run, lines, tmp_path, capsys, name, mode):
    expected = run(name, *mode, ours=False).lines("H", "D", "P")
    files = ["--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a"]
    output = run(name, *mode, *files, "--print-alignment", "hard", "--norm-layer", 1)
    assert len(expected) == 3 * 9 * (2 if mode is GENERATE else 1)
    assert output.lines("H", "D", "P") == expected
    kind, records = KINDS[name], list(Records(tmp_path / "r"))
    assert {record.id for record in records} == set(range(9))
    for record in records:
        source, target = lines[record.id]
        assert list(record.source.tokens) == tokens_of(kind.source, source)
        if mode is SCORE:
            assert list(record.target.tokens) == tokens_of(kind.target, target)
        for side in (record.source, record.target):
            assert side.words.tolist() == word_numbers(side.tokens)
    capsys.readouterr()
    assert cli.main(["extract", str(tmp_path / "r"), *EXTRACTION]) == 0
    assert capsys.readouterr().out == (tmp_path / "a").read_text()


@torch.no_grad()
def by_hand(model, source, inputs, targets):
    """Attention weights [L, T, S] and log probabilities [T], a decoder pass a target token, without any cache."""
    src = torch.tensor([source])
    maps, scores = [], []
    for row, target in enumerate(targets):
        prefix = torch.tensor([inputs[: row + 1]])
        of_layers = []
        for layer in range(len(model.decoder.layers)):
            encoder_out = model.encoder(src, src_lengths=torch.tensor([len(source)]))
            logits, extra = model.decoder(prefix, encoder_out=encoder_out, alignment_layer=layer)
            of_layers.append(extra["attn"][0][0, -1])
        maps.append(torch.stack(of_layers))
        scores.append(logits[0, -1].log_softmax(-1)[target])
    return torch.stack(maps, dim=1).numpy(), torch.stack(scores).numpy()


@pytest.mark.parametrize("mode", [GENERATE, SCORE], ids=["generate", "score"])
@pytest.mark.parametrize("name", KINDS)
def test_rows_are_those_of_a_slow_pass(run, stock_model, tmp_path, name, mode):
    run(name, *mode, "--norm-records", tmp_path / "r")
    model, dictionary = stock_model(name)
    for record in Records(tmp_path / "r"):
        source, target = ([dictionary.index(t) for t in side.tokens] for side in (record.source, record.target))
        assert dictionary.unk() not in (*source, *target)
        inputs = [dictionary.index(KINDS[name].first), *target[:-1]]
        maps, scores = by_hand(model, source, inputs, target)
        np.testing.assert_allclose(record.layer_maps("attn_w"), maps, atol=1e-5)
        assert record.score == pytest.approx(scores.mean(), abs=1e-5)


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
