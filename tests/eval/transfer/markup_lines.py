"""Lines with markup, their translations and word links, and where the tags belong.

Syntax, source, target and links (``=``: word by word), and below them the output.  Words are runs of letters, and
single marks.
"""

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
    the <b>final</b><i></i> today
xml | <a>kein</a> Baum <b>mehr</b> | no tree | 0-0 1-1 2-0
    <a>no</a><b></b> tree
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
