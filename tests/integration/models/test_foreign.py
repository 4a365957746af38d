"""A directory in the format of Transformers, as it is, with every command; and what its conversion gives."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from check_model import LINES, differences
from stock_models import Transformers

import fairseq_norm_plugin
from alignment_eval.errors import InputError, UsageError
from alignment_eval.files import write_lines
from fairseq_norm_plugin.align import cli as align
from fairseq_norm_plugin.convert import main as convert
from tests.demo import DEMO, lines
from tests.facts import facts
from tests.families import KINDS, NLLB_CODES, save, transformers

sentencepiece = pytest.importorskip("sentencepiece")
pytest.importorskip("safetensors")

MARKS = [
    "½ ﬁne Ａｂｃ １２ …",
    "$5.00 (10%) & <tag> | [x]",
    "emoji 😀 ok",
    "1,000.50 3-4 e-mail x--y",
    "a\u00a0b\u200bc",
]


@pytest.fixture(scope="module")
def directories(made_once):
    """A model of each kind, and its conversion."""

    def make(directory):
        for name, (_, _, (source, target)) in KINDS.items():
            save(directory / name, name)
            words = ["translation", directory / name, directory / f"{name}-fairseq", "-s", source, "-t", target]
            assert convert(list(map(str, words))) == 0

    return made_once("families", make)


def load(directory, name, **options):
    source, target = KINDS[name][2]
    return fairseq_norm_plugin.load(directory, source_lang=source, target_lang=target, words="whitespace", **options)


@pytest.mark.parametrize("name", KINDS)
def test_raw_text_becomes_the_ids_of_transformers_own_tokenizer(directories, name):
    model = load(directories / name, name)
    check_ids(model, Transformers(model, directories / name))


def check_ids(model, reference, lines=(*LINES, *MARKS)):
    """Compare the ids of lines.

    FSMT's tokenizer of Transformers takes every text for a source.  Those of NLLB and mBART no longer call
    SentencePiece, and normalise white space at the end and some combining characters in another way; so they get the
    text as SentencePiece normalises it.
    """
    tokenizer = reference.tokenizer
    own = tokenizer.is_fast and sentencepiece.SentencePieceProcessor(model_file=tokenizer.vocab_file)
    for which in (0,) if "FSMT" in type(tokenizer).__name__ else (0, 1):
        for line in lines:
            normal = own.Normalize(line).replace("▁", " ").strip(" ") if own else line
            found = model.forward.encode_line(model.forward.pipelines[which].read(line), which).ids.tolist()
            assert found == reference.encode(normal, which), line


def test_an_mbart_before_mbart_50(directories, tmp_path):
    """Its language comes last in the source, and first for the decoder; Transformers has that order in the labels."""
    shutil.copytree(directories / "mbart", tmp_path / "model")
    (tmp_path / "model" / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MBartTokenizer"}))
    model = load(tmp_path / "model", "mbart")
    reference = Transformers(model, tmp_path / "model")
    check_ids(model, reference)
    pair = reference.encode(LINES[2], 0), reference.encode(LINES[3], 1)
    assert pair[1][-2:] == [2, reference.tokenizer.convert_tokens_to_ids("fr_XX")]
    assert max(differences(model, reference, [pair]).values()) < 1e-5


@pytest.mark.parametrize("name", KINDS)
def test_a_directory_and_its_conversion_give_the_same(directories, name):
    both = [load(directories / (name + ending), name) for ending in ("", "-fairseq")]
    first, second = (model.translate(LINES[:3]) for model in both)
    assert [(a.target, a.score, a.links) for a in first] == [(b.target, b.score, b.links) for b in second]
    first, second = (model.maps(LINES[2], LINES[3], kinds=["attn_n"]) for model in both)
    assert (first.target.tokens, first.score) == (second.target.tokens, second.score)
    np.testing.assert_array_equal(first.layer_maps("attn_n"), second.layer_maps("attn_n"))
    assert both[0].identity == both[1].identity
    assert load(directories / name, name, dtype="bfloat16").identity == both[0].identity


@pytest.mark.parametrize("name", ["marian", "nllb"])
def test_calibrated_and_aligned(directories, tmp_path, capsys, name):
    shutil.copytree(directories / name, tmp_path / "model")
    source, target = KINDS[name][2]
    for file, text in (("source", LINES * 3), ("target", [*LINES, *LINES[1:], *LINES[2:], *LINES[:3]])):
        write_lines(tmp_path / file, text)
    words = ["--path", tmp_path / "model", "-s", source, "-t", target, "--cpu"]
    words += ["--source-text", tmp_path / "source", "--target-text", tmp_path / "target"]
    assert align.main([str(word) for word in ("calibrate", *words)]) == 0
    pairs = ("",) if name == "marian" else (f".{source}-{target}", f".{target}-{source}")
    assert all((tmp_path / "model" / f"model.safetensors{pair}.align.json").is_file() for pair in pairs)
    capsys.readouterr()
    assert align.main([str(word) for word in (*words, "--force", "-o", tmp_path / "links")]) == 0
    assert f"model.safetensors{pairs[0]}.align.json" in capsys.readouterr().err
    assert len((tmp_path / "links").read_text().splitlines()) == 48


@pytest.mark.parametrize(
    ("name", "change", "languages", "message"),
    [
        ("nllb", {"legacy_behaviour": True}, None, "tokenizer_config.json: legacy_behaviour is true"),
        ("nllb", {}, ("deu_Latn", "fra"), "--target-lang fra is not one of the model's 4 languages … such as fra_Latn"),
        ("nllb", {"vocab_size": 900}, None, "the tokenizer has 426 tokens … config.json gives vocab_size 900"),
        ("mbart", {"activation_function": "silu"}, None, "activation_function is 'silu' … gelu or relu"),
    ],
)
def test_other_configurations_and_languages_are_refused(directories, tmp_path, name, change, languages, message):
    shutil.copytree(directories / name, tmp_path / "model")
    for file in ("config.json", "tokenizer_config.json"):
        path = tmp_path / "model" / file
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    source, target = languages or KINDS[name][2]
    with pytest.raises((InputError, UsageError), match=facts(message)):
        fairseq_norm_plugin.load(tmp_path / "model", source_lang=source, target_lang=target)


def test_files_that_are_missing_or_of_another_model(directories, tmp_path):
    shutil.copytree(directories / "nllb", tmp_path / "model")
    model = tmp_path / "model" / "sentencepiece.bpe.model"

    def refused(message):
        with pytest.raises(InputError, match=facts(message)):
            load(model.parent, "nllb")

    shutil.copyfile(directories / "m2m_100" / model.name, model)
    refused("the tokenizer has … tokens with ids up to")
    model.rename(tmp_path / "elsewhere")
    (model.parent / "tokenizer.json").write_text('{"model": {"vocab": {}}}')
    refused("tokenizer.json: cannot be read as a tokenizer of Transformers")
    (model.parent / "tokenizer.json").unlink()
    refused("sentencepiece.bpe.model: no such file; give the SentencePiece model")
    model.symlink_to(tmp_path / "elsewhere")
    refused("sentencepiece.bpe.model: a symbolic link to … elsewhere, outside of the model's directory")


@pytest.mark.parametrize(("name", "kind"), [("nllb", "NllbTokenizer"), ("mbart", "MBart50Tokenizer")])
def test_a_directory_as_transformers_5_saves_it(directories, tmp_path, name, kind):
    """With tokenizer.json only: the same parameters, dictionary and subwords; special tokens of a text are text."""
    shutil.copytree(directories / name, tmp_path / "model")
    for file in ("sentencepiece.bpe.model", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "model" / file).unlink(missing_ok=True)
    added = {"extra_special_tokens": NLLB_CODES} if name == "nllb" else {}
    transformers(kind).from_pretrained(directories / name, **added).save_pretrained(tmp_path / "model")
    old, new = load(directories / name, name), load(tmp_path / "model", name)
    assert old.identity == new.identity
    assert old.vocabularies[0].dictionary == new.vocabularies[0].dictionary
    for line in (*LINES, "Das </s> ist <mask>  zwei deu_Latn   de_DE."):
        sides = [model.forward.pipelines[0].segment(model.forward.pipelines[0].read(line)) for model in (old, new)]
        assert sides[0].tokens == sides[1].tokens
        assert sides[0].words.tolist() == sides[1].words.tolist()
        assert new.forward.pipelines[0].raw(sides[1].tokens) == old.forward.pipelines[0].raw(sides[0].tokens)


def test_a_directory_of_hugging_faces_cache(directories, tmp_path):
    """Its files are links to ``blobs`` beside the snapshots."""
    snapshot = tmp_path / "snapshots" / "revision"
    snapshot.mkdir(parents=True)
    shutil.copytree(directories / "fsmt", tmp_path / "blobs")
    for file in (tmp_path / "blobs").iterdir():
        (snapshot / file.name).symlink_to(Path("../../blobs") / file.name)
    assert load(snapshot, "fsmt").identity == load(directories / "fsmt", "fsmt").identity


# -- a model of OPUS-MT's form, with every command


SIDES = {"source": "de", "target": "en"}


def make(directory):
    """A random model of pieces of the demo's sentences, its conversion, and the sentences in its pieces."""
    save(directory / "model", "marian", ([*lines("de"), *lines("en")], 320))
    assert convert(["translation", str(directory / "model"), str(directory / "out")]) == 0
    (directory / "data").mkdir()
    for side, language in SIDES.items():
        processor = sentencepiece.SentencePieceProcessor(model_file=str(directory / "out" / f"{side}.spm"))
        encoded = [" ".join(pieces) for pieces in processor.Encode(lines(language), out_type=str)]
        write_lines(directory / "data" / f"test.de-en.{language}", encoded)
        shutil.copy(directory / "out" / f"dict.{language}.txt", directory / "data")


@pytest.fixture(scope="module")
def opus(made_once):
    return made_once("opus", make)


@pytest.fixture
def run(opus, tmp_path, capsys):
    """Align the demo's text, and give the links of each line."""

    named = ["--path", opus / "out" / "checkpoint.pt", "--data", opus / "out", "-s", "de", "-t", "en"]

    def start(*options, text=(DEMO / "demo.de", DEMO / "demo.en"), model=named):
        words = [*model, "--cpu", "--source-text", text[0], "--target-text", text[1], *options]
        words += ["-o", tmp_path / "links", "--overwrite", "--force"]  # random models
        assert align.main([str(word) for word in words]) == 0, capsys.readouterr().err
        return (tmp_path / "links").read_text().splitlines()

    return start


@pytest.fixture
def opus_generate(opus, run_generate):
    """Run fairseq-generate on the demo's text in pieces."""
    words = [opus / "data", "--path", opus / "out" / "checkpoint.pt", "-s", "de", "-t", "en", "--dataset-impl", "raw"]
    words += ["--user-dir", Path(fairseq_norm_plugin.__file__).parent, "--task", "translation_norm"]
    return lambda *options: run_generate(*words, *options)


def test_links_of_raw_text_of_pieces_and_of_fairseq_generate(opus, run, opus_generate, tmp_path):
    stub = opus / "out" / "upper-layers.align.json"
    profile = ("--profile", stub, "--table", "none")
    words = ("--words", "whitespace")
    models = [word for side in SIDES for word in ("--model-option", f"sentencepiece_model={opus / 'out' / side}.spm")]
    raw = run("--bpe", "sentencepiece", *models, *profile, *words)
    assert len(raw) == 60
    pieces = [opus / "data" / f"test.de-en.{language}" for language in SIDES.values()]
    assert run("--bpe", "none", *profile, text=pieces) == raw
    assert run(*profile, *words, model=["--path", opus / "out"]) == raw  # all is found in the directory
    opus_generate("--score-reference", "--norm-profile", stub, "--norm-alignments", tmp_path / "scored")
    assert (tmp_path / "scored").read_text().splitlines() == raw


@pytest.fixture(scope="module")
def tagged(opus, tmp_path_factory):
    """A model of two target languages: that of ``opus``, with tags in the place of two pieces; and its conversion."""
    directory = tmp_path_factory.mktemp("tagged")
    shutil.copytree(opus / "model", directory / "model")
    path = directory / "model" / "vocab.json"
    ids = json.loads(path.read_text())
    tokens = [*list(ids)[:-3], ">>fra<<", ">>spa<<", "<pad>"]
    path.write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    assert convert(["translation", str(directory / "model"), str(directory / "out")]) == 0
    return directory


def test_a_tag_before_each_source_as_transformers_puts_it(tagged):
    tokenizer = transformers("MarianTokenizer").from_pretrained(tagged / "model")
    model = fairseq_norm_plugin.load(tagged / "out", target_tag="fra", words="whitespace")
    read = model.forward.pipelines[0].read
    dictionary, ids = model.task.source_dictionary, tokenizer([f">>fra<< {line}" for line in lines("de")])["input_ids"]
    for line, expected in zip(lines("de"), ids):
        side = model.forward.encode_line(read(line), 0)
        assert [dictionary[number] for number in side.ids.tolist()] == tokenizer.convert_ids_to_tokens(expected)
        assert (side.side.words[0], side.side.word_count) == (-1, len(line.split()))
    with_tag = model.forward.encode_line(read(lines("de")[0]), 0).ids.tolist()
    untagged = fairseq_norm_plugin.load(tagged / "out", target_tag="none")
    given, added = untagged.maps([with_tag], lines("en")[:1])[0], model.maps(lines("de")[0], lines("en")[0])
    assert given.score == added.score
    np.testing.assert_array_equal(given.layer_maps("attn_n"), added.layer_maps("attn_n"))
    assert model.forward.profile == tagged / "out" / "checkpoint.pt.de-fra.align.json"


@pytest.mark.parametrize("words", ["whitespace", "characters"])
def test_lines_of_which_the_model_reads_nothing_are_empty(opus, words):
    """U+FFFD and ``▁`` are words, but SentencePiece makes nothing of them; U+0085 is a subword, but no word."""
    model = fairseq_norm_plugin.load(opus / "out", words=words)
    nothing = ["\ufffd", "▁", "\u3000", "\u00a0", "\u2028", "\u200b", "\u0085"]
    sides = [*lines("de"), *nothing, *["ja"] * 7], [*lines("en"), *["yes"] * 7, *nothing]
    found = model.align(*sides, scores=True, force=True)  # the maps are chosen on the text
    assert [pair.status for pair in found] == ["ok"] * 60 + ["empty"] * 14
    assert all(pair.scores.log_prob is None for pair in found[60:])
    named = {"heads": "1", "setting": "awo"}
    assert [(pair.status, pair.target) for pair in model.translate(nothing, **named)] == [("empty", "")] * 7
    for line in nothing:
        for refused in (model.translate, model.maps):
            with pytest.raises(InputError, match="empty"):
                refused(line)
