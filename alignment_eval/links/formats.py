"""Word links, and the formats of alignment files, parsed and written sentence by sentence (docs/formats.md).

Links are source-target and count from 0; those of a file as ``base`` and ``swap`` of the :class:`Tokens` say.  An
InputError names ``file:line`` of the first line that is not in the format.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Optional

from alignment_eval.errors import InputError, UsageError, shown

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


#: Number of the line in the file, from 1, and the line without its end.
Lines = Iterable[tuple[int, bytes]]

#: Formats of files that are read and written; each of the others belongs to one tool, and is only read.
HYPOTHESIS_FORMATS = ("pharaoh", "scored", "talp", "naacl", "fairseq")
TOOL_FORMATS = ("giza", "simalign", "fast_align", "opennmt")
GOLD_FORMATS = ("talp", "naacl")

_NUMBER = rb"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
#: A longer number is damage, not a word index.
_LINK = re.compile(rb"0*([0-9]{1,6})[-p?]0*([0-9]{1,6})")
_SCORED = re.compile(rb"[0-9]+[-p?][0-9]+:\S+")
_SOFT = re.compile(rb"[0-9.,eE+-]*,[0-9.,eE+-]*")
_NAACL_LINE = re.compile(
    rb"[ \t]*([0-9]{1,7})[ \t]+([0-9]{1,6})[ \t]+([0-9]{1,6})(?:[ \t]+([SP]))?(?:[ \t]+(%s))?[ \t]*" % _NUMBER
)
_FAIRSEQ_LINE = re.compile(rb"A-([0-9]{1,9})(?:[ \t](.*))?")
_GENERATE_LINE = re.compile(rb"^[STHDPA]-[0-9]+(?:\t|$)", re.MULTILINE)
#: GIZA's A3: a heading, the target words, and each source word (NULL first) with the numbers of its target words.
_A3 = re.compile(rb"# Sentence pair \(([0-9]{1,9})\) .*")
_A3_WORD = re.compile(rb"\S+ \(\{((?: [0-9]{1,6})*) \}\)(?: |$)")
#: A line of simalign's script align_files.py; what ends one of fast_align -s: the sentence's log probability; and what
#: is between a translation and its links.
_SIMALIGN = re.compile(rb"([0-9]{1,9})\t(?:[0-9]+[-p].*)?")
_FAST_ALIGN = re.compile(rb"[ \t]*\|\|\|[ \t]*%s\s*$" % _NUMBER)
_BAR = b"|||"


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


def detect_format(text: bytes) -> str | None:
    """Detect the format from the first lines of a file; None: lines of links without a mark of another format."""
    if _GENERATE_LINE.search(text):
        return "fairseq"
    first = next((line for line in text.split(b"\n") if line.strip()), b"")
    if _SCORED.match(first.lstrip()):
        return "scored"
    marks = {"naacl": _NAACL_LINE, "giza": _A3, "simalign": _SIMALIGN}
    named = next((name for name, mark in marks.items() if mark.fullmatch(first)), None)
    if named is None and _BAR in first:
        return "fast_align" if _FAST_ALIGN.search(first) else "opennmt"
    return named


def parse(format: str, lines: Lines, name: str, tokens: Tokens, allow_possible: bool) -> Iterator[GoldSentence]:
    """The sentences of a file's lines, in their order, in one of :data:`HYPOTHESIS_FORMATS` or :data:`TOOL_FORMATS`.

    ``tokens`` gives the links; ``name`` is the file, for messages; ``allow_possible``: possible links may occur.
    """
    if format == "naacl":
        return _parse_naacl(lines, name, tokens, allow_possible)
    to_pairs = {"fairseq": _best_of_fairseq, "giza": _of_giza, "simalign": _numbered}
    to_pairs |= {"fast_align": partial(_beside, before=True), "opennmt": partial(_beside, before=False)}
    if format in to_pairs:
        lines = to_pairs[format](lines, name)
    return _parse_lines(lines, name, tokens, allow_possible, scored=format == "scored")


def _parse_lines(lines: Lines, name: str, tokens: Tokens, allow_possible: bool, scored: bool) -> Iterator[GoldSentence]:
    """A sentence a line: ``i-j`` sure, ``ipj`` and ``i?j`` possible, with ``:p`` behind each if they are scored."""
    for number, line in lines:
        try:
            sentence = (_scored if scored else _pairs)(line.split(), tokens)
        except _BadTokenError as error:
            raise InputError(f"{name}:{number}: {_wanted(error.args[0], scored)}") from None
        if not allow_possible and (mark := next((mark for mark in ("p", "?") if mark.encode() in line), None)):
            raise _possible_error(f"{name}:{number}", mark)
        yield sentence


def _pairs(words: list[bytes], tokens: Tokens) -> GoldSentence:
    links = frozenset(map(tokens.__getitem__, words))
    plain = [word for word in words if b"p" not in word and b"?" not in word]
    return GoldSentence(links if len(plain) == len(words) else frozenset(map(tokens.__getitem__, plain)), links)


def _scored(words: list[bytes], tokens: Tokens) -> GoldSentence:
    """A duplicate link keeps its largest score.

    Of two scores of a link, ``i-j:p:q`` as SIL's Machine writes, the first counts: that of the translation.
    """
    confidence: dict[Link, float] = {}
    sure = []
    for word in words:
        pair, *numbers = word.split(b":")
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
    """``sentence i j [S|P] [confidence]``, one link a line in any order; blank lines are ignored.

    The highest sentence number is the number of sentences.  If any link has a confidence, links without one have 1.
    """
    expected = "expected NAACL lines 'sentence i j [S|P] [confidence]', with sentences counted from 1"
    sure, confidence = defaultdict[int, set[Link]](set), defaultdict[int, dict[Link, float]](dict)
    scored = False
    for number, line in lines:
        if not line.strip():
            continue
        match = _NAACL_LINE.fullmatch(line)
        if not match or int(match[1]) == 0 or not math.isfinite(score := float(match[5] or 1)):
            raise InputError(f"{name}:{number}: {expected}, found {_text(line)}")
        if match[4] == b"P" and not allow_possible:
            raise _possible_error(f"{name}:{number}", "P")
        n, link = int(match[1]) - 1, tokens.link(int(match[2]), int(match[3]))
        confidence[n][link] = max(score, confidence[n].get(link, score))
        scored = scored or match[5] is not None
        if match[4] != b"P":
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
                f"{name}:{number}: duplicate A-{id_}; each id must occur once, or its n-best lines must stand "
                f"together; check that the file is the output of a single run"
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
    """The links of simalign's ``align_files.py``, whose lines begin with the sentence's number, from 0."""
    for expected, (number, line) in enumerate(lines):
        match = _SIMALIGN.fullmatch(line)
        if not match or int(match[1]) != expected:
            raise InputError(
                f"{name}:{number}: expected the sentence's number {expected}, a tab and links i-j, as simalign's "
                f"align_files.py writes; found {_text(line)}"
            )
        yield number, line.partition(b"\t")[2]


def _beside(lines: Lines, name: str, before: bool) -> Lines:
    """The links before |||, where ``fast_align -s`` has the score of the sentence, or behind a translation and |||."""
    for number, line in lines:
        links, bar, behind = line.rpartition(_BAR)
        if not bar and line.strip():
            what = "and a score after" if before else "between a translation and"
            raise InputError(f"{name}:{number}: expected ||| {what} the links, as in the lines before")
        yield number, links if before else behind


def _wanted(token: bytes, scored: bool) -> str:
    """What is wrong with a token of a line that should hold links, or links with scores."""
    found = _text(token)
    if token.startswith(b"{"):
        return f"{found} begins a line of JSON; expected lines of links, as norm-align writes them to FILE.pharaoh"
    if scored and _LINK.fullmatch(token):
        return f"{found} has no score, but other links have; give every link a score, i-j:p, or none"
    if not scored and _SCORED.fullmatch(token):
        return f"{found} has a score, but the links before have none; give every link a score, i-j:p, or none"
    if not scored and _SOFT.fullmatch(token):
        return f"{found} is a list of weights, not a link i-j; generate with --print-alignment hard"
    form = "i-j:p (p a finite number)" if scored else "i-j (sure, such as 2-3), or ipj or i?j (possible)"
    return f"{found} is not a link {form}; whitespace separates links, and i and j are below 1000000"


def _possible_error(place: str, mark: str) -> InputError:
    return InputError(
        f"{place}: found a possible link ({mark}) where only sure links are allowed; check that gold and hypothesis "
        f"are not exchanged, or convert the file first (align-eval convert), which keeps or drops possible links"
    )


def _text(content: bytes) -> str:
    return shown(content.decode(errors="replace"))


def format_lines(sentences: Iterable[GoldSentence], format: str, base: int) -> Iterator[str]:
    """The lines of a whole file in a format of :data:`HYPOTHESIS_FORMATS`.

    Formats without possible links get plain links, formats without confidences drop them; the caller must report what
    is lost.  NAACL lines end with the last sentence that has links.  ``base`` is the number of the first word.
    """
    if format not in HYPOTHESIS_FORMATS:
        raise UsageError(f"unknown format {shown(format)}; choose one of {', '.join(HYPOTHESIS_FORMATS)}")
    for n, sentence in enumerate(sentences):
        if format == "naacl":  # sentence i j S|P [confidence], a line a link; a sentence without links has none
            for i, j in sorted(sentence.possible):
                confidence = "" if sentence.confidence is None else f" {float(sentence.confidence[i, j])!r}"
                yield f"{n + 1} {i + base} {j + base} {'S' if (i, j) in sentence.sure else 'P'}{confidence}"
            continue
        marked = sentence.sure if format in ("talp", "scored") else None
        line = format_links(sentence.possible, base, marked, sentence.confidence if format == "scored" else None)
        yield f"A-{n}\t{line}" if format == "fairseq" else line


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
