"""Formats of alignment files: each against a slow obvious parser, round trips, and bad lines.

tests/integration/test_fuzz_readers.py reads damaged files.
"""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.links.files import ReadOptions, read_gold, read_hypothesis
from alignment_eval.links.formats import FORMATS, GoldSentence, Tokens, detect_format
from alignment_eval.reading import TextFile
from tests.eval.links.samples import written
from tests.facts import facts


def read(path):
    """Read a file from 0, as it stands."""
    return read_hypothesis(path, ReadOptions("0-unused", allow_possible=True, warn=lambda message: None))


def parsed(text, format_):
    """The sentences of a text, read from 0."""
    lines = enumerate(text.encode("utf-8", "replace").split(b"\n")[:-1], 1)
    return list(FORMATS[format_].parse(lines, "x", Tokens(), True))


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("1 1 1 S\n", "naacl"),
        ("1 2\n", "pharaoh"),
        ("2024-01-02 | INFO | loading\nS-0\ta b\nT-0\tc\nH-0\t-0.5\tc\n", "fairseq"),
        (" ||| \n", "opennmt"),
    ],
)
def test_detected_format(text, format_):
    assert detect_format(text.encode()) == format_


A3 = "# Sentence pair (1) source length 2 target length 2\na house\nNULL ({ }) das ({ 2 1 }) haus ({ })\n"
BAD = [
    ("talp", "0-0\n1-1 2-x\n", "x.talp:2: '2-x' … i-j … ipj … 1000000"),
    ("giza", A3.replace("NULL ({ })", "NULL"), "x.talp:3: expected three lines … found 'NULL das"),
    ("giza", A3.replace("2 1", "0 1"), "x.talp:3: a link beyond the 2 target words of line 2"),
    ("giza", A3 * 2, "x.talp:4: duplicate sentence pair 1"),
    ("giza", A3.replace("(1)", "(2)"), "x.talp: sentence pair 1 is missing … there is 2"),
    ("simalign", "0\t0-0\n2\t0-0\n", "x.talp:2: … number 1, … '2\\t0-0'"),
    ("simalign", "2\t0-0\n", "x.talp:1: … number 0 or 1, … '2\\t0-0'"),
    ("scored", "0-0:1-.5\n", "x.talp:1: '0-0:1-.5' is not a link"),
    ("fast_align", "0-0 ||| -1.5\n0-0\n", "x.talp:2: expected |||"),
    ("opennmt", "ein ||| Rohr ||| 0-0\n1-1\n", "x.talp:2: expected ||| between a translation and the links"),
    ("scored", "0-0:1\n1-1:nan\n", "x.talp:2: '1-1:nan' … finite number"),
    ("fast_align", "0 ||| das haus ||| 0-0 1-1 ||| F0= -1 ||| -1\n", "x.talp:1: … n-best list"),
    ("opennmt", "0 ||| das haus ||| LM0= -1 ||| -1 ||| 0-0 1-1\n", "x.talp:1: … n-best list"),
    ("pharaoh", '{"source": "a", "links": [[0, 0]]}\n', "x.talp:1: … a line of JSON … FILE.pharaoh"),
    ("pharaoh", "1-1:0.25\n", "x.talp:1: '1-1:0.25' has a score"),
    ("scored", "\n1-1\n", "x.talp:2: '1-1' … no score … i-j:p"),
    ("talp", "0-0\n0-0 1-1\t2-2\n", "x.talp:2: '0-0 1-1\\t2-2' has several columns … blanks … cut -f … ipj"),
    ("simalign", "0\t0-0\t1-1\n", "x.talp:1: … several columns … cut -f"),
    ("talp", "der hund\tthe dog\t0-0 1-1\n", "x.talp:1: … several columns … cut -f"),
    ("talp", "s1\t0-0\n", "x.talp:1: … several columns … cut -f"),
    ("talp", "s1 0-0 1-1\n", "x.talp:1: … cut -d ' ' -f 2-"),
    ("talp", "sentence\ti\tj\n1 1 1\n", "x.talp:1: … a header … sed 1d"),
    *(("talp", f"{line}\n", "x.talp:1: … NAACL … S, P") for line in ("1 1 1 sure", "1\t1\t1\tpossible", "s1 1 1 S")),
    ("talp", "1,1,1,S\n", "x.talp:1: … NAACL"),
    ("talp", "0-0, 1-1\n", "x.talp:1: … commas … tr"),
    ("pharaoh", "1-1\n1-1 2p2\n", "x.talp:2: … possible link (p)"),
    ("naacl", "1 1 1\n\n1 1\n", "x.talp:3: … 'sentence i j [S|P] [confidence]' … '1 1'"),
    ("naacl", "1 1 1\n1 1 1 S 1 P\n", "x.talp:2: … '1 1 1 S 1 P'"),
    ("naacl", "1 1 1\n0 1 1\n", "x.talp:2: … counted from 1, found '0 1 1'"),
    ("fairseq", "1-1\n", "x.talp: … no A- lines … --print-alignment hard"),
    ("fairseq", "S-0\ta\nA-x\t0-0\n", "x.talp:2: … A-<id> … 'A-x\\t0-0'"),
    ("fairseq", "A-0\t0.25,0.75 0.5,0.5\n", "x.talp:1: '0.25,0.75' … weights … --print-alignment hard"),
    ("fairseq", "A-0\t0-0\nA-3\t0-0\nA-1\t\n", "sentence 2 is missing … there is 3 … --skip-invalid"),
    ("fairseq", "A-0\t\nA-1\t\nlog\nA-0\t\n", "x.talp:4: … duplicate A-0"),
]


@pytest.mark.parametrize(("format_", "text", "message"), BAD)
def test_bad_lines(tmp_path, format_, text, message):
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=facts(message)):
        list(FORMATS[format_].parse(TextFile(path).lines(), str(path), Tokens(), format_ == "talp"))


def test_gold_is_neither_output_of_fairseq_nor_scored(tmp_path):
    for text, looks in (("A-0\t0-0\n", "format fairseq"), ("0-0:0.5\n", "format scored")):
        with pytest.raises(InputError, match=facts(f"{looks} … talp, naacl, simalign … exchanged")):
            read_gold(written(tmp_path, text))


# near misses are likely in this alphabet
TEXTS = st.one_of(
    st.text(alphabet="019-p? \n\t", max_size=40),
    st.text(alphabet="01-p SPA\n\r\t.e:,", max_size=40),
    st.lists(st.sampled_from(["1 1 1", "1-1", "0p2", "A-0\t0-0", "A-1", "S-0\tx", "", " ", "-"])).map("\n".join),
    st.text(alphabet="01-:.e+ \n", max_size=40),
    st.lists(st.sampled_from(["0-1:0.5", "1-0:1e-7", "2-2:-3", "1-1", "1:1", "\n", "1.2.3", "0-0:"])).map(" ".join),
    st.text(max_size=20),
)


def slow(lines, scored):
    """Token by token; None if one is no link."""
    sentences = []
    for line in lines:
        sure = set()
        confidence = {}
        if "\t" in line.strip():
            return None
        for token in filter(None, re.split(r"[ \t\r\v\f]+", line)):
            number = r":([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)" if scored else "()"
            match = re.fullmatch(rf"(\d+)([-p?])(\d+){number}", token, re.ASCII | re.IGNORECASE)
            if match is None or match[2] == "P" or max(int(match[1]), int(match[3])) > 999_999:
                return None
            value = float(match[4] or 0)
            if math.isinf(value):
                return None
            link = int(match[1]), int(match[3])
            confidence[link] = max(value, confidence.get(link, value))
            sure |= {link} if match[2] == "-" else set()
        sentences.append(GoldSentence(frozenset(sure), frozenset(confidence), confidence if scored else None))
    return sentences


@pytest.mark.parametrize("scored", [False, True])
@given(text=TEXTS)
def test_equals_the_slow_parser(scored, text):
    expected = slow(f"{text}\n".encode("utf-8", "replace").decode().split("\n")[:-1], scored)
    try:
        sentences = parsed(f"{text}\n", "scored" if scored else "talp")
    except InputError:
        assert expected is None
    else:
        assert sentences == expected
        assert [sentence.confidence for sentence in sentences] == [sentence.confidence for sentence in expected]


INDICES = st.integers(0, 30) | st.integers(0, 999_998)
ROWS = st.dictionaries(
    st.tuples(st.integers(0, 4), INDICES, INDICES),
    st.tuples(st.booleans(), st.floats(allow_nan=False, allow_infinity=False)),
    max_size=15,
)


def corpus(rows, format_):
    """Links of five sentences, with what the format holds; the last sentence has a link."""
    sentences = []
    for n in range(5):
        cells = {(i, j): what for (m, i, j), what in rows.items() if m == n} or (
            {(0, 0): (False, 1.0)} if n == 4 else {}
        )
        plain = format_ in ("pharaoh", "fairseq")
        confidence = {link: p for link, (_, p) in cells.items()} if format_ in ("naacl", "scored") else None
        sure = frozenset(link for link, (only_possible, _) in cells.items() if plain or not only_possible)
        sentences.append(GoldSentence(sure, frozenset(cells), confidence))
    return sentences


@pytest.mark.parametrize("format_", [name for name, known in FORMATS.items() if known.write])
@given(rows=ROWS)
def test_what_is_written_is_read_as_it_was(format_, rows):
    expected = corpus(rows, format_)
    lines = (line for n, sentence in enumerate(expected) for line in FORMATS[format_].write(n, sentence, 0))
    found = parsed("".join(f"{line}\n" for line in lines), format_)
    assert found == expected
    assert [sentence.confidence for sentence in found] == [sentence.confidence for sentence in expected]
