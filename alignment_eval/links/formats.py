"""Word links, and the formats of alignment files, parsed and written sentence by sentence (docs/formats.md).

Links are source-target and count from 0; those of a file as ``base`` and ``swap`` of the :class:`Tokens` say.  An
InputError names ``file:line`` of the first line that is not in the format.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Optional

from alignment_eval.errors import InputError, shown

#: Pair (source word, target word), counted from 0.
Link = tuple[int, int]
#: The links of one sentence.
Links = frozenset[Link]


@dataclass(frozen=True)
class GoldSentence:
    """The links of one sentence of an alignment file, sure and possible.

    ``possible`` includes ``sure``; missing links are added on construction.  ``confidence`` has a finite number for
    each possible link, larger means surer; None: the links have none.
    """

    sure: Links
    possible: Links = frozenset()
    confidence: Optional[Mapping[Link, float]] = field(default=None, compare=False)

    def __post_init__(self) -> None:
        sure, possible = frozenset(self.sure), frozenset(self.possible)
        object.__setattr__(self, "sure", sure)
        object.__setattr__(self, "possible", possible if sure <= possible else possible | sure)


def transpose(links: Iterable[Link]) -> Links:
    """The same links with source and target exchanged."""
    return frozenset((j, i) for i, j in links)


def check_inside(links: Iterable[Link], sizes: tuple[int, int]) -> None:
    """Check that links are inside a sentence pair of so many source and target words; raises InputError if not."""
    for i, j in sorted(links):
        if not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            raise InputError(
                f"link {i}-{j} (counted from 0) is outside its sentence pair of {sizes[0]} and {sizes[1]} words: give "
                f"the text that was aligned; check direction, index base and subword marker"
            )


#: Number of the line in the file, from 1, and the line without its end.
Lines = Iterable[tuple[int, bytes]]

_NUMBER = rb"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
#: A longer number is damage, not a word index.
_LINK = re.compile(rb"0*([0-9]{1,6})[-p?]0*([0-9]{1,6})")
_SCORED = re.compile(rb"[0-9]+[-p?][0-9]+(?::|-\.[0-9])\S*")
#: A probability of simalign, which cuts off the 0 or 1 before the point; linked words are never unlike to the last.
_PROBABILITY = re.compile(rb"-(\.[0-9]+)")
_SOFT = re.compile(rb"[0-9.]+(?:e[+-][0-9]+)?(?:,[0-9.]+(?:e[+-][0-9]+)?)+")
_NAACL_LINE = re.compile(
    rb"[ \t]*([0-9]{1,7})[ \t]+([0-9]{1,6})[ \t]+([0-9]{1,6})(?:[ \t]+([SP]))?(?:[ \t]+(%s)(?:[ \t]+([SP]))?)?[ \t]*"
    % _NUMBER
)
_FAIRSEQ_LINE = re.compile(rb"A-([0-9]{1,9})(?:[ \t](.*))?")
_GENERATE_LINE = re.compile(rb"^[STHDPA]-[0-9]+(?:\t|$)", re.MULTILINE)
#: GIZA's A3: a heading, the target words, and each source word (NULL first) with the numbers of its target words.
_A3 = re.compile(rb"# Sentence pair \(([0-9]{1,9})\) .*")
_A3_WORD = re.compile(rb"\S+ \(\{((?: [0-9]{1,6})*) \}\)(?: |$)")
#: A line of simalign's script align_files.py; what ends one of fast_align -s: the sentence's log probability; and what
#: is between a translation and its links.
_SIMALIGN = re.compile(rb"([0-9]{1,9})\t(?:[0-9]+[-p?].*)?")
_FAST_ALIGN = re.compile(rb".*\|\|\|[ \t]*%s\s*" % _NUMBER)
_OPENNMT = re.compile(rb".*\|\|\|.*")
_BAR = b"|||"
_N_BEST = re.compile(rb"\s*[0-9]+ \|\|\| .* \|\|\| .* \|\|\| .*")
_COLUMNS = "several columns; expected links with blanks between: keep their column (cut -f), possible links as ipj"
#: Lines that hold no links -> what they look like.
_LOOKS = {
    rb"[^0-9]*": "a header or text; expected links i-j: delete a header (sed 1d)",
    rb"\w+[\s,;]+[0-9]+[\s,;]+[0-9]+([\s,;]+\w*)?": "NAACL; expected three numbers, sentence i j, and S, P or nothing",
    rb".*\t.*": _COLUMNS,
    rb"\w+ +[0-9]+[-p?][0-9]+.*": "a name and links; expected links only: cut -d ' ' -f 2-",
    rb".*[0-9][-p?][0-9]+[,;].*": "links with commas between; expected blanks: tr ',;' ' '",
}


class Tokens(dict[bytes, Link]):
    """Token ``i-j``, ``ipj`` or ``i?j`` -> link, source-target from 0.  Each different token is parsed once.

    Args:
        base: the number of the first word.
        swap: the tokens are target-source.
    """

    def __init__(self, base: int = 0, swap: bool = False) -> None:
        super().__init__()
        self._base, self._swap = base, swap

    def __missing__(self, token: bytes) -> Link:
        match = _LINK.fullmatch(token)
        if not match:
            raise _BadTokenError(token)
        link = self[token] = self.link(int(match[1]), int(match[2]))
        return link

    def link(self, i: int, j: int) -> Link:
        """The link of two indices of the file."""
        i, j = i - self._base, j - self._base
        return (j, i) if self._swap else (i, j)


class _BadTokenError(ValueError):
    """A token that is not a link."""


def _parse_lines(
    lines: Lines, name: str, tokens: Tokens, allow_possible: bool, scored: bool | None = None
) -> Iterator[GoldSentence]:
    """A sentence a line: ``i-j`` sure, ``ipj`` and ``i?j`` possible, with a score behind each if they are ``scored``.

    None: as the first link is.
    """
    for number, line in lines:
        words = line.split()
        if scored is None and words:
            scored = _SCORED.match(words[0]) is not None
        try:
            sentence = (_scored if scored else _pairs)(words, tokens)
        except _BadTokenError as error:
            raise InputError(f"{name}:{number}: {_wanted(error.args[0], bool(scored), line.strip())}") from None
        if b"\t" in line and b"\t" in line.strip():
            raise InputError(f"{name}:{number}: {_text(line)} has {_COLUMNS}")
        if not allow_possible and (mark := next((mark for mark in ("p", "?") if mark.encode() in line), None)):
            raise _possible_error(f"{name}:{number}", mark)
        yield sentence


def _pairs(words: list[bytes], tokens: Tokens) -> GoldSentence:
    links = frozenset(map(tokens.__getitem__, words))
    plain = [word for word in words if b"p" not in word and b"?" not in word]
    return GoldSentence(links if len(plain) == len(words) else frozenset(map(tokens.__getitem__, plain)), links)


def _scored(words: list[bytes], tokens: Tokens) -> GoldSentence:
    """A duplicate link keeps its largest score.

    Of two scores of a link the first counts: of ``i-j:p:q`` of SIL's Machine that of the translation, of ``i-j-.p-.q``
    of simalign the mean over subwords.
    """
    confidence: dict[Link, float] = {}
    sure = []
    for word in words:
        plain = (
            word
            if b":" in word
            else _PROBABILITY.sub(lambda found: b":1" if found[1] == b".0" else b":" + found[1], word)
        )
        pair, *numbers = plain.split(b":")
        try:
            link, scores = tokens[pair], [float(number) for number in numbers]
        except ValueError:
            raise _BadTokenError(word) from None
        if not 1 <= len(scores) <= 2 or not all(map(math.isfinite, scores)) or b"_" in word:
            raise _BadTokenError(word)
        confidence[link] = max(scores[0], confidence.get(link, scores[0]))
        if b"p" not in pair and b"?" not in pair:
            sure.append(link)
    return GoldSentence(frozenset(sure), frozenset(confidence), confidence)


def _parse_naacl(lines: Lines, name: str, tokens: Tokens, allow_possible: bool) -> Iterator[GoldSentence]:
    """``sentence i j [S|P] [confidence]``, or the mark last; one link a line in any order; blank lines are ignored.

    The highest sentence number is the number of sentences.  If any link has a confidence, links without one have 1.
    """
    expected = "expected NAACL lines 'sentence i j [S|P] [confidence]', with sentences counted from 1"
    sure, confidence = defaultdict[int, set[Link]](set), defaultdict[int, dict[Link, float]](dict)
    scored = False
    for number, line in lines:
        if not line.strip():
            continue
        match = _NAACL_LINE.fullmatch(line)
        twice = match and match[4] and match[6]
        if not match or twice or int(match[1]) == 0 or not math.isfinite(score := float(match[5] or 1)):
            raise InputError(f"{name}:{number}: {expected}, found {_text(line)}")
        possible = b"P" in (match[4], match[6])
        if possible and not allow_possible:
            raise _possible_error(f"{name}:{number}", "P")
        n, link = int(match[1]) - 1, tokens.link(int(match[2]), int(match[3]))
        confidence[n][link] = max(score, confidence[n].get(link, score))
        scored = scored or match[5] is not None
        if not possible:
            sure[n].add(link)
    if not confidence:
        raise InputError(f"{name}: the file has no links; {expected}")
    for n in range(max(confidence) + 1):
        scores = confidence.get(n, {})
        yield GoldSentence(frozenset(sure.get(n, ())), frozenset(scores), scores if scored else None)


def _best_of_fairseq(lines: Lines, name: str) -> Lines:
    """The first ``A-<id>`` line of each id, without the id; all other lines are ignored.

    Ids count from 0 and come in any order.  In an n-best list the A- lines of an id stand together; the first
    is the best.
    """
    best: dict[int, tuple[int, bytes]] = {}
    last = None
    for number, line in lines:
        if not line.startswith(b"A-"):
            continue
        match = _FAIRSEQ_LINE.fullmatch(line)
        if not match:
            raise InputError(f"{name}:{number}: expected A-<id>, a tab and links i-j, found {_text(line)}")
        id_ = int(match[1])
        if id_ in best and id_ != last:
            raise InputError(
                f"{name}:{number}: duplicate A-{id_}; n-best lines stand together; give the output of one run"
            )
        best.setdefault(id_, (number, match[2] or b""))
        last = id_
    if not best:
        raise InputError(f"{name}: the file has no A- lines; run fairseq-generate with --print-alignment hard")
    advice = "if the sentence was skipped as too long, generate without --skip-invalid-size-inputs-valid-test"
    return _in_order(best, 0, f"{name}: the A- line of sentence", advice)


def _of_giza(lines: Lines, name: str) -> Lines:
    """A line of links, from 1, for each sentence of GIZA's A3; NULL has no links."""
    found: dict[int, tuple[int, bytes]] = {}
    numbered = iter(lines)
    for number, line in numbered:
        heading = _A3.fullmatch(line)
        (_, target), (place, source) = next(numbered, (0, b"")), next(numbered, (number, b""))
        words = _A3_WORD.findall(source)
        if not heading or _A3_WORD.sub(b"", source) or not words:
            raise InputError(
                f"{name}:{place}: expected three lines a sentence of GIZA's A3: '# Sentence pair (n) …', the target "
                f"words, NULL ({{ … }}) and the source words with theirs; found {_text(source if heading else line)}"
            )
        links = [(i, int(j)) for i, linked in enumerate(words) for j in linked.split()]
        if any(not 1 <= j <= len(target.split()) for _, j in links):
            raise InputError(
                f"{name}:{place}: a link beyond the {len(target.split())} target words of line {place - 1}"
            )
        if (n := int(heading[1])) in found:
            raise InputError(f"{name}:{number}: duplicate sentence pair {n}; give the file of a single run")
        found[n] = place, b" ".join(b"%d-%d" % link for link in links if link[0])
    advice = "GIZA leaves out pairs that are empty or too long: leave them out of gold and texts too"
    return _in_order(found, 1, f"{name}: sentence pair", advice)


def _in_order(found: dict[int, tuple[int, bytes]], first: int, what: str, advice: str) -> Lines:
    """The lines of sentences in the order of their numbers, none of which may be missing."""
    for expected, n in enumerate(sorted(found), first):
        if n != expected:
            raise InputError(f"{what} {expected} is missing, but there is {max(found)}; {advice}")
    return [found[n] for n in sorted(found)]


def _numbered(lines: Lines, name: str) -> Lines:
    """The links of simalign's files, whose lines begin with the sentence's number, from 0 or 1."""
    expected: int | None = None
    for number, line in lines:
        match = _SIMALIGN.fullmatch(line)
        if not match or int(match[1]) not in ((0, 1) if expected is None else (expected,)):
            raise InputError(
                f"{name}:{number}: expected the sentence's number {expected or '0 or 1'}, a tab and links i-j, as "
                f"simalign's align_files.py writes; found {_text(line)}"
            )
        expected = int(match[1]) + 1
        yield number, line.partition(b"\t")[2]


def _beside(lines: Lines, name: str, before: bool) -> Lines:
    """The links before |||, where ``fast_align -s`` has the score of the sentence, or behind a translation and |||."""
    for number, line in lines:
        links, bar, behind = line.rpartition(_BAR)
        if not bar and line.strip():
            what = "and a score after" if before else "between a translation and"
            raise InputError(f"{name}:{number}: expected ||| {what} the links, as in the lines before")
        if _N_BEST.fullmatch(line):
            raise InputError(
                f"{name}:{number}: found a line of an n-best list; expected one line of links a sentence: write the "
                f"best translation only, or take the links of the first line of each number"
            )
        yield number, links if before else behind


def _wanted(token: bytes, scored: bool, line: bytes) -> str:
    """What is wrong with a token of a line that should hold links, or links with scores."""
    found = _text(token)
    if token.startswith(b"{"):
        return f"{found} begins a line of JSON; expected lines of links, as norm-align writes them to FILE.pharaoh"
    if scored and _LINK.fullmatch(token):
        return f"{found} has no score, but other links have; give every link a score, i-j:p, or none"
    if not scored and _SCORED.fullmatch(token):
        return f"{found} has a score, but the links before have none; give every link a score, i-j:p, or none"
    if not scored and _SOFT.fullmatch(token):
        return (
            f"{found} is a list of weights, not a link i-j; write links: marian-decoder --alignment hard, "
            f"fairseq-generate --print-alignment hard"
        )
    if looks := next((looks for form, looks in _LOOKS.items() if re.fullmatch(form, line)), None):
        return f"{_text(line)} looks like {looks}"
    form = "i-j:p (p a finite number)" if scored else "i-j (sure, such as 2-3), or ipj or i?j (possible)"
    return f"{found} is not a link {form}; whitespace separates links, and i and j are below 1000000"


def _possible_error(place: str, mark: str) -> InputError:
    return InputError(
        f"{place}: found a possible link ({mark}), which only gold may have; give the links of an aligner, or keep or "
        f"drop possible ones first (align-eval convert --possible)"
    )


def _text(content: bytes) -> str:
    return shown(content.decode(errors="replace"))


def format_links(
    links: Iterable[Link], base: int = 0, sure: Links | None = None, scores: Mapping[Link, float] | None = None
) -> str:
    """``i-j i-j …``, sorted by source, then target word, and ``i-j:p`` if there are ``scores``.

    Links that are not ``sure`` are written as possible, ``ipj``; None: all are sure.  p has the fewest digits that give
    the same float64.
    """
    for (i, j), p in (scores or {}).items():
        if not math.isfinite(p):
            raise InputError(f"link {i}-{j} has the confidence {p}, which is not a finite number")
    ordered = sorted(links)
    marks = repeat("-") if sure is None else ["-" if link in sure else "p" for link in ordered]
    ends = repeat("") if scores is None else [f":{float(scores[link])!r}" for link in ordered]
    return " ".join(f"{i + base}{mark}{j + base}{end}" for (i, j), mark, end in zip(ordered, marks, ends))


def _naacl_lines(n: int, sentence: GoldSentence, base: int) -> Iterator[str]:
    """``sentence i j S|P [confidence]``, a line a link; a sentence without links has none."""
    for i, j in sorted(sentence.possible):
        confidence = "" if sentence.confidence is None else f" {float(sentence.confidence[i, j])!r}"
        yield f"{n + 1} {i + base} {j + base} {'S' if (i, j) in sentence.sure else 'P'}{confidence}"


def _of(to_pairs: Callable[[Lines, str], Lines]) -> Parse:
    """The parser of a format whose lines become lines of links."""
    return lambda lines, name, *how: _parse_lines(to_pairs(lines, name), name, *how)


def _first(pattern: re.Pattern[bytes]) -> Callable[[bytes], object]:
    """Whether the first line of a file is of a form."""
    return lambda head: pattern.fullmatch(head.partition(b"\n")[0])


Parse = Callable[[Lines, str, Tokens, bool], Iterator[GoldSentence]]


@dataclass(frozen=True)
class Format:
    """All that is known of a format of alignment files; docs/formats.md shows its lines."""

    #: gives the sentences in their order; called with the lines, the file's name, for messages, what gives the links,
    #: and whether possible links may occur
    parse: Parse
    #: whether a file that begins so, without blank lines before, is in this format; None: the format of lines without a
    #: mark, of gold or of hypotheses
    shows: Callable[[bytes], object] | None = None
    #: gives the lines of a sentence; called with its number, from 0, the sentence, and the index of the first word.  It
    #: leaves out what the format cannot hold.  None: the format is only read.
    write: Callable[[int, GoldSentence, int], Iterable[str]] | None = None
    #: the indices that the first word may have, the usual one first; empty: as the user says
    bases: tuple[int, ...] = ()
    holds_gold: bool = False  #: a file of it may be gold
    holds_possible: bool = False  #: what is written keeps possible links
    holds_confidences: bool = False  #: what is written keeps confidences
    #: the number of the first sentence in a file whose lines are not its sentences; None: they are
    first: int | None = None
    is_open: bool = False  #: it does not show how many sentences follow the last link
    of_tokens: bool = False  #: its tool links the tokens of a model, which may be subwords
    unread: str = ""  #: what of a file is not read, for a warning


#: In the order in which they are tried.
FORMATS: Mapping[str, Format] = {
    "pharaoh": Format(
        partial(_parse_lines, scored=False), write=lambda n, sentence, base: [format_links(sentence.possible, base)]
    ),
    "talp": Format(
        partial(_parse_lines, scored=False),
        write=lambda n, sentence, base: [format_links(sentence.possible, base, sentence.sure)],
        holds_gold=True,
        holds_possible=True,
    ),
    "scored": Format(
        partial(_parse_lines, scored=True),
        _SCORED.match,
        lambda n, sentence, base: [format_links(sentence.possible, base, sentence.sure, sentence.confidence)],
        holds_possible=True,
        holds_confidences=True,
    ),
    "naacl": Format(
        _parse_naacl,
        _first(_NAACL_LINE),
        _naacl_lines,
        bases=(1, 0),
        holds_gold=True,
        holds_possible=True,
        holds_confidences=True,
        first=1,
        is_open=True,
    ),
    "fairseq": Format(
        _of(_best_of_fairseq),
        _GENERATE_LINE.search,
        lambda n, sentence, base: [f"A-{n}\t{format_links(sentence.possible, base)}"],
        bases=(0,),
        first=0,
        of_tokens=True,
        unread="only the first A- line of each sentence is taken, no other line",
    ),
    "giza": Format(_of(_of_giza), _first(_A3), bases=(1,), first=1),
    "simalign": Format(_of(_numbered), _first(_SIMALIGN), bases=(0,), holds_gold=True),
    "fast_align": Format(
        _of(partial(_beside, before=True)), _first(_FAST_ALIGN), unread="the scores of its sentences are dropped"
    ),
    "opennmt": Format(_of(partial(_beside, before=False)), _first(_OPENNMT), of_tokens=True),
}


def detect_format(text: bytes, gold: bool = False) -> str:
    """The format of a file that begins so, of gold or of a hypothesis."""
    head = text.lstrip()
    named = (name for name, format in FORMATS.items() if format.shows is not None and format.shows(head))
    return next(named, "talp" if gold else "pharaoh")
