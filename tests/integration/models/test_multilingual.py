"""Multilingual and pretrained models: M2M-100's and NLLB's task, mBART's task; their language tags and their rows."""

from __future__ import annotations

import json
import logging
import random
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.tasks.translation_from_pretrained_bart import TranslationFromPretrainedBARTTask
from fairseq_cli import preprocess

import fairseq_norm_plugin
from alignment_eval import cli
from alignment_eval.errors import InputError, UsageError
from alignment_eval.formats.reading import ReadOptions, read_gold
from alignment_eval.records.store import Records
from alignment_eval.scoring.sweep import configurations, sweep
from fairseq_norm_plugin.align import cli as align
from tests.facts import facts

MULTI, BART = "translation_multi_simple_epoch", "translation_from_pretrained_bart"
PIECES = ("ba", "ki", "lo", "mu", "ne", "ra")
GENERATE = ["--beam", 3, "--nbest", 2, "--max-len-b", 9, "--min-len", 2]
SCORE = ["--score-reference"]
PREFIX = [*GENERATE, "--prefix-size", 2]
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
def mbart(trained, corpus):
    """Train a small mBART under our task, once a name."""

    def make(name, *extra, updates=60):
        sizes = [f"--{side}-{what}" for side in ("encoder", "decoder") for what in ("layers", "attention-heads")]
        small = [word for size in sizes for word in (size, 2)]
        small += ["--encoder-embed-dim", 32, "--encoder-ffn-embed-dim", 48, "--encoder-normalize-before"]
        small += ["--decoder-normalize-before", "--layernorm-embedding", "-s", "xx", "-t", "yy"]
        words = [*small, *KINDS["mbart"].options, *extra]
        return trained(name, *words, data=corpus, arch="mbart_base", task=BART + "_norm", updates=updates)

    return make


@pytest.fixture(scope="module")
def model_of(trained, mbart, corpus):
    """The checkpoint for a kind: one pre-norm Transformer, trained by fairseq's task, and one mBART."""

    def make(name):
        if name in ("mbart", "mbart50"):  # their dictionaries are the same
            return mbart("mbart")
        pre_norm = ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"]
        return trained("m2m", *pre_norm, *KINDS["m2m"].options, data=corpus, task=MULTI, updates=60)

    return make


@pytest.fixture
def run(run_generate, corpus, model_of):
    """Run fairseq's task, with a batching that loses no sentence, or ours, of a kind."""

    def either(name, *extra, ours=True, languages=("-s", "xx", "-t", "yy"), path=None):
        kind = KINDS[name]
        words = [corpus, "--path", path or model_of(name), "--task", kind.task + ("_norm" if ours else "")]
        batching = [] if ours else ["--required-batch-size-multiple", 1]
        return run_generate(*words, *languages, *kind.options, *batching, *extra)

    return either


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
    for (id_, _, printed), record in zip(output.lines("A"), sorted(records, key=lambda r: (r.id, r.rank))):
        assert id_ == record.id
        source, target = (np.flatnonzero(side.words >= 0) for side in (record.source, record.target))
        best = record.layer_maps("attn_n")[1][np.ix_(target, source)].argmax(axis=1)
        assert printed == " ".join(f"{i}-{j}" for j, i in enumerate(best))


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


@pytest.mark.parametrize("mode", [GENERATE, PREFIX, SCORE], ids=["generate", "prefix", "score"])
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


@pytest.mark.parametrize("name", ["m2m", "mbart"])
def test_sentences_that_are_too_long_leave_a_stub(run, lines, tmp_path, name):
    limits = ["--max-source-positions", 8, "--skip-invalid-size-inputs-valid-test"]
    run(name, *SCORE, *limits, "--norm-records", tmp_path / "r")
    skipped = {record.id for record in Records(tmp_path / "r") if record.status.startswith("skipped")}
    assert skipped == {id_ for id_, (source, _) in enumerate(lines[:9]) if len(source.split()) + 2 > 8}
    assert skipped


def test_the_command_of_m2m_100(run, corpus, tmp_path):
    pairs = tmp_path / "language_pairs.txt"
    pairs.write_text("xx-yy,yy-xx\n")
    options = ["--lang-pairs", pairs, "--fixed-dictionary", corpus / "dict.xx.txt", "--remove-bpe", "sentencepiece"]
    run("m2m", *options, "--norm-records", tmp_path / "r")
    run("m2m", "--norm-records", tmp_path / "plain")
    fixed, plain = (sorted(Records(tmp_path / name), key=lambda r: r.id) for name in ("r", "plain"))
    assert [record.target.tokens for record in fixed] == [record.target.tokens for record in plain]


@pytest.mark.parametrize("name", ["m2m", "mbart"])
def test_a_finished_run_resumes_and_another_tag_is_another_run(run, tmp_path, name):
    run(name, *SCORE, "--norm-records", tmp_path / "r")
    with pytest.raises(SystemExit) as end:
        run(name, *SCORE, "--norm-records", tmp_path / "r", "--norm-records-resume")
    assert end.value.code == 0
    other = ["--encoder-langtok", "tgt"] if name == "m2m" else ["--prepend-bos"]
    differing = "langtoks" if name == "m2m" else "prepend_bos"
    with pytest.raises(InputError, match=rf"of another run \(different: {differing}"):
        run(name, *SCORE, *other, "--norm-records", tmp_path / "r", "--norm-records-resume")


@pytest.mark.parametrize(
    ("name", "languages", "extra", "text"),
    [
        ("m2m", ("-s", "xx", "-t", "zz"), [], r"--target-lang zz is not one of .*\(--langs.*: xx, yy\)"),
        ("mbart", ("-s", "xx", "-t", "zz"), [], r"--target-lang zz is not one of .*\(--langs: xx, yy\)"),
        ("mbart", ("-s", "xx", "-t", "yy"), ["--langs", ""], "--langs is missing"),
        ("m2m", (), [], "--source-lang or --target-lang is missing"),
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


def test_stated_special_tokens_are_in_no_word(run, lines, tmp_path):
    run("m2m", *SCORE, "--norm-special-tokens", "ki,▁ra", "--norm-records", tmp_path / "r")
    for record in Records(tmp_path / "r"):
        for side in (record.source, record.target):
            barred = [token if token not in ("ki", "▁ra") else "</s>" for token in side.tokens]
            assert side.words.tolist() == word_numbers(barred)


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
    read = read_gold(gold, ReadOptions(base="1")).links.to_sentences()
    wanted = configurations(["attn_w", "attn_n"], ["awo", "awi"], ["kobayashi2020"], ["allow"])
    table = sweep(Records(tmp_path / "r").best(), read, wanted).table
    layers = table[(table["level"] == "layer") & (table["null"] == "allow")]
    assert len(layers) == 8
    for row in layers.itertuples():
        assert float(found[f"test_aer_l{row.layer}_{row.kind[-1]}_{row.setting}"]) == round(row.aer, 6)


#: What a checkpoint of m2m's training would say of its tags if it had been trained as another kind.
TAGS = {
    "m2m": {},
    "to-target": {"encoder_langtok": "tgt", "decoder_langtok": False, "langtoks": {}},
    "replacing": {"lang_tok_replacing_bos_eos": True},
    "mbart": {},
}


@pytest.fixture
def variant(model_of, tmp_path):
    """The checkpoint of a kind, whose options are those of its command line."""

    def make(name, **changes):
        state = torch.load(model_of(name), weights_only=True)
        vars(state["cfg"]["task"]).update(TAGS.get(name, {}), **changes)
        torch.save(state, tmp_path / f"{name}.pt")
        return tmp_path / f"{name}.pt"

    return make


@pytest.mark.parametrize("name", TAGS)
def test_python_reads_what_generation_records(run, variant, corpus, lines, tmp_path, name):
    run(name, *SCORE, "--norm-records", tmp_path / "scored")
    run(name, "--beam", 3, "--norm-records", tmp_path / "searched")
    model = fairseq_norm_plugin.load(variant(name), corpus, "xx", "yy", bpe="none")
    both = sorted(Records(tmp_path / "scored"), key=lambda r: r.id)
    for record, found in zip(both, model.maps(*zip(*lines[:9]))):
        assert found.source.tokens == record.source.tokens
        assert found.target.tokens == record.target.tokens
        for side, other in ((found.source, record.source), (found.target, record.target)):
            assert side.words.tolist() == other.words.tolist()
        np.testing.assert_allclose(found.layer_maps("attn_n"), record.layer_maps("attn_n"), atol=1e-5)
        assert found.score == pytest.approx(record.score, abs=1e-5)
    searched = sorted(Records(tmp_path / "searched").best(), key=lambda r: r.id)
    for record, found in zip(searched, model.maps([source for source, _ in lines[:9]], beam=3)):
        assert found.target.tokens == record.target.tokens
        np.testing.assert_allclose(found.layer_maps("attn_w"), record.layer_maps("attn_w"), atol=1e-5)
    ids = model.direction.encode_side(lines[0][0].split(), 0).ids.tolist()
    plain = [i for i in ids if i not in model.vocabularies[0].specials]
    assert model.maps(plain, lines[0][1]).source.tokens == both[0].source.tokens


def test_one_checkpoint_of_both_directions(variant, corpus, lines, capsys, tmp_path):
    path, files = variant("m2m"), [tmp_path / "text.xx", tmp_path / "text.yy"]
    for file, side in zip(files, zip(*lines[:40])):
        file.write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    texts = ["--source-text", files[0], "--target-text", files[1]]
    words = ["--path", path, "--data", corpus, "-s", "xx", "-t", "yy", "--bpe", "none", "--cpu", *texts]
    assert align.main([str(word) for word in ("calibrate", *words)]) == 0
    profiles = [tmp_path / f"m2m.pt.{pair}.align.json" for pair in ("xx-yy", "yy-xx")]
    assert all(profile.is_file() for profile in profiles)

    def links(*more, out="out"):
        capsys.readouterr()
        assert align.main([str(word) for word in (*words, *more, "-o", tmp_path / out)]) == 0, capsys.readouterr().err
        return (tmp_path / out).read_text(), capsys.readouterr().err

    both, said = links()
    assert all(str(profile) in said for profile in profiles)
    assert "join:product" in said
    assert links("--reverse-path", path, out="named")[0] == both
    alone, said = links("--reverse-path", "none", out="alone")
    assert "join" not in said
    assert alone != both
    model = fairseq_norm_plugin.load(path, corpus, "xx", "yy", bpe="none")
    assert model.reverse is not None
    assert model.reverse.models[0] is model.models[0]
    assert model.identity != model.reverse.identity
    found = model.align(*zip(*lines[:40]))
    assert [" ".join(f"{i}-{j}" for i, j in sorted(pair.links)) for pair in found] == [
        " ".join(sorted(line.split(), key=lambda link: tuple(map(int, link.split("-"))))) for line in both.splitlines()
    ]


@pytest.mark.parametrize(
    ("name", "languages", "changes", "stated", "text"),
    [
        ("m2m", ("xx", "zz"), {}, {}, "not trained from xx to zz (its pairs: xx-yy, yy-xx)"),
        ("m2m", ("yy", "xx"), {"lang_pairs": ["xx-yy"]}, {}, "not trained from yy to xx (its pairs: xx-yy)"),
        ("m2m", ("xx", "zz"), {}, {"lang_pairs": "xx-zz"}, "--target-lang zz is not one of the model's 2 languages"),
        ("m2m", ("xx", "yy"), {"lang_dict": "/far/langs.txt"}, {}, "/far/langs.txt: no such file … --lang-dict"),
        ("m2m", ("xx", "yy"), {}, {"langs": "xx,yy,zz"}, "the checkpoint has … but the task has"),
        ("mbart", ("xx", "zz"), {}, {}, "--target-lang zz is not one of the model's 2 languages"),
    ],
)
def test_directions_and_languages_that_a_model_has_not(variant, corpus, name, languages, changes, stated, text):
    with pytest.raises((InputError, UsageError), match=facts(text)):
        fairseq_norm_plugin.load(variant(name, **changes), corpus, *languages, bpe="none", **stated)


def test_a_direction_without_training_can_be_read_nevertheless(variant, corpus, lines):
    path = variant("m2m", lang_pairs=["xx-yy"])
    model = fairseq_norm_plugin.load(path, corpus, "yy", "xx", bpe="none", lang_pairs="yy-xx")
    assert model.maps(*lines[0][::-1]).source.tokens[0] == "__yy__"
    assert model.reverse is not None  # that is the direction of its training
    assert fairseq_norm_plugin.load(path, corpus, "xx", "yy", bpe="none").reverse is None
