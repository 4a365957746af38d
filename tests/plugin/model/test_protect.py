"""What is copied from the source of a translation: strings that are not translated, and unknown words."""

import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.model.translator import Translator
from tests.facts import facts
from tests.plugin.model.test_norm_model import DEMO

STRINGS = {
    "Wir haben {anzahl} Vorschläge von %1$s gelesen.": ["{anzahl}", "%1$s"],
    "Schreiben Sie an eva.k@mail.example.org, bitte!": ["eva.k@mail.example.org"],
    "Das Parlament (https://ep.example/x?a=1&b=2) ist hier.": ["https://ep.example/x?a=1&b=2"],
    "Vielen Dank \U0001f600, Herr Präsident!": ["\U0001f600"],
    "Die Seite${x}zahl ist falsch.": ["${x}"],
}


@pytest.fixture(scope="module")
def model():
    return fairseq_norm_plugin.load(DEMO / "checkpoint.pt", reverse_path=DEMO / "checkpoint.en-de.pt")


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


def test_more_strings_and_none(model):
    line = "Die Firma Ab-X hat {0} Häuser."
    assert "Ab-X" in model.translate(line, protect=r"Ab-\w").target
    assert "{0}" in model.translate(line, protect=r"Ab-\w").target
    assert "report" in model.translate("Der report und der Bericht.", protect="report").target  # the model says it, too
    assert model.translate(line, protect="none").target != model.translate(line).target
    with pytest.raises(UsageError, match=facts("protect '(': no regular expression")):
        model.translate([line], protect="(")


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
    monkeypatch.setattr(Translator, "search", lambda self, pairs, beam: dict.fromkeys(pairs, best))
    pair = model.translate("Wir danken Ξενία für den Bericht.")
    assert pair.target == "we thank Ξενία for the report."
    marked = model.transfer_markup(["Wir danken <b>Ξενία</b> für den Bericht."])
    assert marked == ["we thank <b>Ξενία</b> for the report."]


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


def test_lines_that_are_too_long(model):
    long = "<b>Das</b> " + "haus " * 2000
    limit = model.direction.limits[0]
    assert model.translate(["ja", long])[1].status == f"longer than {limit} tokens"
    for targets in (None, ["the " + "house " * 1500]):
        with pytest.raises(InputError, match=facts(f"targets[0]: found a line with tags that is longer than {limit}")):
            model.transfer_markup([long], targets)
    with pytest.raises(InputError, match=facts(f"longer than {limit} tokens")):
        model.translate(long)
