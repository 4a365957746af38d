"""How a model's text is made: as stated, as a directory has it, as a checkpoint says."""

from dataclasses import replace

import pytest
from fairseq.data import Dictionary
from omegaconf import OmegaConf

from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.checkpoints.files import find_files
from fairseq_norm_plugin.text.recipe import check_recipe, decided_recipe, pipelines, stated_recipe
from fairseq_norm_plugin.text.tokens import Vocabulary
from tests.demo import DEMO
from tests.facts import facts

CODES = DEMO / "codes.bpe"


@pytest.fixture
def build():
    vocabulary = Vocabulary(Dictionary(), "@@", {0, 1, 2})

    def make(*stated, languages=("de", "en"), **more):
        return pipelines(stated_recipe(*stated, **more), languages, (vocabulary, vocabulary))

    return make


def test_moses_and_codes(build):
    source, target = build("moses", "subword-nmt", {"bpe_codes": CODES})
    line = "Das ist z.B. so-und-so, Peter's Haus."
    assert " ".join(source.read(line).words) == "Das ist z.B. so - und - so , Peter ' s Haus ."
    assert " ".join(target.read(line).words) == "Das ist z.B. so - und - so , Peter 's Haus ."
    assert source.segment(source.read("wir wirwir")).words.tolist()[:2] == [0, 1]
    (country, _) = build("moses", "none", languages=("de_DE", "en_XX"))
    assert country.read("am 3. Mai bzw. morgen.").words == ("am", "3.", "Mai", "bzw.", "morgen", ".")
    for yes in (True, "true"):  # a command line gives text
        (_, plain) = build("moses", "none", {"moses_no_escape": yes, "moses_no_dash_splits": yes})
        assert " ".join(plain.read(line).words) == "Das ist z.B. so-und-so , Peter 's Haus ."


def test_codes_of_both_sides(build, tmp_path):
    (tmp_path / "other").write_text("#version: 0.2\nw i\n")
    source, target = build(None, None, {"bpe_codes": [CODES, tmp_path / "other"]})
    assert [side.segment(side.read("wir")).tokens for side in (source, target)] == [("wir",), ("wi@@", "r")]
    recipe = stated_recipe(None, None, {"bpe_codes": [CODES, tmp_path / "other"]})
    assert recipe.exchanged().files["bpe_codes"] == [str(tmp_path / "other"), str(CODES)]


def test_sentencepiece_models_of_both_sides(build, sentencepiece_model, tmp_path):
    """As Marian's models have them."""
    other = tmp_path / "target.spm"
    other.write_bytes(sentencepiece_model.read_bytes())
    files = [str(sentencepiece_model), str(other)]
    recipe = stated_recipe(None, "sentencepiece", {"sentencepiece_model": files})
    assert recipe.paths == files
    assert recipe.exchanged().files["sentencepiece_model"] == files[::-1]
    for tokenizer, words in ((None, ("haus", ".")), ("none", ("haus.",))):
        source, _ = build(tokenizer, "sentencepiece", {"sentencepiece_model": files})
        assert source.read("haus.").words == words  # of text that is tokenised, as it is
    other.write_bytes(b"none")
    with pytest.raises(InputError, match=facts("target.spm: cannot be read")):
        build(None, "sentencepiece", {"sentencepiece_model": files})


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        (("mosses",), "--tokenizer mosses: choose one of none, moses"),
        ((None, "sentencepiece"), "--bpe sentencepiece needs … --model-option sentencepiece_model=FILE"),
        ((None, "fastbpe", {"bpe_codes": "c", "gpt2_vocab_bpe": "v"}), "gpt2_vocab_bpe is an option of --bpe gpt2"),
        ((None, "sentencepiece", {"sentencepiece_model": ["a", "b", "c"]}), "sentencepiece_model is given 3 times"),
        ((None, None, {"no_such": 1}), "no_such: no tokenizer and no subwords of fairseq have this option"),
        ((None, "none", {}, ("words", "whitespace")), "words words: choose one of tokens, whitespace, characters"),
        ((None, "none", {"bpe_glossaries": "A"}), "bpe_glossaries is an option of BPE codes"),
        (
            (None, "none", {}, ("tokens",) * 2, "auto", False, "nfkc"),
            "--normalize nfkc: choose one of none, nfc, moses",
        ),
        ((None, "none", {}, ("tokens",) * 2, "auto", False, "moses"), "--normalize moses for text in subwords"),
    ],
)
def test_what_does_not_go_together(stated, text):
    with pytest.raises(UsageError, match=facts(text)):
        check_recipe(stated_recipe(*stated))


def test_what_cannot_be_read(build, tmp_path):
    with pytest.raises(InputError, match=facts("--tokenizer moses: … 'maybe' … bool … moses_no_escape")):
        build("moses", "none", {"moses_no_escape": "maybe"})
    with pytest.raises(InputError, match=facts("no-such: no such file … --bpe hf_byte_bpe needs it as")):
        build(None, "hf_byte_bpe", {"bpe_merges": "no-such", "bpe_vocab": "no-such"})
    (tmp_path / "merges").write_text("{}")
    with pytest.raises(InputError, match=facts("--bpe hf_byte_bpe: … check its options and the files")):
        build(None, "hf_byte_bpe", {"bpe_merges": tmp_path / "merges", "bpe_vocab": CODES})


FAR = {
    "tokenizer": {"_name": "moses", "source_lang": "en", "target_lang": "en", "moses_no_escape": True},
    "bpe": {"_name": "fastbpe", "bpe_codes": "/training/wmt/bpecodes"},
}


@pytest.fixture
def read(tmp_path):
    """The recipe of a model whose directory has ``names``, named as a directory or by its checkpoint."""

    def make(*names, cfg=None, released=True, **stated):
        for name in ("model.pt", *names):
            (tmp_path / name).touch()
        files = find_files(tmp_path, None) if released else find_files(tmp_path / "model.pt", tmp_path)
        section = OmegaConf.create(cfg or {"tokenizer": None, "bpe": None})
        files = replace(files, state={"cfg": section})
        recipe = decided_recipe(stated_recipe(**stated), None, files)
        return recipe.tokenizer, recipe.bpe, {**recipe.options, **{key: own[0] for key, own in recipe.files.items()}}

    return make


def test_as_the_directory_has_them(read, tmp_path):
    assert read("bpecodes") == (None, None, {"bpe_codes": str(tmp_path / "bpecodes")})
    expected = "moses", None, {"bpe_codes": str(tmp_path / "bpecodes")}
    assert read("bpecodes", tokenizer="moses") == expected
    assert read("bpecodes", bpe="none") == (None, "none", {})
    assert read("bpecodes", bpe="fastbpe") == (None, "fastbpe", {"bpe_codes": str(tmp_path / "bpecodes")})


def test_as_the_checkpoint_says(read, tmp_path):
    options = {"bpe_codes": str(tmp_path / "bpecodes"), "moses_no_escape": True}
    assert read("bpecodes", cfg=FAR, released=False) == ("moses", "fastbpe", options)
    assert read("bpecodes", cfg=FAR) == ("moses", None, options)
    assert read("bpecodes", cfg=FAR, released=False, bpe="none") == (None, "none", {})
    assert read(released=False) == (None, None, {})
    words = "sentencepiece", {"sentencepiece_model": "/far/spm.model"}
    (tmp_path / "spm.model").touch()
    cfg = {"tokenizer": None, "bpe": {"_name": words[0], **words[1]}}
    (tmp_path / "bpecodes").unlink()
    assert read(cfg=cfg, released=False)[1:3] == ("sentencepiece", {"sentencepiece_model": str(tmp_path / "spm.model")})


def test_files_that_are_missing(read):
    with pytest.raises(InputError, match=r"/bpecodes: no such file.*'/training/wmt/bpecodes'.*--bpe-codes FILE"):
        read(cfg=FAR, released=False)
    with pytest.raises(UsageError, match=facts("--bpe fastbpe needs … --bpe-codes")):
        read(bpe="fastbpe")
