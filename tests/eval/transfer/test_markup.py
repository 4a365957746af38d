"""Inline markup: taken out of a line, and put onto its translation."""

import re
from html import escape
from itertools import count

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.transfer.markup import transfer_markup
from alignment_eval.transfer.tags import MarkedLine, parse_markup, protect
from tests.eval.links.samples import links_of


def words(text):
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def moved(line, target, links, syntax="xml"):
    """The output; links of words are ``0-0 1-2:.5``, or ``=``: word by word."""
    source = parse_markup(line, syntax)
    spans = words(source.text), words(target)
    pairs = {(i, i) for i in range(min(map(len, spans)))} if links == "=" else links_of(links)
    return transfer_markup(source, spans[0], target, spans[1], pairs)


def outline(marked):
    """Each pair of tags with the tags around it, outermost first."""

    def around(index):
        parent = marked.elements[index].parent
        return () if parent is None else (*around(parent), marked.elements[parent].opening)

    return sorted((e.opening, e.closing, around(index)) for index, e in enumerate(marked.elements))


def shown(marked):
    """The text of a line but for its spaces, of which a tag that stands for a word or separates words may add some."""
    return "".join(marked.text.split())


# Lines with tags, each with a number of its own


def numbered(nodes, syntax, numbers):
    """A tree of texts (str), tags that stand alone (None) and elements (lists) as a line."""
    parts = []
    for node in nodes:
        number = next(numbers)
        if isinstance(node, str):
            parts.append(escape(node, quote=False))
        elif node is None:
            alone = (f'<br id="{number}"/>', f"<!-- {number} -->", f"<?p {number}?>", f'<x id="{number}"/>')
            if syntax == "html":
                alone = (f"<br id={number}>", f"<!-- {number} -->", f"<IMG id={number}>", f'<x id="{number}"/>')
            parts.append(alone[number % len(alone)])
        else:
            parts.append(f'<b id="{number}">{numbered(node, syntax, numbers)}</b>')
    return "".join(parts)


TEXTS = st.text(alphabet='aaBßüİ1_ ..,-"(&<>é\u0301\u00a0', max_size=8)
TREES = st.lists(st.recursive(TEXTS | st.none(), lambda nodes: st.lists(nodes, max_size=4), max_leaves=10), max_size=8)


@st.composite
def marked_lines(draw):
    syntax = draw(st.sampled_from(["xml", "html"]))
    return numbered(draw(TREES), syntax, count()), syntax


@given(marked_lines(), TEXTS, TEXTS, st.data())
def test_the_output_is_the_target_with_all_tags_in_the_same_nesting(marked, first, second, data):
    line, syntax = marked
    source = parse_markup(line, syntax)
    assume(not any(element.mark for element in source.elements))  # which may stand where the target has that mark
    target = first + second
    source_spans, target_spans = words(source.text), words(target)
    links = data.draw(
        st.dictionaries(
            st.tuples(st.integers(0, len(source_spans)), st.integers(0, len(target_spans))).filter(
                lambda link: link[0] < len(source_spans) and link[1] < len(target_spans)
            ),
            st.floats(0, 1),
            max_size=8,
        )
        if source_spans and target_spans
        else st.just({})
    )
    output = parse_markup(transfer_markup(source, source_spans, target, target_spans, links), syntax)
    assert shown(output) == "".join(target.split())
    assert outline(output) == outline(source)


@example(
    ('<b id="0">&lt;\u0301aI</b>&lt;1<b id="3">1</b>', "xml"),
    lambda text: [m.span() for m in re.finditer(r"\S+", text)],
)
@given(marked_lines(), st.sampled_from([words, lambda text: [m.span() for m in re.finditer(r"\S+", text)]]))
def test_a_line_moved_onto_itself_stays_as_it_is_up_to_blanks_beside_tags(marked, split):
    line, syntax = marked
    source = parse_markup(line, syntax)
    spans = split(source.text)
    output = transfer_markup(source, spans, source.text, spans, {(i, i) for i in range(len(spans))})

    def without_blanks_beside_tags(text):
        return re.sub(r"\s*(<[^>]*>)\s*", r"\1", text).strip()

    assert without_blanks_beside_tags(output) == without_blanks_beside_tags(line)


@given(
    st.lists(st.sampled_from([*"<>/!?-&;ab ='\"", "<b>", "</b>", "<!--", "-->", "<br>", "<A b='", "&lt;"])),
    st.booleans(),
)
def test_any_line_is_refused_or_moved_onto_itself(parts, is_html):
    line, syntax = "".join(parts), "html" if is_html else "xml"
    try:
        source = parse_markup(line, syntax)
    except InputError:
        return
    spans = words(source.text)
    try:
        output = transfer_markup(source, spans, source.text, spans, {(i, i) for i in range(len(spans))})
    except InputError:
        return  # its text has tags, too
    again = parse_markup(output, syntax)
    assert (shown(again), outline(again)) == (shown(source), outline(source))


# Where tags go


@pytest.mark.parametrize(
    ("line", "target", "links", "expected"),
    [
        pytest.param("<a>one</a> and <b>two</b>", "<b>zwei</b> und <a>eins</a>", "0-2 1-1 2-0", None, id="exchanged"),
        pytest.param("<p>Go <b>in</b>!</p>", "<p>Geh <b>hinein</b>!</p>", "1-1 2-2", None, id="the whole line"),
        pytest.param("the <b>red house</b> there", "das <b>rote Haus</b> dort", "0-0 1-1 3-3", None, id="no link"),
        pytest.param("see “<b>Home</b>”.", "siehe „<b>Start</b>“.", "0-0 2-2 4-4", None, id="marks stay outside"),
        pytest.param(
            "<b>One word.</b> Two here.", "<b>Ein Wort.</b> Zwei hier.", "0-0 1-1 3-3 4-4 0-3", None, id="one sentence"
        ),
        pytest.param("a<br/> b", "c d", "0-0 1-1", "c<br/> d", id="a tag alone touches the word that it touched"),
        pytest.param("a <i></i> b c", "d e f", "0-0 1-1 2-2", "d <i></i>e f", id="an element without words"),
        pytest.param("<b>f</b>ull", "full <b>f</b>ull", "0-1", "full <b>f</b>ull", id="inside an equal word"),
        pytest.param("<b>in</b>side it", "es darin", "0-1 1-0", "es <b>darin</b>", id="inside another word"),
        pytest.param("take <b>hill</b>", "nimm da <b>berg</b>", "0-0 1-2", None, id="a short word without links"),
        pytest.param("aa <b>bb</b> cc dd", "ee <b>ff</b> gg hh", "", None, id="no links: at the place of the source"),
        pytest.param("a <b>Bb</b> c", "ee <b>Ff</b>", "", None, id="no links: a capital"),
        pytest.param("aa <b>to do</b> bb cc", "pq rs tu <b>to do</b>", "", None, id="no links: the same words"),
        pytest.param("a <b>;</b> b", "; aa <b>;</b>", "1-2", None, id="links of marks"),
        pytest.param("<b>Aa . cc</b> cc !", "<b>bb ! Aa</b> Dddd bb", "2-1", None, id="a full stop inside"),
        pytest.param("old <b>tree</b>", "<b>Baum</b> alt", "0-0:.1 0-1:.8 1-0:.7 1-1:.2", None, id="the surer link"),
        pytest.param("Ende <x/>", "the end!", "", "the end! <x/>", id="a tag alone, at the end of the line"),
        pytest.param("no<br/>n oo", "xx yy", "0-0 1-1", "xx<br/> yy", id="a tag alone, inside another word"),
        pytest.param("a b <br/>c d", "w x <br/>y z", "0-3 1-1 2-2 3-0", None, id="a tag alone, near links count most"),
        pytest.param("Click <b>Add it</b>. To go", "Klick <b>Zusatz</b>. Um ein", "0-0 2-1 1-3 4-3", None, id="stops"),
        pytest.param("Hi! <b>Bulk is it.</b>", "Ja! <b>Der Bulk geht.</b>", "0-0 1-1 2-3 4-4 5-5", None, id="sentence"),
        pytest.param("<a>one</a> <b>two</b>", "<b>zwei</b> <a>eins</a>", "0-1:.4 1-0:.4", None, id="weak links"),
        pytest.param("<a>aa</a> <b>bb cc</b>", "<b>ww xx</b> <a>yy</a>", "1-0", None, id="a link goes before no link"),
        pytest.param("<b>up</b> !", "<b>auf</b> das", "0-0:.75 1-0", None, id="a mark counts less than a word"),
        pytest.param("a <b>bb</b> c", "x y", "0-0:.63 2-1:.63", "x <b></b>y", id="links of 0.63 are sure"),
        pytest.param("aa<x/> bb cc dd", "xx yy zz ww<x/>", "0-3 1-0 2-1 3-2", None, id="the word touched counts twice"),
        pytest.param("ab <x/> cd", "uv (wz", "1-2", "uv (<x/> wz", id="no space behind a bracket"),
    ],
)
def test_where_tags_go(line, target, links, expected):
    """Without an expected output, the target's tags are those expected."""
    assert moved(line, re.sub(r"<[^>]*>", "", target), links) == (expected or target)


#: Lines with markup, their translations and word links, and where the tags belong: syntax, source, target and links
#: (``=``: word by word), and below them the output.  Words are runs of letters, and single marks.
_CASES = r"""
# a tag that stands alone between spaces stands for a word
xml | Blatt <x id="1"/> <x id="2"/> | sheet | =
    sheet <x id="1"/> <x id="2"/>
xml | Den Ordner <x id="1"/> leeren | Empty the folder | 0-1 1-2 2-0
    Empty the folder <x id="1"/>
xml | Taste <b>rot <x/></b> gedrückt | key red pressed | =
    key <b>red <x/></b> pressed
xml | Taste <b><x/></b> | key | =
    key <b><x/></b>
xml | Zeile <!-- leer --> zwei | line two | =
    line <!-- leer -->two
xml | drei <x id="1"/> Bücher | 三本の本 |
    <x id="1"/>三本の本
html | Hallo <?= $name ?> und danke | hello and thanks | =
    hello <?= $name ?> and thanks
# tags that separate words
html | Morgen.<br>Abend. | Morning. Evening. | =
    Morning.<br> Evening.
html | <p>Apfel</p><p>Birne</p> | apple pear | =
    <p>apple</p> <p>pear</p>
html | vor<div>innen</div>nach | before inside after | =
    before <div>inside</div> after
html | Haus<wbr>boot | houseboat | 0-0
    houseboat<wbr>
# content that is no text
xml | <ph id="1">%s</ph> Dateien | files | =
    <ph id="1">%s</ph> files
xml | grün <ut>\b</ut> gelb | green yellow | =
    green <ut>\b</ut> yellow
xml | <ph id="1">a<sub>b</sub></ph> Ende | end | =
    <ph id="1">a<sub>b</sub></ph> end
# halves of a pair
xml | <bpt i="1">{</bpt>Brot<ept i="1">}</ept> essen | eat bread | 0-1 1-0
    eat <bpt i="1">{</bpt>bread<ept i="1">}</ept>
xml | Heute <bx id="7"/>regnet<ex id="7"/> es | It rains today | 0-2 1-1 2-0
    It <bx id="7"/>rains<ex id="7"/> today
xml | <ph id="1" type="open"/>Grün<ph id="2" type="close"/> ist es | It is green | 0-2 1-1 2-0
    It is <ph id="1" type="open"/>green<ph id="2" type="close"/>
xml | offen <bx id="1"/>bleibt | open stays | =
    open <bx id="1"/>stays
xml | <g id="1"><bx id="2"/>Mond</g> scheint<ex id="2"/> | moon shines | =
    <g id="1"><bx id="2"/>moon</g> shines<ex id="2"/>
# numbered tags and templates
html | <0>Tee</0> oder <1>Saft</1> | <tea> or juice | 0-1 1-3 2-4
    &lt;<0>tea</0>&gt; or <1>juice</1>
html | <% if (a > b) %>heute<% end %> hier | today here | =
    <% if (a > b) %>today<% end %> here
# elements that share a word
xml | Sie <b>sagt</b> das Treffen <b>ab</b>. | She cancels the meeting. | 0-0 1-1 2-2 3-3 4-1 5-4
    She <b>cancels</b><b></b> the meeting.
xml | Das <b>Ende</b> <i>spiel</i> heute | the final today | 0-0 1-1 2-1 3-2
    the <b></b><i>final</i> today
xml | <a>kein</a> Baum <b>mehr</b> | no tree | 0-0 1-1 2-0
    <a>no</a><b></b> tree
xml | <a>Meine</a> <b>Damen</b> <c>und</c> Herren! | Ladies and gentlemen! | 0-0 1-0 2-1 3-2 4-3
    <a>Ladies</a><b></b> <c>and</c> gentlemen!
xml | <a>Meine</a> <b>lieben</b> <c>und</c> <d>Leute</d> | and people | 2-0 3-1
    <a></a><b></b><c>and</c> <d>people</d>
# an element without links takes no word of another
xml | Sie <b>sagt</b> das Treffen <b>ab</b>. | She cancels the meeting. | 0-0 1-1 2-2 3-3 5-4
    She <b>cancels</b> the meeting<b></b>.
xml | Der <b>Garten</b> <i>zaun</i> heute | the fence today | 0-0 2-1 3-2
    the <b></b><i>fence</i> today
# a tag that stands for a word stays beside the word that it stood beside
xml | Wir haben <x id="1"/> Brote gekauft | we bought breads | 0-0 2-2 3-1
    we bought <x id="1"/> breads
# a tag without linked neighbours stays at its end of the element around it
xml | Ja, <b>rot <x/></b> gelb | yes, red yellow | 0-0 3-3
    yes, <b>red <x/></b> yellow
xml | Ja, <b><x/> rot, blau</b> gelb | yes red, blue yellow | 0-0 5-4
    yes <b><x/> red, blue</b> yellow
# entities
html | A &amp; B <i>C</i> | A & B C | =
    A &amp; B <i>C</i>
html | 1 < 2 ist <b>wahr</b> | 1 < 2 is true | =
    1 &lt; 2 is <b>true</b>
"""

_ROWS = [line for line in _CASES.strip().split("\n") if not line.startswith("#")]
#: Syntax, source, target, links and output.
LINES = [
    (*(part.strip() for part in given.split("|")), output.strip()) for given, output in zip(_ROWS[::2], _ROWS[1::2])
]


@pytest.mark.parametrize(("syntax", "line", "target", "links", "expected"), LINES)
def test_lines_as_people_have_them(syntax, line, target, links, expected):
    assert moved(line, target, links, syntax) == expected


@pytest.mark.parametrize(
    ("line", "text", "strings"),
    [
        ("Ruf {name} an: a.b@c.org!", "Ruf  an: !", ["{name}", "a.b@c.org"]),
        ("Lies („https://a.org/b_(c)“, ja)!", "Lies (, ja)!", ["„https://a.org/b_(c)“"]),
        ("%1$d von %s, 5 % davon", " von , 5 % davon", ["%1$d", "%s"]),
        ("Datei{n}liste, %5.2f %% und {{ a.b }}", "Datei liste,   und ", ["{n}", "%5.2f", "%%", "{{ a.b }}"]),
        ("{0}) und (", ") und (", ["{0}"]),
        ('Drück ("{taste}")!', "Drück !", ['("{taste}")']),
        ("10%ige L\u00f6sung, a < b & c", "10%ige L\u00f6sung, a < b & c", []),
    ],
)
def test_strings_that_are_not_translated_come_back_letter_by_letter(line, text, strings):
    marked = protect(line)
    assert (marked.text, [element.opening for element in marked.elements]) == (text, strings)
    spans = words(text)
    output = transfer_markup(marked, spans, text, spans, {(i, i) for i in range(len(spans))})
    assert "".join(output.split()) == "".join(line.split())


# What the text of a line is


def test_entities_and_cdata_are_text_and_the_target_is_escaped():
    assert parse_markup("a &lt;&#98;&gt; &amp; <i>c</i>", "xml").text == "a <b> & c"
    assert moved("<i>x</i> &amp;", "&amp; < x", "0-4") == "&amp;amp; &lt; <i>x</i>"
    assert parse_markup("a&#10;b&#13;c", "xml").text == parse_markup("a&#10;b&#10;c", "html").text == "a b c"
    assert parse_markup("<![CDATA[a<b]]> c", "xml") == MarkedLine("a<b c", ())


def test_html_has_void_elements_unquoted_attributes_names_in_any_case_and_scripts():
    line = '<P class=x>a<BR>b<img src="a>b.png"> &nbsp;<!-- c --><wbr></p>1 < 2'
    marked = parse_markup(line, "html")
    assert marked.text == "a b \u00a01 < 2"
    assert [(e.opening, e.closing, e.parent) for e in marked.elements] == [
        ("<P class=x>", "</p>", None),
        ("<BR>", "", 0),
        ('<img src="a>b.png">', "", 0),
        ("<!-- c -->", "", 0),
        ("<wbr>", "", 0),
    ]
    assert marked.elements[0].span == (0, 5)
    marked = parse_markup("a<script>if (1 < 2) { '<b>' }</script>b", "html")
    assert (marked.text, [e.opening for e in marked.elements]) == ("ab", ["<script>if (1 < 2) { '<b>' }</script>"])


# Lines that are refused


@pytest.mark.parametrize("syntax", ["xml", "html"])
@pytest.mark.parametrize(
    ("line", "fact"), [("a <i>b", "<i>"), ("a</i> b", "</i>"), ("a <i", "<i"), ("a <!-- b", "<!-- b")]
)
def test_tags_that_are_not_in_pairs_are_refused(line, fact, syntax):
    with pytest.raises(InputError, match=re.escape(fact)):
        parse_markup(line, syntax)


@pytest.mark.parametrize("line", ['<!DOCTYPE x [<!ENTITY y "z">]>&y;', "&y;", "<a b='&y;'/>", "a & b", "\x00"])
def test_xml_expands_no_entities_of_its_own(line):
    with pytest.raises(InputError):
        parse_markup(line, "xml")


def test_a_target_that_has_a_tag_of_the_source_is_refused():
    with pytest.raises(InputError, match="</b>"):
        moved("<b>x</b>", "y</b>", "")
    assert moved("<b>&lt;b&gt; x</b>", "<b> y", "0-0 1-1 2-2 3-3") == "<b>&lt;b&gt; y</b>"


@pytest.mark.parametrize("link", ["2-0", "0--1", "0-1"])
def test_links_outside_the_lines_are_refused(link):
    i, j = map(int, link.split("-", 1))
    with pytest.raises(InputError, match=link):
        transfer_markup(MarkedLine("a b", ()), [(0, 1), (2, 3)], "c", [(0, 1)], [(i, j)])


def test_an_element_after_halves_without_the_other_half_is_in_no_element():
    marked = parse_markup('<bpt i="1"/>a <bpt i="2"/>b <b>c</b>', "xml")
    assert [element.parent for element in marked.elements] == [None, None, None]
