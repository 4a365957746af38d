"""``norm-align --markup``: files whose source lines have tags, with or without translations."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from alignment_eval.transfer.markup import parse_markup
from fairseq_norm_plugin.align.cli import main
from fairseq_norm_plugin.aligner.direction import Direction
from tests.facts import says
from tests.integration.align.raw_demo import BOTH, MODEL, raw_lines, written

GERMAN, ENGLISH = (raw_lines(language)[:20] for language in ("de", "en"))
SOURCES = ['Das <b>Haus</b> war <ph id="1"/>groß.', "<p>Wir <i>sind <b>hier</b></i>.</p>", "", "Ja &amp; <b>nein</b>."]
TARGETS = ["The house was big.", "We are here.", "", "Yes & no."]
MOVED = ['The <b>house</b> was <ph id="1"/>big.', "<p>We <i>are <b>here</b></i>.</p>", "", "Yes &amp; <b>no</b>."]


@pytest.fixture
def run(tmp_path, capsys):
    """norm-align of lines in this process: (status, lines or None, stdout, last line of stderr, stderr)."""

    def start(*options, sources=SOURCES, targets=TARGETS, models=MODEL, out="out"):
        words = [*models, "--source-text", written(tmp_path / "source", sources), "--cpu"]
        words += [] if targets is None else ["--target-text", written(tmp_path / "target", targets)]
        out = out if out == "-" else tmp_path / out
        capsys.readouterr()
        status = main([str(word) for word in (*words, "-o", out, *options)])
        printed = capsys.readouterr()
        lines = out.read_text("utf-8").split("\n")[:-1] if out != "-" and out.exists() else None
        return SimpleNamespace(status=status, lines=lines, out=printed.out, err=printed.err)

    return start


def marked(line, number):
    """A line with tags: around each third word, in pairs, and one that stands alone."""
    words = line.split()
    words[:] = [f"<b id='{number}.{k}'>{word}</b>" if k % 3 == 0 else word for k, word in enumerate(words)]
    return f"<p>{' '.join(words)}</p><x/>"


def tags(line, syntax="xml"):
    return sorted((each.opening, each.closing) for each in parse_markup(line, syntax).elements)


def refused(done, text):
    """One sentence, and nothing is written."""
    assert (done.status, done.lines, done.out) == (1, None, ""), done.err
    return says(done.err.split("\n")[-2], text)


@pytest.mark.parametrize("models", [MODEL, BOTH], ids=["one", "both"])
def test_tags_of_the_source_stand_once_in_the_target(run, tmp_path, models):
    assert run("--markup", "xml", models=models).lines == MOVED
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source", "target"]
    sources = [marked(line, number) for number, line in enumerate(GERMAN)]
    done = run("--markup", "html", sources=sources, targets=ENGLISH, models=models, out="more")
    assert [parse_markup(line, "html").text for line in done.lines] == ENGLISH
    assert list(map(tags, done.lines)) == list(map(tags, sources))


def test_the_model_never_sees_a_tag(run):
    sources = [marked(line, number) for number, line in enumerate(GERMAN)]
    with_tags = run("--markup", "xml", "--translate", 2, sources=sources, targets=None)
    without = run("--markup", "xml", "--translate", 2, sources=GERMAN, targets=None, out="plain")
    assert [parse_markup(line, "xml").text for line in with_tags.lines] == without.lines
    assert list(map(tags, with_tags.lines)) == list(map(tags, sources))


@pytest.mark.parametrize("targets", [TARGETS, None], ids=["given", "translated"])
def test_standard_output(run, tmp_path, targets):
    options = ("--markup", "xml", *(() if targets else ("--translate", 2)))
    file = run(*options, targets=targets)
    assert run(*options, targets=targets, out="-").out == "".join(f"{line}\n" for line in file.lines)
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out"]


DAMAGED = {
    "<b>offen": "source:2: found <b> without an end tag",
    "<b>a</i>": "source:2: found </i> where <b> is open",
    "<a><b>x</a></b>": "source:2: found </a> where <b> is open",
    "<b>1 & 2</b>": "source:2: found … &amp; for &",
    "<b>1 < 2</b>": "source:2: found … &lt; for <",
    "a &nbsp; b": "source:2: found undefined entity, '&nbsp; b'",
    '<!DOCTYPE x [<!ENTITY a "ha">]>&a;': "source:2: found",
    "a <!-- b": "source:2: found",
    "a\x00b <b>c</b>": "source:2: found",
    "a\x1bb <b>c</b>": "source:2: found",
}


@pytest.mark.parametrize(("line", "text"), DAMAGED.items(), ids=list(map(ascii, DAMAGED)))
@pytest.mark.parametrize("translate", [(), ("--translate", 1)], ids=["given", "translated"])
def test_damaged_markup_is_named_by_file_and_line(run, tmp_path, line, text, translate):
    done = run("--markup", "xml", *translate, sources=["ja", line], targets=None if translate else ["yes", "no"])
    assert refused(done, text)
    assert not list(tmp_path.glob("out*"))


def test_damaged_lines_are_written_without_tags_on_request(run):
    sources = [SOURCES[0], "<b>Ja", "Ja <i>und</b> <br> nein &#10; hier", *SOURCES[1:]]
    targets = [TARGETS[0], "Yes <3", "Yes & no", *TARGETS[1:]]
    done = run("--markup", "xml", "--force", sources=sources, targets=targets)
    assert done.lines == [MOVED[0], "Yes &lt;3", "Yes &amp; no", *MOVED[1:]]
    assert says(done.err, "lines written without tags: 2; the first is … source:2: found <b> without an end tag")
    done = run("--markup", "xml", "--force", "--translate", 2, sources=sources, targets=None, out="translated")
    assert [tags(line) for line in done.lines] == [tags(line) if line in SOURCES else [] for line in sources]


def test_tags_in_the_translation(run):
    targets = [TARGETS[0], "We <b>are</b> here.", *TARGETS[2:]]
    assert refused(run("--markup", "xml", targets=targets), "source:2: found the tag '<b>' in the translation already")
    done = run("--markup", "xml", "--force", targets=targets, out="kept")
    assert done.lines == [MOVED[0], "We &lt;b&gt;are&lt;/b&gt; here.", *MOVED[2:]]


def test_a_long_line(run):
    """As translated text, and as text that is much longer than a model takes."""
    long = "das <b>haus</b> ist alt . " * 4500
    assert len(long) > 100_000
    sources, targets = ["<i>ja</i>", long, "<i>ja</i>"], ["yes", "the house is old . " * 4500, "yes"]
    text = "source:2: found 22500 words and marks … at most 2000; cut it into sentences"
    assert refused(run("--markup", "xml", sources=sources, targets=targets), text)
    done = run("--markup", "xml", "--force", sources=sources, targets=targets, out="kept")
    assert done.lines == ["<i>yes</i>", targets[1], "<i>yes</i>"]
    untagged = run("--markup", "xml", sources=["ja " * 40_000], targets=["yes " * 40_000], out="untagged")
    assert untagged.lines == ["yes " * 40_000]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Das\t<b>Haus</b>", "The\thouse", "The\t<b>house</b>"),
        ("<b>Ja</b>", "", "<b></b>"),
        ("<b></b>", "Yes", "<b></b>Yes"),
        ("", "Yes <", "Yes &lt;"),
        ("<b>ja\u2028</b>", "yes\u2028", "<b>yes</b>\u2028"),
        ("<![CDATA[<b>]]><i>ja</i>", "<b>yes", None),
        ("<b>\u202eja\u202c</b>", "\u202eyes\u202c", None),
        ("<!-- ja --><?p ja?>ja", "yes", "<!-- ja --><?p ja?>yes"),
    ],
)
def test_odd_lines(run, source, target, expected):
    (line,) = run("--markup", "xml", sources=[source], targets=[target]).lines
    assert parse_markup(line, "xml").text == target
    assert tags(line) == tags(source)
    assert line == (expected or line)


def test_html_of_a_page(run):
    sources = ["<!DOCTYPE html>", "<script>if (1 < 2) x()</script>", "Ja<BR>nein", "<img src=x alt='a > b'>Ja &copy;"]
    targets = ["", "", "Yes no", "Yes ©"]
    done = run("--markup", "html", sources=sources, targets=targets)
    assert done.lines[:2] == sources[:2]
    assert [tags(line, "html") for line in done.lines] == [tags(line, "html") for line in sources]


def test_a_stopped_run_is_continued(run, tmp_path, monkeypatch):
    options = ("--markup", "xml", "--window", 4)
    given = {"sources": [marked(line, k) for k, line in enumerate(GERMAN)], "targets": ENGLISH}
    whole = run(*options, **given, out="whole")
    maps = Direction.maps

    def stopping(self, pairs, *what):
        if 9 in pairs:
            raise KeyboardInterrupt
        return maps(self, pairs, *what)

    monkeypatch.setattr(Direction, "maps", stopping)
    assert run(*options, **given).status == 130
    monkeypatch.setattr(Direction, "maps", maps)
    other = run("--markup", "html", "--window", 4, "--resume", **given)
    assert (other.status, says(other.err, "output of another run")) == (1, True)
    assert run(*options, "--resume", **given).lines == whole.lines
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out"]


@pytest.mark.parametrize(
    ("options", "out", "text"),
    [
        (("--markup", "xml"), "out.jsonl", "--markup writes the target text"),
        (("--markup", "xml", "--confidences"), "out", "--confidences"),
    ],
    ids=str,
)
def test_bad_usage(run, tmp_path, options, out, text):
    done = run(*options, out=out)
    assert (done.status, done.err.count("\n")) == (2, 1), done.err
    assert says(done.err, text), done.err
