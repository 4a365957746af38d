"""``norm-align --translate``: fairseq's own translations, aligned; also after a stop."""

import json
import math

import pytest
from sacremoses import MosesTokenizer

import fairseq_norm_plugin
from tests.demo import BOTH, DEMO, in_pieces, lines, raw_lines, written
from tests.facts import says
from tests.integration.conftest import demo_binarised

LINES = raw_lines("de")[:8]


@pytest.fixture
def run(lines_run):
    """norm-align of lines, by default of the demo."""
    return lambda *options, lines=LINES, out="out.jsonl", **more: lines_run(*options, sources=lines, out=out, **more)


def rows(done):
    assert done.status == 0, done.err
    return list(map(json.loads, done.lines))


def natural(scores):
    """Scores that fairseq printed, which are in base 2."""
    return [float(score) * math.log(2) for score in scores]


@pytest.fixture(scope="module")
def demo_data(tmp_path_factory):
    """The raw lines as the model reads them, made without this package, and binarised."""
    tokenize = MosesTokenizer(lang="de").tokenize
    tokens = [tokenize(line, escape=False, return_str=True).lower() for line in LINES]
    return demo_binarised(tmp_path_factory.mktemp("demo"), in_pieces(tokens), in_pieces(lines("en")[:8]))


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # fairseq leaves the file of codes open
@pytest.mark.parametrize(("task", "beam"), [("stock", 5), ("norm", 1)])
def test_raw_text_gets_the_translations_of_fairseq_generate(run, request, demo_data, task, beam):
    text = ("--tokenizer", "moses", "--moses-no-escape", "--moses-no-dash-splits", "--bpe", "subword_nmt")
    words = ("-s", "de", "-t", "en", *text, "--bpe-codes", DEMO / "codes.bpe", "--beam", beam)
    generated = request.getfixturevalue(task)(*words, path=DEMO / "checkpoint.pt", data=demo_data)
    scores, expected = zip(*(content.split("\t") for _, _, content in generated.lines("D")))
    default = ("--translate",) if beam == 5 else ("--translate", beam)
    found = rows(run(*default))
    assert [row["source"] for row in found] == LINES
    assert [row["target"] for row in found] == list(expected)
    assert [row["score"] for row in found] == pytest.approx(natural(scores), abs=6e-4)  # three decimals


def test_a_model_of_pieces(data, checkpoint, texts, stock, run):
    """Its text is in pieces, and so are its translations; scores are those of fairseq's H- lines."""
    expected = stock("--beam", 5).lines("H")
    models = ("--path", checkpoint, "--data", data, "--bpe", "none")
    found = rows(run("--translate", lines=[source for source, _ in texts[2]], models=models))
    scores, pieces = zip(*((text.split("\t")) for _, _, text in expected))
    assert [row["target"] for row in found] == [" ".join(line.replace("@@ ", "").split()) for line in pieces]
    assert [row["score"] for row in found] == pytest.approx(natural(scores), abs=6e-4)  # three decimals
    assert any(row["links"] for row in found)


def test_the_links_are_those_of_the_pairs(run, tmp_path):
    translated = run("--translate", models=BOTH)
    targets = written(tmp_path / "target", [row["target"] for row in rows(translated)])
    aligned = rows(run("--target-text", targets, models=BOTH, out="aligned.jsonl"))
    assert aligned == [{**row, "score": None} for row in rows(translated)]
    assert all(row["links"] for row in aligned)
    model = fairseq_norm_plugin.load(DEMO / "checkpoint.pt", reverse_path=DEMO / "checkpoint.en-de.pt")
    assert [json.loads(json.dumps(pair.to_row())) for pair in model.translate(LINES)] == rows(translated)


def test_strings_that_are_not_translated(run, tmp_path):
    """Also after a stop: the translations that are kept have them."""
    lines = ["Wir haben {0} Berichte.", "Siehe https://a.example/b.", "Ja."]
    found = rows(run("--translate", 1, lines=lines))
    assert [row["target"].count(string) for row, string in zip(found, ("{0}", "https://a.example/b"))] == [1, 1]
    assert [row["source"] for row in found] == lines
    targets = written(tmp_path / "target", [found[0]["target"], "See it.", "Yes."])
    done = run("--target-text", targets, "--protect", "Ja", "--protect", "X+", lines=lines, out="aligned.jsonl")
    assert rows(done)[0]["links"] == found[0]["links"]
    assert says(done.err, "each protected string of the source once: 2 (2, ")


@pytest.mark.parametrize("lang", ["de", "en"])
def test_a_text_of_another_language(run, lang):
    """The model of German copies most English words."""
    done = run("--translate", 1, lines=raw_lines(lang)[:10])
    assert says(done.err, "same text … % … source language") == (lang == "en")
    assert len(rows(done)) == 10
