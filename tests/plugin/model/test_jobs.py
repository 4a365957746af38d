"""``model.transfer_markup`` and ``model.project`` on the bundled models."""

import pytest

import fairseq_norm_plugin
from alignment_eval.errors import InputError, UsageError
from alignment_eval.transfer.tags import parse_markup
from fairseq_norm_plugin.model.jobs import Markup
from tests.facts import facts, says
from tests.plugin.model.test_norm_model import DEMO


@pytest.fixture(scope="module")
def model():
    return fairseq_norm_plugin.load(DEMO / "checkpoint.pt", reverse_path=DEMO / "checkpoint.en-de.pt")


# Markup

MARKED = ['Das <b>Haus</b> war <ph id="1"/>groß.', "<p>Wir <i>sind <b>hier</b></i>.</p>", "Ja &amp; nein.", ""]
ENGLISH = ["The house was big.", "We are here.", "Yes & no.", ""]


def test_markup_onto_given_translations(model):
    found = model.transfer_markup(MARKED, ENGLISH)
    assert found[:2] == ['The <b>house</b> was <ph id="1"/>big.', "<p>We <i>are <b>here</b></i>.</p>"]
    assert found[2:] == ["Yes &amp; no.", ""]


def test_the_model_translates_what_is_without_tags(model):
    plain = ["Das Haus war groß.", "Wir sind hier.", "Ja & nein.", ""]
    expected = model.translate(plain, beam=2)
    for syntax in ("xml", "html"):
        found = model.transfer_markup(MARKED, syntax=syntax, beam=2)
        assert [parse_markup(line, syntax).text for line in found] == [pair.target for pair in expected]
        for line, given in zip(found, MARKED):
            tags = sorted(element.opening for element in parse_markup(given, syntax).elements)
            assert sorted(element.opening for element in parse_markup(line, syntax).elements) == tags


def test_html_has_tags_without_an_end(model):
    assert model.transfer_markup(["Ja.<br> Wir sind hier."], ["Yes. We are here."], "html") == ["Yes.<br> We are here."]
    with pytest.raises(InputError, match=facts("sources[0]: found <br>")):
        model.transfer_markup(["Ja.<br>Nein."], ["Yes. No."])


@pytest.mark.parametrize(
    ("sources", "targets", "text"),
    [
        (["ja", "<b>ja"], ["yes", "yes"], "sources[1]: found <b> without an end tag"),
        (["<b>ja</b>"], ["<b>yes</b>"], "targets[0]: found the tag '<b>' in the translation already"),
        (["<b>ja</b>"], ["yes", "no"], "1 sources, but 2 targets"),
        (["<b>ja</b>", None], ["yes", "no"], "sources[1]: None: expected text"),
        ("<b>ja</b>", "yes", "sources: '<b>ja</b>' (str): expected a list of lines"),
    ],
    ids=repr,
)
def test_bad_markup_is_named(model, sources, targets, text):
    with pytest.raises(InputError, match=facts(text)):
        model.transfer_markup(sources, targets)


def test_an_unknown_syntax(model):
    for sources in (["ja"], []):
        with pytest.raises(UsageError, match=facts("syntax markdown: choose xml or html")):
            model.transfer_markup(sources, ["yes"], "markdown")


def test_damaged_lines_without_what_looks_like_a_tag():
    assert Markup("xml").plain("a <b>c &amp; d", keep_going=True) == "a c & d"
    assert Markup("xml").plain("1 < 2 <br> und", keep_going=True) == "1 < 2  und"
    assert Markup("html").plain("x &#10; y <b>", keep_going=True).count("\n") == 0


# Labels


def test_labels_of_words_that_blanks_separate(model):
    labels = [["O", "B-LOC", "O", "O"], ["B-PER", "I-PER", "O", "O", "O"]]
    sources = ["Die Kommission ist hier.", "Herr Präsident, vielen Dank!"]
    targets = ["The Commission is here.", "Mr President, thank you!"]
    found = model.project([labels[0], labels[1][:4]], sources, targets)
    assert found[0] == [("The", "O"), ("Commission", "B-LOC"), ("is", "O"), ("here", "O"), (".", "O")]
    assert [pair for pair in found[1] if pair[1] != "O"] == [("Mr", "B-PER"), ("President", "I-PER")]


def test_labels_go_with_the_words_of_the_text_as_it_is(model):
    """Punctuation is part of its word where blanks alone separate words; it stays so on the source side."""
    (found,) = model.project([["B-X", "O"]], ["Ja, hier."], ["Yes, here."])
    assert ("Yes", "B-X") in found


@pytest.mark.parametrize(
    ("labels", "sources", "targets", "text"),
    [
        ([["O"]], ["ja ."], ["yes ."], "labels[0]: 1 labels, but the source has 2 words"),
        ([["O", "O"]], ["ja .", "ja ."], ["yes .", "yes ."], "labels of 1 sentences, but 2 sources"),
        ([["O", "X"]], ["ja ."], ["yes ."], "labels[0]: label 'X': expected O, B-TYPE or I-TYPE"),
        ([["O", 3]], ["ja ."], ["yes ."], "labels[0]: ['O', 3]: expected a list of labels"),
        (["OO"], ["ja ."], ["yes ."], "labels[0]: 'OO': expected a list of labels"),
        ([["O", "O"]], ["ja ."], ["yes .", "no ."], "1 sources, but 2 targets"),
    ],
    ids=repr,
)
def test_bad_labels_are_named(model, labels, sources, targets, text):
    with pytest.raises(InputError, match=facts(text)):
        model.project(labels, sources, targets)


def test_spans_without_a_counterpart_are_counted(model, capsys):
    labels, sources = [["B-X"], ["B-X", "B-Y", "O"]], ["ja", "wir sind hier"]
    assert model.project(labels, sources, ["", "we are here"]) == [[], [("we", "B-X"), ("are", "B-Y"), ("here", "O")]]
    assert says(capsys.readouterr().err, "warning: 1 of 3 spans have no counterpart")


def test_empty_pairs_keep_their_place(model):
    assert model.project([[], ["B-X"]], ["", "ja"], ["x", "yes"]) == [[("x", "O")], [("yes", "B-X")]]
