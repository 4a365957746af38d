"""Lines that are paragraphs: cut into sentences, translated or aligned, and joined again."""

import itertools
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import fairseq_norm_plugin
from alignment_eval.errors import AlignmentWarning, InputError, UsageError
from alignment_eval.files import fields_of
from alignment_eval.profiles.chosen import AlignmentOptions
from fairseq_norm_plugin.model.aligner import Aligner, choose
from fairseq_norm_plugin.text.pair import SentencePair, TextPipeline
from tests.demo import BOTH

SOURCES = [
    "Das Haus ist alt.  Ich danke Ihnen, Herr Präsident! Wir stimmen heute ab.",
    "Die Frau liest ein Buch.",
    "Es regnet am 3. Oktober. Wir bleiben hier.",
]
TARGETS = [
    "The house is old. I thank you, Mr President! We are voting today.",
    "The woman reads a book.",
    "It is raining on 3 October, and we are staying here.",
]
#: The sentences of the first pair, with the white space after them.
PARTS = [
    ["Das Haus ist alt.  ", "Ich danke Ihnen, Herr Präsident! ", "Wir stimmen heute ab."],
    ["The house is old. ", "I thank you, Mr President! ", "We are voting today."],
]
#: A line longer than the models take.
LONG = "Ich danke Ihnen, <b>Herr</b> Präsident! <i>Das Haus ist alt. Wir</i> stimmen heute ab. " * 70


@pytest.fixture(scope="module")
def model():
    return fairseq_norm_plugin.load("demo")


@pytest.fixture
def run(lines_run):
    """norm-align of paragraphs with both demo models."""

    def start(*options, sources=SOURCES, **more):
        return lines_run("--split-sentences", *options, sources=sources, models=BOTH, **more)

    return start


def union(parts):
    """The links of a line, with their confidences but for the noise of batches, from those of its sentences."""
    links, source, target = {}, 0, 0
    for part in parts:
        links |= {(i + source, j + target): part.confidences[i, j] for i, j in part.links}
        source, target = source + len(part.source_spans), target + len(part.target_spans)
    return pytest.approx(links, abs=1e-6)


def test_a_line_is_the_union_of_its_sentences(model):
    whole, other, _ = model.align(SOURCES, TARGETS, split_sentences=True)
    parts = model.align(*PARTS)
    assert whole.confidences == union(parts)
    assert whole.links == sorted(whole.confidences)
    assert (whole.source, whole.target) == (SOURCES[0], TARGETS[0])
    for side in ("source_words", "target_words"):
        assert getattr(whole, side) == sum((getattr(part, side) for part in parts), ())
    assert whole.source_words[4:6] == (".", "Ich")
    assert other.confidences == union([model.align(SOURCES[1], TARGETS[1])])


def test_scores_are_of_the_whole_line(model):
    options = {"scores": True, "source_contribution": True}
    (whole,) = model.align(SOURCES[:1], TARGETS[:1], split_sentences=True, **options)
    parts = [part.scores for part in model.align(*PARTS, **options)]

    def tokens(which):
        pipeline = model.forward.pipelines[which]
        return [len(model.forward.encode_line(pipeline.read(line), which).ids) for line in PARTS[which]]

    for name, which in (("log_prob", 1), ("reverse_log_prob", 0), ("source_contribution", 1)):
        mean = np.average([getattr(part, name) for part in parts], weights=tokens(which))
        assert getattr(whole.scores, name) == pytest.approx(mean, abs=1e-3)


def test_another_number_of_sentences_is_aligned_whole(model):
    """And the source has two: "3." ends none in German."""
    with pytest.warns(AlignmentWarning, match="different numbers of sentences: 1, aligned whole"):
        *_, uneven = model.align(SOURCES, TARGETS, split_sentences=True)
    assert uneven.confidences == union([model.align(SOURCES[2], TARGETS[2])])
    with pytest.warns(AlignmentWarning, match="different numbers of sentences: 1, aligned whole"):
        model.align(SOURCES[2], TARGETS[2], split_sentences=True)


def test_given_words(model):
    words = [[SOURCES[0].split()], [PARTS[0][k].split() for k in range(3)]]
    (whole,) = model.align(SOURCES[:1], TARGETS[:1], source_words=words[0], split_sentences=True)
    assert list(whole.source_words) == SOURCES[0].split()
    assert whole.confidences == union(model.align(*PARTS, source_words=words[1]))
    across = [["Das", "Haus", "ist", "alt.  Ich", *SOURCES[0].split()[5:]]]
    targets = ["The house is old and I thank you, Mr President! We are voting today."]
    (whole,) = model.align(SOURCES[:1], targets, source_words=across, split_sentences=True)
    assert list(whole.source_words) == across[0]
    assert whole.ok


def test_sentences_are_translated_one_by_one(model):
    whole = model.translate(SOURCES[:1], split_sentences=True)[0]
    parts = model.translate([line.strip() for line in PARTS[0]])
    first, second, third = (part.target for part in parts)
    assert whole.target == f"{first}  {second} {third}"  # two spaces, as in the source
    assert whole.confidences == union(parts)
    lengths = [len(model.forward.encode_line(model.forward.pipelines[1].read(part.target), 1).ids) for part in parts]
    assert whole.score == pytest.approx(
        np.average([part.score for part in parts], weights=lengths), abs=1e-3
    )  # of three decimals


def test_markup_across_a_border(model):
    line = "Ich danke Ihnen, <b>Herr Präsident! Das Haus</b> ist {0} alt."
    (translated,) = model.transfer_markup([line], split_sentences=True)
    assert translated.count("{0}") == 1
    target = "I thank you, Mr President! The house is {0} old."
    (given,) = model.transfer_markup([line], [target], protect="x+", split_sentences=True)
    assert given == "I thank you, <b>Mr President! The house</b> is {0} old."


def test_a_line_longer_than_the_model_takes(run, lines_run):
    longest = {"sources": [LONG, SOURCES[1]], "models": BOTH}
    refused = lines_run("--markup", "xml", "--translate", **longest)
    assert refused.status == 1
    assert "longer than" in refused.err
    done = run("--markup", "xml", "--translate", "--overwrite", sources=longest["sources"])
    assert done.status == 0, done.err
    long, _ = done.lines
    assert [long.count(tag) for tag in ("<b>", "</b>", "<i>", "</i>", "president", "house")] == [70] * 6
    assert long.count("<b>mr</b> president") == 70


def test_outputs_of_the_command(run, model, tmp_path):
    tokens = [tmp_path / side for side in ("tokens.de", "tokens.en")]
    sources, targets = SOURCES[::-1], TARGETS[::-1]  # what the first window shows is counted once
    done = run("--window", 1, "--tokens-out", *tokens, "--scores", sources=sources, targets=targets, out="out.jsonl")
    assert "different numbers of sentences: 1, aligned whole" in done.err
    aligned = model.align(sources, targets, split_sentences=True, scores=True)
    assert list(map(json.loads, done.lines)) == [json.loads(json.dumps(pair.to_row())) for pair in aligned]
    for file, words in zip(tokens, ("source_words", "target_words")):
        assert file.read_text(encoding="utf-8").splitlines() == [" ".join(getattr(pair, words)) for pair in aligned]
    assert "|split:sentencex-" in done.err
    assert fields_of(aligned.signature)["split"].startswith("sentencex-")
    assert "split" not in fields_of(model.align(SOURCES, TARGETS).signature)


@pytest.fixture(scope="module")
def corpus():
    """Thirty pairs of sentences that share words."""
    nouns = {"Haus": "house", "Buch": "book", "Dorf": "village", "Kind": "child", "Meer": "sea"}
    adjectives = {
        "alt": "old",
        "neu": "new",
        "schön": "beautiful",
        "groß": "big",
        "wichtig": "important",
        "gut": "good",
    }
    sources = [f"Das {noun} ist sehr {adjective}." for noun in nouns for adjective in adjectives]
    return sources, [f"The {noun} is very {word}." for noun in nouns.values() for word in adjectives.values()]


def test_a_lexical_table_is_counted_on_sentences(model, corpus):
    alone = model.align(*corpus, table="text", force=True)
    lines = [[" ".join(side[:12]), " ".join(side[12:])] for side in corpus]
    whole = model.align(*lines, table="text", split_sentences=True, force=True)
    assert [pair.confidences for pair in whole] == [union(alone[:12]), union(alone[12:])]


def test_a_lexical_table_does_not_depend_on_windows(model, corpus):
    """It is counted on all sentences of the first lines, however these are read; short sentences come first."""
    ends = [0, 1, 6, 7, 9, 20, 30]
    lines = [[" ".join(side[start:end]) for start, end in itertools.pairwise(ends)] for side in corpus]
    pipelines = model.forward.pipelines_for(split_sentences=True)
    pairs = [SentencePair(*map(TextPipeline.read, pipelines, pair)) for pair in zip(*lines)]
    options = AlignmentOptions(table="text")
    chosen = choose(options, model.both)
    chosen = replace(chosen, table=None, method=replace(chosen.method, table_pairs=4))
    found = []
    for starts in ([0, 4], [0, 1, 3, 4]):
        windows = [(start, pairs[start:end]) for start, end in itertools.pairwise([*starts, len(pairs)])]
        aligner = Aligner(chosen, model.both, options)
        aligner.count(windows[:-1])
        found.append([pair.confidences for window in windows for pair in aligner.align(*window)])
    assert list(map(pytest.approx, found[0])) == found[1]


def test_what_cannot_be_cut(model, monkeypatch):
    pieces = fairseq_norm_plugin.load("demo", tokenizer="none", bpe="none")
    with pytest.raises(UsageError, match="subwords"):
        pieces.align(["a . b ."], ["a . b ."], split_sentences=True)
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(InputError, match="pip install sentencex"):
        model.align(SOURCES, TARGETS, split_sentences=True)
