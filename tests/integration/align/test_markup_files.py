"""``norm-align --markup``: files whose source lines have tags, with or without translations."""

import json

import pandas as pd
import pytest

from alignment_eval.transfer.tags import parse_markup
from fairseq_norm_plugin import load
from tests.demo import BOTH, MODEL, raw_lines
from tests.facts import says

GERMAN, ENGLISH = (raw_lines(language)[:8] for language in ("de", "en"))
SOURCES = ['Das <b>Haus</b> war <ph id="1"/>groß.', "<p>Wir <i>sind <b>hier</b></i>.</p>", "", "Ja &amp; <b>nein</b>."]
TARGETS = ["The house was big.", "We are here.", "", "Yes & no."]
MOVED = ['The <b>house</b> was <ph id="1"/>big.', "<p>We <i>are <b>here</b></i>.</p>", "", "Yes &amp; <b>no</b>."]


@pytest.fixture
def run(lines_run):
    """norm-align of lines, by default SOURCES and TARGETS."""
    return lambda *options, **changes: lines_run(*options, **{"sources": SOURCES, "targets": TARGETS, **changes})


def marked(line, number):
    """A line with tags: around each third word, in pairs, and one that stands alone."""
    words = line.split()
    words[:] = [f"<b id='{number}.{k}'>{word}</b>" if k % 3 == 0 else word for k, word in enumerate(words)]
    return f"<p>{' '.join(words)}</p><x/>"


def tags(line):
    return sorted((each.opening, each.closing) for each in parse_markup(line, "xml").elements)


def refused(done, text):
    """One sentence, and nothing is written."""
    assert (done.status, done.lines, done.out) == (1, None, ""), done.err
    return says(done.err.split("\n")[-2], text)


@pytest.mark.parametrize("models", [MODEL, BOTH], ids=["one", "both"])
def test_tags_of_the_source_stand_once_in_the_target(run, tmp_path, models):
    assert run("--markup", "xml", models=models).lines == MOVED
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.signature.json", "source", "target"]
    sources = [marked(line, number) for number, line in enumerate(GERMAN)]
    done = run("--markup", "html", sources=sources, targets=ENGLISH, models=models, out="more")
    assert [parse_markup(line, "html").text for line in done.lines] == ENGLISH
    assert list(map(tags, done.lines)) == list(map(tags, sources))


def test_placeholders_of_a_translation_keep_their_tags(run):
    """Also in another order; without --markup the tags of a text are warned about."""
    sources = ["Noch <b>{days}</b> Tage und <i>{hours}</i> Stunden", "Hallo {name}, wir sind hier."]
    targets = ["{hours} hours and {days} days left", "We are here."]
    done = run("--markup", "html", sources=sources, targets=targets)
    assert done.lines == ["<i>{hours}</i> hours and <b>{days}</b> days left", targets[1]]
    assert says(done.err, "each protected string of the source once: 1 (2) … {name}")
    assert load("demo").transfer_markup(sources, targets, "html") == done.lines
    assert says(run(sources=sources, targets=targets, out="plain").err, "the text has tags, which count as words")


def test_text_in_subwords(run):
    """Words that are cut stand at other places in the text that the model reads."""
    options = ("--markup", "xml", "--tokenizer", "none", "--bpe", "none")
    done = run(*options, sources=["das <b>haus</b> war groß ."], targets=["the house was big ."])
    assert done.lines == ["the <b>house</b> was big ."]
    cut = run(*options, sources=["das <b>ha@@ us</b> war groß ."], targets=["the house was big ."], out="cut")
    assert refused(cut, "in subwords with tags")
    assert run(*options, sources=["ha@@ us ."], targets=["house ."], out="bare").lines == ["house ."]


def test_links_and_tags_of_one_run(run, tmp_path):
    """The links are those of the texts without tags."""
    plain = run("--confidences", sources=["Das Haus war groß."], targets=TARGETS[:1], out="plain.jsonl")
    both = run("--markup", "xml", sources=SOURCES[:1], targets=TARGETS[:1], out="both.jsonl")
    assert json.loads(both.lines[0]) == json.loads(plain.lines[0]) | {"marked": MOVED[0]}
    run("--markup", "xml", sources=SOURCES[:1], targets=TARGETS[:1], out="both.parquet")
    assert pd.read_parquet(tmp_path / "both.parquet")["marked"].to_list() == MOVED[:1]
    (pair,) = load("demo", reverse_path="none").align_markup(SOURCES[:1], TARGETS[:1])
    assert pair.to_row() == json.loads(both.lines[0])


def test_the_model_never_sees_a_tag(run):
    sources = [marked(line, number) for number, line in enumerate(GERMAN)]
    with_tags = run("--markup", "xml", "--translate", 2, sources=sources, targets=None)
    without = run("--markup", "xml", "--translate", 2, sources=GERMAN, targets=None, out="plain")
    assert [parse_markup(line, "xml").text for line in with_tags.lines] == without.lines
    assert list(map(tags, with_tags.lines)) == list(map(tags, sources))


def test_standard_output(run, tmp_path):
    options = ("--markup", "xml", "--translate", 2)
    file = run(*options, targets=None)
    assert run(*options, targets=None, out="-").out == "".join(f"{line}\n" for line in file.lines)
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out", "out.signature.json"]


@pytest.mark.parametrize(
    ("line", "translate", "text"),
    [
        ("<b>offen", (), "source:2: found <b> without an end tag"),
        ("a &nbsp; b", ("--translate", 1), "source:2: found undefined entity, '&nbsp; b'"),
    ],
    ids=["given", "translated"],
)
def test_damaged_markup_is_named_by_file_and_line(run, tmp_path, line, translate, text):
    done = run("--markup", "xml", *translate, sources=["ja", line], targets=None if translate else ["yes", "no"])
    assert refused(done, text)
    assert not list(tmp_path.glob("out*"))


def test_damaged_lines_are_written_without_tags_on_request(run):
    sources = [SOURCES[0], "<b>Ja", "Ja <i>und</b> <br> nein &#10; hier", *SOURCES[1:]]
    targets = [TARGETS[0], "Yes <3", "Yes & no", *TARGETS[1:]]
    done = run("--markup", "xml", "--force", sources=sources, targets=targets)
    assert done.lines == [MOVED[0], "Yes &lt;3", "Yes &amp; no", *MOVED[1:]]
    assert says(done.err, "lines written without tags: 2 (2, 3); the first is … source:2: found <b> without an end tag")
    done = run("--markup", "xml", "--force", "--translate", 2, sources=sources, targets=None, out="translated")
    assert [tags(line) for line in done.lines] == [tags(line) if line in SOURCES else [] for line in sources]


def test_tags_in_the_translation(run):
    targets = [TARGETS[0], "We <b>are</b> here.", *TARGETS[2:]]
    assert refused(run("--markup", "xml", targets=targets), "source:2: … <b>")
    done = run("--markup", "xml", "--force", targets=targets, out="kept")
    assert done.lines == [MOVED[0], "We &lt;b&gt;are&lt;/b&gt; here.", *MOVED[2:]]


def test_a_long_line(run):
    """As translated text, and as text that is much longer than a model takes."""
    long = "das <b>haus</b> ist alt . " * 250
    sources, targets = ["<i>ja</i>", long, "<i>ja</i>"], ["yes", "the house is old . " * 250, "yes"]
    text = "source:2: found a line with tags that is longer than 1024 tokens; cut it into sentences"
    assert refused(run("--markup", "xml", sources=sources, targets=targets), text)
    done = run("--markup", "xml", "--force", sources=sources, targets=targets, out="kept")
    assert done.lines == ["<i>yes</i>", targets[1], "<i>yes</i>"]
    assert refused(run("--markup", "xml", "--translate", 1, sources=sources, targets=None, out="refused"), text)
    done = run("--markup", "xml", "--translate", 1, "--force", sources=sources, targets=None, out="translated")
    assert done.lines[1] == ""
    assert says(done.err, "lines written without tags: 1")
    untagged = run("--markup", "xml", sources=["ja " * 1100], targets=["yes " * 1100], out="untagged")
    assert untagged.lines == ["yes " * 1100]


def test_what_is_not_translated(run):
    sources = ["Das <code>haus(x)</code> ist <b>{0}</b> &amp; alt.", "Wir sind <q>hier</q>."]
    lines = run("--markup", "xml", "--translate", 1, "--opaque", "q", sources=sources, targets=None).lines
    assert [lines[0].count(string) for string in ("<code>haus(x)</code>", "{0}")] == [1, 1]
    assert "<q>hier</q>" in lines[1]
    done = run("--markup", "xml", "--translate", 1, "--protect", "none", sources=sources, targets=None, out="all")
    assert "<code>haus(x)</code>" not in done.lines[0]
