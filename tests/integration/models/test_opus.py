"""A model of OPUS-MT's form, from its directory to alignments of raw text, with every command."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import fairseq_norm_plugin
from alignment_eval.errors import InputError
from alignment_eval.files import write_lines
from fairseq_norm_plugin.align import cli as align
from fairseq_norm_plugin.convert import main
from tests.demo import DEMO, lines
from tests.families import save, transformers

sentencepiece = pytest.importorskip("sentencepiece")
pytest.importorskip("safetensors")

SIDES = {"source": "de", "target": "en"}


def make(directory):
    """A random model of pieces of the demo's sentences, its conversion, and the sentences in its pieces."""
    save(directory / "model", "marian", ([*lines("de"), *lines("en")], 320))
    assert main(["translation", str(directory / "model"), str(directory / "out")]) == 0
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
def generate(opus, run_generate):
    """Run fairseq-generate on the demo's text in pieces."""
    words = [opus / "data", "--path", opus / "out" / "checkpoint.pt", "-s", "de", "-t", "en", "--dataset-impl", "raw"]
    words += ["--user-dir", Path(fairseq_norm_plugin.__file__).parent, "--task", "translation_norm"]
    return lambda *options: run_generate(*words, *options)


def test_links_of_raw_text_of_pieces_and_of_fairseq_generate(opus, run, generate, tmp_path):
    stub = opus / "out" / "upper-layers.align.json"
    profile = ("--profile", stub, "--table", "none")
    words = ("--words", "whitespace")
    models = [word for side in SIDES for word in ("--model-option", f"sentencepiece_model={opus / 'out' / side}.spm")]
    raw = run("--bpe", "sentencepiece", *models, *profile, *words)
    assert len(raw) == 60
    pieces = [opus / "data" / f"test.de-en.{language}" for language in SIDES.values()]
    assert run("--bpe", "none", *profile, text=pieces) == raw
    assert run(*profile, *words, model=["--path", opus / "out"]) == raw  # all is found in the directory
    generate("--score-reference", "--norm-profile", stub, "--norm-alignments", tmp_path / "scored")
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
    assert main(["translation", str(directory / "model"), str(directory / "out")]) == 0
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
