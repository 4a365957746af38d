"""``model.translate``: translations of raw lines, aligned."""

import pytest

import fairseq_norm_plugin
from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.model.translator import Translation, Translator
from tests.facts import facts
from tests.plugin.model.test_norm_model import DEMO

SOURCES = ["Wir sind hier.", "Das Haus, das wir sahen, war groß.", "Ja!", "Die Kommission hat den Bericht angenommen."]
LONG = "das " * 2000


@pytest.fixture(scope="module")
def model():
    return fairseq_norm_plugin.load(DEMO / "checkpoint.pt", reverse_path=DEMO / "checkpoint.en-de.pt")


def test_one_line_is_translated_as_in_a_list(model):
    found = model.translate(SOURCES)
    for alone, pair, source in zip(map(model.translate, SOURCES), found, SOURCES):
        assert pair.source == source
        assert (alone.target, alone.links, alone.target_spans) == (pair.target, pair.links, pair.target_spans)
        assert alone.score == pytest.approx(pair.score, abs=1e-5)
        assert alone.ok
        assert alone.links


def test_the_alignment_is_that_of_source_and_translation(model):
    options = {"table": "none", "source_contribution": True}
    found = model.translate(SOURCES, **options)
    aligned = model.align(SOURCES, [pair.target for pair in found], **options)
    assert (found.scores["source_contribution"] > 0).all()
    assert [{**pair.to_row(), "score": None} for pair in found] == [pair.to_row() for pair in aligned]
    assert found.signature == aligned.signature


def test_lines_that_cannot_be_translated(model, capsys):
    given = ["", SOURCES[0], " \t\u2003", LONG, SOURCES[1]]
    empty, first, blank, long, second = model.translate(iter(given))
    assert [first.to_row(), second.to_row()] == [pair.to_row() for pair in model.translate(SOURCES[:2])]
    for pair, line in ((empty, ""), (blank, " \t\u2003"), (long, LONG)):
        assert (pair.source, pair.target, pair.links, pair.score, pair.ok) == (line, "", [], None, False)
    assert "without links" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["", " ", LONG], ids=["empty", "blank", "long"])
def test_a_single_line_that_cannot_be_translated(model, line):
    with pytest.raises(InputError, match=facts("longer than" if line == LONG else "empty")):
        model.translate(line)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ([], "source: an empty list"),
        (["ja", None], "source[1]: None: expected text"),
        ([b"ja"], "source[0]: b'ja': expected text"),
        (None, "source: None (NoneType): expected a list of lines"),
        (b"ja", "source: b'ja' (bytes): expected a list of lines"),
        ([SOURCES[0], "\ud800"], "source[1]: character 0 is a surrogate"),
    ],
    ids=repr,
)
def test_what_is_not_text(model, source, text):
    with pytest.raises(InputError, match=facts(text)):
        model.translate(source)


def test_bad_options_raise_before_the_work(model, monkeypatch):
    monkeypatch.setattr(Translator, "translate", None)
    for options, text in (
        *(({"beam": beam}, f"beam {beam}: expected") for beam in (0, -1, 1.5, "5", None, True)),
        ({"max_tokens": 0}, "max_tokens 0"),
        ({"table": "text", "rule": "kobayashi2020"}, "a lexical table does not work"),
        ({"beams": 3}, "beams"),
    ):
        with pytest.raises((UsageError, TypeError), match=facts(text)):
            model.translate(SOURCES, **options)


@pytest.mark.parametrize("max_tokens", [1, 20, 4000])
def test_batches_change_no_translation(model, max_tokens):
    done = []
    *found, empty, long = model.translator.translate([*SOURCES, "", LONG], 3, max_tokens, done.append)
    assert [one.text for one in found] == [one.text for one in model.translator.translate(SOURCES, 3, 4000)]
    assert empty == long == Translation()
    assert sum(done) == len(SOURCES) + 2
