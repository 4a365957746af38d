"""Multilingual models on raw text: tags around the words, and both directions of one checkpoint."""

import numpy as np
import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.errors import InputError, UsageError
from alignment_eval.records import Records
from fairseq_norm_plugin.align import cli as align
from tests.demo import written
from tests.facts import facts
from tests.integration.models.tags import MULTI, SCORE

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


@pytest.mark.parametrize(
    ("name", "languages", "changes", "stated", "text"),
    [
        ("m2m", ("xx", "zz"), {}, {}, "not trained from xx to zz (its pairs: xx-yy, yy-xx)"),
        ("m2m", ("xx", "zz"), {}, {"lang_pairs": "xx-zz"}, "--target-lang zz is not one of the model's 2 languages"),
        (
            "m2m",
            ("xx", "yy"),
            {"lang_dict": "/far/langs.txt"},
            {},
            "/bin/langs.txt: no such file … /far/langs.txt … --model-option lang_dict=FILE",
        ),
        (
            "m2m",
            ("xx", "yy"),
            {"lang_pairs": ["yy-xx", "xx-yy"]},  # the languages of pairs are sorted
            {"langs": "yy,xx"},
            "langs=yy,xx: … another order, xx,yy",
        ),
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
