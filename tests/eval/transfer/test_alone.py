"""What stands alone besides tags: strings that are not translated, marks of notes; and the blanks of tags that do."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_eval.transfer.markup import transfer_markup
from alignment_eval.transfer.pieces import PROTECTED, protected_strings
from alignment_eval.transfer.tags import parse_markup, protect

MANY = settings(max_examples=200)
WORDS = st.sampled_from(["Haus", "rot", "Bericht", "Wien", "und", "gestern"])
ICU = "{n, plural, offset:1 =0 {kein 'l'} one {# x '{'} other {{g, select, male {er} other {{n} y}}}}"
#: Each line is one string.
STRINGS = rf"""
%d%%
%1$s
%-10.2f
%(n)s
%+.*f
%%
%name%
{{0}}
{{0}}.{{1}}
{{0}}{{1}}
{{a}}/{{b}}x{{c}}
{{0}}.txt
%s%
{{name!r:>10}}
{{:%Y-%m-%d %H:%M}}
{{:{{w}}.{{p}}f}}
{{{{ a.b | f }}}}
{{% if x > 1 %}}
${{a ? {{y}} : 'x'}}
$user
{ICU}
{{n, selectordinal, one {{#st}} other {{#th}}}}
{{price, number, ::currency/EUR}}
{{0,choice,0#a|1#b c}}
{{ $n -> [one] a *[other] b }}
https://a.org/b[1]?c={{d}}
http://[::1]/(e(f))
a.b@c.org
&nbsp;
[^1]
""".strip().split("\n")


def spans(text):
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def strings_of(line, stated=None):
    return [line[slice(*span)] for span in protected_strings(stated).spans(line)]


def moved(marked, order):
    """Onto its own words in another order."""
    places = spans(marked.text)
    order = [k for k in order if k < len(places)]
    target = " ".join(marked.text[slice(*places[k])] for k in order)
    return transfer_markup(marked, places, target, spans(target), {(i, j) for j, i in enumerate(order)})


def characters(text):
    return Counter("".join(re.sub(r"<[^>]*>", "", text).split()))


@MANY
@given(st.lists(WORDS | st.sampled_from(STRINGS), min_size=1, max_size=8), st.permutations(range(9)))
def test_each_string_comes_out_once_and_nothing_is_lost(parts, order):
    line = f"{' '.join(parts)}."
    output = moved(protect(line), order)
    assert characters(output) == characters(line)
    assert all(output.count(part) == line.count(part) for part in parts if part in STRINGS)


@pytest.mark.parametrize(
    ("line", "strings"),
    [
        ("%d%dpx %s_%s, %dMB", ["%d", "%d", "%s", "%s", "%d"]),
        ("10%ige L\u00f6sung, 5 % der, 20%", []),
        ("{Wort Text} {Achtung: das} {a, b c} {x", []),
        ("l'{x}' {a, plural, {b}", ["{x}", "{b}"]),
        ("kostet $100.50, $1 und US$", ["$1"]),
        ("AT&T; *kursiv* Kolleg*innen [Text]", []),
        ("Siehe https://a.org/b[1]. (www.c.de/d)", ["https://a.org/b[1]", "www.c.de/d"]),
        (r"Zeile\nZwei C:\neu", [r"\n"]),
        ("Wort[3] m\u00b2 a\u2020", ["[3]", "\u00b2", "\u2020"]),
    ],
)
def test_what_is_a_string(line, strings):
    assert strings_of(line) == strings


@pytest.mark.parametrize(
    ("line", "stated", "strings"),
    [
        ("aa {0} ab", [r"(a)\1"], ["aa", "{0}"]),
        ("%%count%% 5", [r"%%\w+%%"], ["%%count%%"]),
        ("{1>Wort<1}", [r"\{\d+>|<\d+\}"], ["{1>", "<1}"]),
        ("${a {b} c}", [r"\{b\}"], ["{b}"]),
        ("#a# ~b~ ~c#", [r"(#)\w+\1", r"(~)\w+\1"], ["#a#", "~b~"]),
        ("AB ab Ab", ["(?i)ab", "(?i)x"], ["AB", "ab", "Ab"]),
        ("abc bcd", ["ab", "bc+d?"], ["ab", "bcd"]),
        ("aab {0}", ["x*"], ["{0}"]),
    ],
)
def test_stated_expressions_count_before_others(line, stated, strings):
    """Each with the numbers of its own groups, and with its own flags."""
    assert strings_of(line, stated) == strings


#: Elements that are marks of notes behind a word.
MARKS = """
<sup>1</sup>
<sup id="r"><a href="#n">[2]</a></sup>
<a href="#m"><sup>3</sup></a>
<a href="#n">[4]</a>
<sup>*</sup>
<sup>†</sup>
<sup>a</sup>
<sup>iv</sup>
<sup>(7)</sup>
<sup>8,</sup><sup>9</sup>
<sub>10</sub>
""".strip().split("\n")
MARKED = st.lists(st.tuples(WORDS, st.booleans()), min_size=1, max_size=6)


@MANY
@given(MARKED, st.permutations(MARKS), st.permutations(range(6)))
def test_marks_of_notes_follow_their_words(words, marks, order):
    """In a target without marks; and in one that has the marks as the source has them, which is the source."""
    line = " ".join(word + mark * has for (word, has), mark in zip(words, marks))
    marked = parse_markup(line, "html")
    assert marked.text.split() == [word for word, _ in words]
    texts = marked.text.split()
    output = moved(marked, order)
    found = [re.match(r"(\w+)(.*)", part.replace("\0", " ")) for part in re.sub("(<[^>]*) ", "\\1\0", output).split()]
    if len(set(texts)) == len(texts):
        expected = {word: mark * has for (word, has), mark in zip(words, marks)}
        assert [(part[1], part[2]) for part in found] == [
            (texts[k], expected[texts[k]]) for k in order if k < len(texts)
        ]
    target = re.sub("<[^>]*>", "", line)
    places = spans(target)
    links, last = set(), 0
    for i, (word, _) in enumerate(words):
        last = next(j for j in range(last, len(places)) if target[slice(*places[j])].startswith(word))
        links.add((i, last))
        last += 1
    assert transfer_markup(marked, spans(marked.text), target, places, links) == line


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("10 m<sup>2</sup> H<sub>2</sub>O", "10 m H2O"),  # read as m, and m2 of the target has the tag
        ("CO<sub>2</sub> CO<sub>2</sub>-frei", "CO2 CO2-frei"),
        ("2<sup>e</sup> M<sup>me</sup> x<sup>2</sup>y", "2e Mme x2y"),
        ("x<sup>2</sup>-<i>Test</i>", "x2-Test"),
        ("Haus <sup>1</sup> und", "Haus  und"),
        ("Haus<b>[1, 2, 3, 4]</b> Haus<b>[1, 2, 3, 40]</b>", "Haus Haus[1, 2, 3, 40]"),  # 12 characters at most
        ("Bericht.<sup>4</sup> <sup>3</sup>/<sub>4</sub>", "Bericht. /"),
        ("Name<b>*</b> Seite<b>5</b> A <b>5</b> Haus<td>5</td>", "Name Seite A 5 Haus 5"),
        ("Haus<sup>hoch</sup> Haus<sup>Anmerkung 1</sup>", "Haushoch HausAnmerkung 1"),
    ],
)
def test_what_is_a_mark_of_a_note(line, text):
    assert parse_markup(line, "html").text.split() == text.split()


@pytest.mark.parametrize(
    ("line", "target", "links", "expected"),
    [
        ("10 m<sup>2</sup> Haus", "10 m2 house", "=", "10 m<sup>2</sup> house"),
        ("10 m<sup>2</sup> Haus", "10 m² house", "=", "10 m<sup>2</sup> house"),
        ("Haus<sup>1</sup> an der A1", "house on the A1", "=", "house<sup>1</sup> on the A1"),
        ("Haus<sup>1</sup> alt", "house 1 old", "0-0 1-2", "house <sup>1</sup> old"),
        ("rotes <b>Haus</b><sup>1</sup>", "house1 red", "0-1 1-0", "<b>house</b><sup>1</sup> red"),
        ("sah Bericht<sup>4</sup> an", "looked at report", "0-0 1-2 2-1", "looked at report<sup>4</sup>"),
        ("Bericht<sup>4</sup> 14", "14 report", "0-1 1-0", "14 report<sup>4</sup>"),
        ("Bericht<sup>4</sup> B", "A14 report", "0-1 1-0", "A14 report<sup>4</sup>"),
        ("ein Haus<sup>1</sup>", "1 house1", "=", "1 house<sup>1</sup>"),
    ],
)
def test_marks_in_a_translation(line, target, links, expected):
    marked = parse_markup(line, "html")
    source, words = spans(marked.text), spans(target)
    pairs = (
        [(k, k) for k in range(len(source))]
        if links == "="
        else [tuple(map(int, link.split("-"))) for link in links.split()]
    )
    assert transfer_markup(marked, source, target, words, pairs) == expected


#: A user's expression, and strings that match it; a string of a certain kind begins at the same place or around it.
STATED = {
    r"%%\w+%%": ["%%count%%", "%%s%%"],
    r"\$\$\w+": ["$$total"],
    r"(#)\w+\1": ["#name#"],
    r"(~)\w+\1": ["~name~"],
    r"(?i)VAR_\w+": ["Var_a", "VAR_B"],
    r"\[\w+\]": ["[1]", "[name]"],
}
ALL_STATED = [string for strings in STATED.values() for string in strings]


@MANY
@given(st.permutations(list(STATED)), st.lists(WORDS | st.sampled_from(ALL_STATED), max_size=8))
def test_each_string_that_is_stated_comes_out_once_in_any_order_of_the_expressions(expressions, parts):
    line = " ".join([*parts, "{0}"])
    expected = [part for part in parts if part in ALL_STATED]
    assert strings_of(line, expressions) == [*expected, "{0}"]


#: The codes of a pair, which are two strings.
PAIRS = ["{1> <1}", "{b> <b}", "[2} {2]", "{code3} {/code3}", "{4} {4}"]


@MANY
@given(st.lists(st.tuples(WORDS, st.sampled_from(["", *PAIRS])), min_size=1, max_size=6), st.permutations(range(6)))
def test_codes_of_cat_tools_enclose_the_words_that_they_enclose(words, order):
    """Each word is translated, and stands between the same codes."""
    codes = [(word, *pair.split()) if pair else (word, "", "") for word, pair in words]
    wrapped = [f"{before}{word}{behind}" for word, before, behind in codes]
    order = [k for k in order if k < len(words)]
    texts = [word for word, _ in words]
    marked = protect(" ".join(wrapped))
    assert marked.text.split() == texts
    pairs = [element for element in marked.elements if element.closing]
    assert [element.opening for element in pairs] == [b for _, b, _ in codes if b and b != "{4}"]
    if len(set(texts)) == len(texts) and "{4}" not in str(codes):
        assert moved(marked, order) == " ".join(wrapped[k] for k in order)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("50%{1>Wort<1} #{2>Haus<2}", "50%Wort #Haus"),
        ("{1>{2>Wort<2} und<1}", "Wort und"),
        ("[1}{2}Wort{1]", "Wort"),
        ("{1>Haus<1}tür", "Haustür"),
        ("{00108}Wort{00109}", "Wort"),
        ("${a<1} Wort", " Wort"),
    ],
)
def test_codes_swallow_no_words(line, text):
    assert protect(line).text == text


#: Tags that break the line, or show something between two words.
BREAKS = r"""
<x id="LINE_BREAK" ctype="lb" equiv-text="&lt;br/&gt;"/>
<x id="LINE_BREAK_1"/>
<x id="1" ctype="pb"/>
<x id="1" ctype="x-html-br"/>
<x id='1' ctype='x-br'/>
<x id="1" ctype="image"/>
<x id="1" ctype="x-html-P"/>
<ph id="1" type="fmt" subType="xlf:lb"/>
<ph id="1" type="fmt" subType="xlf:pb"/>
<ph id="1" equiv="&lt;br&gt;"/>
<ph id="1" disp="&lt;BR /&gt;"/>
<ph id="1" equiv="\n"/>
<ph id="1">&lt;br/&gt;</ph>
<ph id="1">\n</ph>
<ph id="1">&#10;</ph>
<it pos="begin">&lt;/p&gt;</it>
<ut>&lt;hr/&gt;</ut>
<bpt i="1">&lt;li&gt;</bpt>
<br/>
<tab/>
""".strip().split("\n")
#: Tags that may stand inside a word.
OTHER_TAGS = """
<x id="1" ctype="bold" equiv-text="&lt;b&gt;"/>
<x id="PH"/>
<ph id="1">&lt;p-panel&gt;</ph>
<ph id="1" disp="{0}"/>
<ph id="1">&lt;brand/&gt;</ph>
<ph id="1" subType="xlf:b"/>
<it pos="begin">&lt;u&gt;</it>
<b id="br"/>
""".strip().split("\n")


@MANY
@given(WORDS, st.sampled_from([*BREAKS, *OTHER_TAGS]), WORDS, st.sampled_from(["xml", "html"]), st.booleans())
def test_tags_whose_type_or_native_code_is_a_break_separate_words(before, tag, behind, syntax, translates):
    marked = parse_markup(f"{before}{tag}{behind}", syntax, strings=PROTECTED if translates else None)
    assert marked.text.split() == ([before, behind] if tag in BREAKS else [before + behind])
    if tag in BREAKS and before != behind:
        assert moved(marked, [0, 1]).replace(" ", "") == f"{before}{tag}{behind}".replace(" ", "")


#: Elements that are not translated.
UNTRANSLATED = """
<code>|</code>
<kbd class="x">|</kbd>
<span translate="no">|</span>
<span class="a notranslate">|</span>
<i class='skiptranslate'>|</i>
<mrk mtype="protected">|</mrk>
<q>|</q>
""".strip().split("\n")
BLANKS = st.sampled_from(["", " ", "\u00a0", "&#10;", "&#160;", "<br/>"])


@MANY
@given(WORDS, st.sampled_from(UNTRANSLATED), BLANKS, BLANKS, WORDS, st.sampled_from(["xml", "html"]))
def test_blanks_inside_an_element_that_is_not_translated_separate_words(before, tags, first, last, behind, syntax):
    line = f"{before}{tags.replace('|', f'{first}Haus{last}')}{behind}"
    marked = parse_markup(line, syntax, opaque=["q"], strings=PROTECTED)
    assert marked.text.split() == ([before, behind] if first or last else [before + behind])
    if (first or last) and before != behind:
        assert moved(marked, [0, 1]).replace(" ", "") == line.replace(" ", "")


TAGS = st.sampled_from(['<x id="1"/>', '<ph id="2"/>', '<ph id="3">{0}</ph>'])
SIGNS = st.sampled_from(["/", "–", "-", "|", "+", "=", "·", "x", "&amp;", "%", ":", "×", ",", "…"])


@MANY
@given(st.sampled_from(["", "Seite ", "alt und "]), TAGS, SIGNS, TAGS, st.sampled_from(["", " "]), st.booleans())
def test_blanks_beside_tags_are_those_of_the_source(before, first, sign, second, blank, ends):
    line = f"{before}{first}{blank}{sign}{blank}{second}{' Berichte.' * ends}"
    marked = parse_markup(line, "xml")
    target = " ".join(marked.text.split()) if blank else marked.text.strip()
    words = spans(target)
    output = transfer_markup(marked, spans(marked.text), target, words, [(k, k) for k in range(len(words))])
    assert output == line


def test_tags_with_signs_between_them_are_one_where_a_model_translates():
    marked = parse_markup('Seite <x id="1"/> / <x id="2"/>, %d', "xml", strings=PROTECTED)
    assert (marked.text, [e.opening for e in marked.elements]) == ("Seite ", ['<x id="1"/> / <x id="2"/>, %d'])
