"""Multilingual and pretrained models: the tasks of M2M-100 and of mBART; tags around words; raw text."""

import numpy as np
import pytest
import torch
from check_model import compare
from fairseq.tasks.translation_from_pretrained_bart import TranslationFromPretrainedBARTTask
from stock_models import Fairseq

import fairseq_norm_plugin
from alignment_eval import commands as cli
from alignment_eval.errors import InputError, UsageError
from alignment_eval.records import Records
from fairseq_norm_plugin.align import cli as align
from tests.demo import written
from tests.facts import facts
from tests.integration.models.conftest import EXTRACTION, GENERATE, KINDS, MULTI, PREFIX, SCORE


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


@pytest.mark.parametrize(
    ("name", "mode"),
    [("m2m", GENERATE), *((name, PREFIX) for name in KINDS), ("m2m", SCORE), ("mbart", SCORE), ("mbart-bos", SCORE)],
    ids=str,
)
def test_as_stock_and_tags_in_no_word(run, lines, tmp_path, capsys, name, mode):
    expected = run(name, *mode, ours=False).lines()
    files = ["--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a"]
    output = run(name, *mode, *files, "--print-alignment", "hard", "--norm-layer", 1)
    assert len(expected) == 3 * 9 * (1 if mode is SCORE else 2)
    assert output.lines() == expected
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


# -- on raw text

#: What a checkpoint of m2m's training would say of its tags if it had been trained as another kind.
TAGS = {
    "m2m": {},
    "to-target": {"encoder_langtok": "tgt", "decoder_langtok": False, "langtoks": {}},
    "replacing": {"lang_tok_replacing_bos_eos": True},
    "mbart50": {
        "_name": MULTI,
        "langs": ["xx", "yy"],
        "lang_pairs": "xx-yy,yy-xx",
        "encoder_langtok": "src",
        "decoder_langtok": True,
        "lang_tok_style": "mbart",
    },
    "mbart": {},
}


def test_training_under_our_multilingual_task_is_fairseqs(trained, corpus):
    words = [*KINDS["m2m"].options, "--dropout", 0.2]
    states = [
        torch.load(trained(task, *words, data=corpus, task=task, updates=3), weights_only=True)["model"]
        for task in (MULTI, MULTI + "_norm")
    ]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


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
    ids = model.forward.encode_line(model.forward.pipelines[0].read(lines[0][0]), 0).ids.tolist()
    plain = [i for i in ids if i not in model.vocabularies[0].specials]
    assert model.maps([plain], [lines[0][1]])[0].source.tokens == both[0].source.tokens


def test_one_checkpoint_of_both_directions(variant, corpus, lines, run, capsys, tmp_path):
    path = variant("m2m")
    words = ["--path", path, "--data", corpus, "-s", "xx", "-t", "yy", "--bpe", "none", "--cpu"]
    for side, sentences in zip(("source", "target"), zip(*lines[:40])):
        words += [f"--{side}-text", written(tmp_path / side, sentences)]
    assert align.main([str(word) for word in ("calibrate", *words)]) == 0
    profiles = [tmp_path / f"m2m.pt.{pair}.align.json" for pair in ("xx-yy", "yy-xx")]
    assert all(profile.is_file() for profile in profiles)

    def links(*more, out="out"):
        capsys.readouterr()
        command = [*words, *more, "--force", "-o", tmp_path / out]
        assert align.main([str(word) for word in command]) == 0, capsys.readouterr().err
        return (tmp_path / out).read_text(), capsys.readouterr().err

    both, said = links()
    assert all(profile.name in said for profile in profiles)
    assert "join:product" in said
    assert links("--reverse-path", path, out="named")[0] == both
    alone, said = links("--reverse-path", "none", out="alone")
    assert "join" not in said
    assert alone != both
    run("m2m", *SCORE, "--norm-alignments", tmp_path / "generated", path=path)
    assert f"profile: {profiles[0]}" in capsys.readouterr().err
    assert (tmp_path / "generated").read_text().splitlines() == alone.splitlines()[:9]
    model = fairseq_norm_plugin.load(path, corpus, "xx", "yy", bpe="none")
    assert model.reverse is not None
    assert model.reverse.networks[0] is model.models[0]
    assert model.identity != model.reverse.identity
    model.align(*zip(*lines[:40])).to_pharaoh(tmp_path / "python")
    assert (tmp_path / "python").read_text() == both


@pytest.mark.parametrize("name", TAGS)
def test_ids_translations_and_maps_are_those_of_stock_fairseq(variant, corpus, lines, name):
    model = fairseq_norm_plugin.load(variant(name), corpus, "xx", "yy", bpe="none")
    found = list(compare(model, Fairseq(model), [source for source, _ in lines[:9]]))
    assert all(same for _, _, same in found), found


@pytest.mark.parametrize(
    ("name", "languages", "changes", "stated", "text"),
    [
        ("m2m", ("xx", "zz"), {}, {}, "not trained from xx to zz (its pairs: xx-yy, yy-xx)"),
        ("m2m", ("xx", "zz"), {}, {"lang_pairs": "xx-zz"}, "--target-lang zz is not one of the model's 2 languages"),
        ("m2m", ("xx", "yy"), {"lang_dict": "/far/l"}, {}, "/bin/l: no such file … /far/l … lang_dict=FILE"),
        # the languages of pairs are sorted
        ("m2m", ("xx", "yy"), {"lang_pairs": ["yy-xx", "xx-yy"]}, {"langs": "yy,xx"}, "langs=yy,xx: … xx,yy"),
        ("mbart50", ("xx", "yy"), {"langtoks": {"main": ("src.mined", "tgt")}}, {}, "[xx_mined] … --langtoks-specs"),
        ("m2m", ("xx", "yy"), {}, {"target_tag": "yy"}, "target_tag='yy': … from -s and -t"),
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
