"""``translate``, ``transfer_markup`` and ``project`` on the bundled models."""

import pandas as pd
import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.alignment import Alignment
from alignment_eval.errors import AlignmentWarning, InputError, UsageError
from alignment_eval.transfer.pairs import Markup
from fairseq_norm_plugin.model.model import Model
from fairseq_norm_plugin.model.translate import COPY, Translation, translate_lines
from tests.demo import DEMO
from tests.facts import facts

SOURCES = ["Wir sind hier.", "Das Haus, das wir sahen, war groß.", "Ja!", "Die Kommission hat den Bericht angenommen."]
LONG = "das " * 2000


@pytest.fixture(scope="module")
def model():
    return fairseq_norm_plugin.load(DEMO / "checkpoint.pt", reverse_path=DEMO / "checkpoint.en-de.pt")


def test_lines_that_cannot_be_translated(model):
    given = ["", SOURCES[0], " \t\u2003", LONG, SOURCES[1]]
    with pytest.warns(AlignmentWarning, match="no links"):
        empty, first, blank, long, second = model.translate(iter(given))
    assert [first.to_row(), second.to_row()] == [pair.to_row() for pair in model.translate(SOURCES[:2])]
    for pair, line in ((empty, ""), (blank, " \t\u2003"), (long, LONG)):
        assert (pair.source, pair.target, pair.links, pair.score, pair.ok) == (line, "", [], None, False)


@pytest.mark.parametrize("max_tokens", [1, 20, 4000])
def test_batches_change_no_translation(model, max_tokens):
    done = []
    *found, empty, long = model.forward.translate([*SOURCES, "", LONG], 3, max_tokens, done.append)
    assert [one.text for one in found] == [one.text for one in model.forward.translate(SOURCES, 3, 4000)]
    assert empty == long == Translation()
    assert sum(done) == len(SOURCES) + 2


STRINGS = {
    "Wir haben {anzahl} Vorschläge von %1$s gelesen.": ["{anzahl}", "%1$s"],
    "Schreiben Sie an eva.k@mail.example.org, bitte!": ["eva.k@mail.example.org"],
    "Das Parlament (https://ep.example/x?a=1&b=2) ist hier.": ["https://ep.example/x?a=1&b=2"],
    "Vielen Dank \U0001f600, Herr Präsident!": ["\U0001f600"],
    "Die Seite${x}zahl ist falsch.": ["${x}"],
}


def linked_text(pair, source, target):
    """Whether the words of a string are linked to those of its copy, and to nothing else."""
    inside = [
        {word for word, (start, end) in enumerate(spans) if start < at + len(string) and at < end}
        for spans, text, string in ((pair.source_spans, pair.source, source), (pair.target_spans, pair.target, target))
        for at in [text.index(string)]
    ]
    touched = {link for link in pair.links if link[0] in inside[0] or link[1] in inside[1]}
    return {i for i, _ in touched} == inside[0] and {j for _, j in touched} == inside[1]


def test_strings_come_out_once_letter_by_letter_and_are_linked_to_themselves(model):
    for pair, strings in zip(model.translate(list(STRINGS)), STRINGS.values()):
        assert pair.ok
        for string in strings:
            assert pair.target.count(string) == 1
            assert linked_text(pair, string, string)
            assert pair.source_words == tuple(pair.source[a:b] for a, b in pair.source_spans)
    plain = model.translate(["Wir haben Vorschläge von gelesen.", "Wir haben {anzahl} Vorschläge von %1$s gelesen."])
    assert plain[0].target.split() == plain[1].target.replace("{anzahl}", "").replace("%1$s", "").split()


def test_a_line_of_strings_alone(model):
    only, mixed = model.translate(["https://ep.example/x {0}", "ja {0}"])
    assert (only.target, only.ok, linked_text(only, "{0}", "{0}")) == (only.source, True, True)
    assert mixed.target.count("{0}") == 1


def test_copies_in_given_targets(model):
    sources = ["Siehe {0} und %s, bitte.", "Das Haus {a} ist alt."]
    targets = ["See %s and {0}, please.", "The house {b} is old."]
    crossed, changed = model.align(sources, targets, protect="x{9}")
    assert linked_text(crossed, "{0}", "{0}")
    assert linked_text(crossed, "%s", "%s")
    assert changed.links == model.align([sources[1]], [targets[1]])[0].links


def test_unknown_words_are_copied(model, monkeypatch):
    """The search gives ``<unk>`` for a name, twice in a row, as its subwords are."""
    dictionary = model.vocabularies[1].dictionary
    tokens = dictionary.encode_line("we thank <unk> <unk> for the report .", add_if_not_exist=False).long()
    best = {"tokens": tokens, "score": torch.tensor(-1.0)}
    monkeypatch.setattr(Model, "search", lambda self, pairs, beam: dict.fromkeys(pairs, best))
    pair = model.translate("Wir danken Ξενία für den Bericht.")
    assert pair.target == "we thank Ξενία for the report."
    marked = model.transfer_markup(["Wir danken <b>Ξενία</b> für den Bericht."])
    assert marked == ["we thank <b>Ξενία</b> for the report."]


def test_an_unknown_word_without_a_link_is_copied_from_the_largest_share():
    """Of the words, not of null, which comes last."""

    class Unlinked(Alignment):
        word_map = pd.DataFrame([[0.1, 0.3, 0.6]])

    pair = Unlinked("Ξενία Παναγία", COPY, ((0, 5), (6, 13)), ((0, 1),), [])
    (found,) = translate_lines([pair.source], lambda _: [Translation(COPY, -1.0)], lambda *_: [pair], None)
    assert found.text == "Παναγία"


def test_elements_that_are_not_translated(model):
    line = 'Der <code>f(das)</code> Bericht <i translate="no">Haus</i> und <mrk mtype="protected">wir</mrk> &amp; {0}.'
    for syntax in ("xml", "html"):
        (found,) = model.transfer_markup([line], syntax=syntax)
        for string in ("<code>f(das)</code>", '<i translate="no">Haus</i>', '<mrk mtype="protected">wir</mrk>', "{0}"):
            assert found.count(string) == 1
    (found,) = model.transfer_markup(["Das <b>Haus</b> ist <q>alt</q>."], opaque=["q"])
    assert "<q>alt</q>" in found
    with pytest.raises(UsageError, match=facts("opaque 'q': expected names")):
        model.transfer_markup(["ja"], opaque="q")


# Markup


def test_html_has_tags_without_an_end(model):
    assert model.transfer_markup(["Ja.<br> Wir sind hier."], ["Yes. We are here."], "html") == ["Yes.<br> We are here."]
    with pytest.raises(InputError, match=facts("sources[0]: found <br>")):
        model.transfer_markup(["Ja.<br>Nein."], ["Yes. No."])


def test_damaged_lines_without_what_looks_like_a_tag():
    assert Markup("xml").plain("a <b>c &amp; d", keep_going=True) == "a c & d"
    assert Markup("html").plain("x &#10; y <b>", keep_going=True).count("\n") == 0


# Labels


def test_labels_of_words_that_whitespace_separates(model, recwarn):
    labels = [["O", "B-LOC", "O", "O"], ["B-PER", "I-PER", "O", "O", "O"]]
    sources = ["Die Kommission ist hier.", "Herr Präsident, vielen Dank!"]
    targets = ["The Commission is here.", "Mr President, thank you!"]
    found = model.project([labels[0], labels[1][:4]], sources, targets)
    assert found[0] == [("The", "O"), ("Commission", "B-LOC"), ("is", "O"), ("here", "O"), (".", "O")]
    assert [pair for pair in found[1] if pair[1] != "O"] == [("Mr", "B-PER"), ("President", "I-PER")]
    assert not any("counterpart" in str(warning.message) for warning in recwarn)


def test_spans_without_a_counterpart_are_counted(model):
    labels, sources = [["B-X"], ["B-X", "B-Y", "O"]], ["ja", "wir sind hier"]
    with pytest.warns(AlignmentWarning, match="1 of 3 spans have no counterpart"):
        found = model.project(labels, sources, ["", "we are here"])
    assert found == [[], [("we", "B-X"), ("are", "B-Y"), ("here", "O")]]
