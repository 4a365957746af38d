"""A sentence pair: two raw lines, their words, the subwords that a model reads of them, and the strings of both."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from alignment_eval.errors import InputError, UsageError, shown
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import SentenceSide, Span, marks_of_tools
from alignment_eval.transfer.pieces import Strings, is_inside_word
from alignment_eval.transfer.units import character_spans
from fairseq_norm_plugin.text.offsets import Tokenizer, TracedText, is_visible, word_spans
from fairseq_norm_plugin.text.subwords import BpeSegmenter, Segmenter

#: A side without tokens, and its ids.
NO_SIDE, NO_IDS = SentenceSide.of_words(()), torch.empty(0, dtype=torch.long)
#: Commas and full stops apart from words, and at their end.
_APART, _ATTACHED = re.compile(r" [,.](?= |$)"), re.compile(r"\w[,.](?= |$)")
#: Lines look tokenised, or raw, if so many commas and full stops are apart, or attached.
_FEWEST_MARKS = 10
#: The languages whose rules sentencex has, as NLLB names them (``deu_Latn``), and by its own names.
_KNOWN_TO_SENTENCEX = dict(
    re.findall(
        r"(\w+)-(\w+)",
        "amh-am arb-ar bul-bg ben-bn cat-ca dan-da deu-de ell-el eng-en spa-es fin-fi fra-fr guj-gu hin-hi hye-hy "
        "ita-it jpn-ja kaz-kk kan-kn mal-ml mar-mr mya-my nld-nl pan-pa pol-pl por-pt rus-ru slk-sk tam-ta tel-te "
        "ukr-uk",
    )
)


@dataclass(frozen=True)
class Line:
    """One side of a sentence pair: the words that links count, and, once it is encoded, what a model reads.

    Attributes:
        text: the raw line; of a line in subwords, the words that they spell, with spaces between.
        spans: the characters of each word in ``text``; they do not overlap.
        given: the line as it was given, without its markup.
        side: the tokens that the model reads, with their words.
        ids: their ids in the model's dictionary, with the special tokens around them.
        unknown: how many of them the dictionary lacks.
        certain: whether the words are certainly those of the text (tokens.Spelling).
        copies: the characters of strings that stand in the other line, too, and that no model reads
            (:func:`with_copies`); the other line has as many, in the same order.
        sentences: its sentences, if it was cut into several; their texts join to its own.
        marked: the line with its markup; empty if none was read.
    """

    text: str
    spans: tuple[Span, ...]
    given: str
    side: SentenceSide = field(default=NO_SIDE, compare=False)
    ids: Tensor = field(default=NO_IDS, compare=False)
    unknown: int = 0
    certain: bool = True
    copies: tuple[Span, ...] = ()
    sentences: tuple[Line, ...] = ()
    marked: str = ""

    @classmethod
    def joined(cls, sentences: Sequence[Line]) -> Line:
        """The line that sentences join to."""
        text, given = ("".join(getattr(line, name) for line in sentences) for name in ("text", "given"))
        starts = list(itertools.accumulate((len(line.text) for line in sentences), initial=0))
        spans, copies = (
            tuple((a + start, b + start) for start, line in zip(starts, sentences) for a, b in getattr(line, name))
            for name in ("spans", "copies")
        )
        return cls(text, spans, given, copies=copies, sentences=tuple(sentences))

    @property
    def words(self) -> tuple[str, ...]:
        """The words, as they are in the text."""
        return tuple(self.text[start:end] for start, end in self.spans)

    def __len__(self) -> int:
        return len(self.spans)

    def traced(self) -> TracedText:
        """The text without copies, if anything is left."""
        whole = TracedText.of(self.text)
        rest = whole.replaced((*span, " " if is_inside_word(self.text, *span) else "") for span in sorted(self.copies))
        return rest if is_visible(rest.text) else whole

    def words_of(self, span: Span) -> list[int]:
        """The words that have characters of a span."""
        return [word for word, (start, end) in enumerate(self.spans) if start < span[1] and span[0] < end]


class SentencePair(NamedTuple):
    """A sentence pair: two raw lines, their words, and, once a model has encoded them, their tokens."""

    source: Line
    target: Line

    @property
    def exchanged(self) -> SentencePair:
        """The pair with source and target exchanged, as the model of the other direction reads it."""
        return SentencePair(self.target, self.source)

    @property
    def words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words of source and target."""
        return self.source.words, self.target.words

    @property
    def sentences(self) -> list[SentencePair]:
        """The pairs of their sentences if both lines have equally many, else the pair itself."""
        source, target = self.source.sentences, self.target.sentences
        return list(map(SentencePair, source, target)) if len(source) == len(target) > 0 else [self]

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of each side that is encoded."""
        return [len(line.ids) for line in self if len(line.ids)]


# ---- from a line to words and subwords


class TextPipeline:
    """From a raw line to its words and to the subwords that a model reads.

    Args:
        segmenter: cuts the model's text into subwords.
        tokenizer: makes the model's text; None: the model reads the line as it is.
        word_tokenizer: whose tokens are words; None: words are what whitespace separates.
        lowercase: whether the model reads lower case.
        words: what the words are, one of :data:`~alignment_eval.profiles.profile.WORDS`.
    """

    def __init__(
        self,
        segmenter: Segmenter,
        tokenizer: Tokenizer | None = None,
        word_tokenizer: Tokenizer | None = None,
        lowercase: bool = False,
        words: str = "tokens",
    ) -> None:
        self._segmenter = segmenter
        self._tokenizer = tokenizer
        self._lowercase = lowercase
        self._tokenizes = words == "tokens" and word_tokenizer is not None
        # codes cut words, so without a tokenizer a comma stays a part of its word
        self._needs_tokens = word_tokenizer is None and isinstance(segmenter, BpeSegmenter)
        self._word_spans: Callable[[str], Sequence[Span]] = character_spans if words == "characters" else word_spans
        if words == "tokens" and word_tokenizer is not None:
            self._word_spans = lambda text: word_tokenizer.trace(text).tokens()
        # both directions ask for the same line one after the other
        self._cut = lru_cache(maxsize=64)(self._cut_line)
        #: Gives the sentences of a line.
        self.split: Callable[[str], list[str]] = lambda line: [line]

    def in_sentences(self, language: str) -> TextPipeline:
        """The same pipeline, which cuts lines into sentences."""
        if not self.reads_raw:
            raise UsageError("text in subwords is not cut into sentences: expected a model that reads raw text")
        pipeline = copy.copy(self)
        pipeline.split = sentence_splitter(language)
        return pipeline

    @property
    def reads_raw(self) -> bool:
        """Whether the text is given in words, not in subwords."""
        return self._segmenter.reads_raw

    def read(self, given: str | Sequence[str], words: Sequence[str] | None = None) -> Line:
        """The words of a line, which may be ``given`` in sentences, and with its ``words``."""
        sentences = self.split(given) if isinstance(given, str) else given
        texts = list(map(self._segmenter.text_of, sentences))
        if words is None:
            spans = [self._word_spans(text) if is_visible(text) else () for text in texts]
        else:
            texts, spans = _with_words(texts, spans_of_words(words, "".join(texts)))
        if len(texts) == 1:
            return Line(texts[0], tuple(spans[0]), "".join(sentences))
        return Line.joined([Line(text, tuple(own), text) for text, own in zip(texts, spans)])

    def prepared(self, lines: Sequence[str]) -> str | None:
        """What shows that ``lines`` are not in the form that is read, and what to do; None: nothing does."""
        if not self._segmenter.reads_raw:
            return None
        cut, escaped = marks_of_tools(lines)
        if cut:
            return f"looks cut into subwords: {cut}; state --bpe none, or give the text before it was cut"
        apart, attached = (sum(len(mark.findall(line)) for line in lines) for mark in (_APART, _ATTACHED))
        found = "{} of {} commas and full stops of the sampled lines {}"
        if self._tokenizes and (escaped or (apart >= _FEWEST_MARKS and apart > 2 * attached)):
            found = escaped or found.format(apart, apart + attached, "stand apart from words")
            return f"looks tokenised: {found}; state --tokenizer none, or give raw text"
        if self._needs_tokens and attached >= _FEWEST_MARKS and attached > 2 * apart:
            found = found.format(attached, apart + attached, "are part of words, as no tokenizer is used")
            return f"looks raw: {found}; state that of the training text, such as --tokenizer moses, or give tokens"
        return None

    def segment(self, line: Line, before: Sequence[str] = (), after: Sequence[str] = ()) -> SentenceSide:
        """The subwords of a line, and the words that they belong to, by overlap of their spans in the line.

        ``before`` and ``after`` are special tokens around the subwords.
        """
        side = self._cut(line)
        words = np.full(len(before) + len(side.words) + len(after), -1, dtype=np.int32)
        words[len(before) : len(before) + len(side.words)] = side.words
        return replace(side, tokens=(*before, *side.tokens, *after), words=words)

    def _cut_line(self, line: Line) -> SentenceSide:
        """The subwords of a line without special tokens."""
        traced = line.traced() if line.copies else TracedText.of(line.text)
        if self._tokenizer is not None:
            tokens_of = self._tokenizer.trace(traced.text)
            traced = tokens_of.after(traced) if line.copies else tokens_of
        traced = traced.lowercased() if self._lowercase else traced
        tokens, cuts = self._segmenter.cut(traced.text, line.given)
        runs, counts = runs_of([traced.span(*cut) for cut in cuts], line.spans)
        forms = tuple(word.lower() for word in line.words) if self._lowercase else line.words
        return SentenceSide(tuple(tokens), runs, counts, forms, (line.text, line.spans))

    def raw(self, tokens: Sequence[str]) -> str:
        """The line that subwords spell, as fairseq-generate prints it (D-)."""
        text = self._segmenter.joined(tokens)
        return text if self._tokenizer is None else self._tokenizer.decode(text)


def spans_of_words(words: Sequence[str], text: str) -> list[Span]:
    """The spans of given words, which are all of a text but its white space; ``_`` in a word may be a blank there."""
    spans: list[Span] = []
    end = 0
    for number, word in enumerate(words):
        found = re.compile(r"\s*(" + re.escape(word).replace("_", r"(?:_|[ \t]+)") + ")").match(text, end)
        if found is None:
            raise InputError(
                f"word {number + 1} of the segmentation, {shown(word)}, does not come next in the line "
                f"(blanks separate words; a blank inside a word is given as _)"
            )
        end = found.end()
        spans.append(found.span(1))
    if text[end:].strip():
        raise InputError(f"the segmentation lacks {shown(text[end:].strip())} at the end of the line")
    return spans


def _with_words(texts: Sequence[str], words: Sequence[Span]) -> tuple[list[str], list[Sequence[Span]]]:
    """Sentences with their words, of words of the whole line; a border inside a word is none."""
    whole, start, end = "".join(texts), 0, 0
    sentences: list[str] = []
    spans: list[Sequence[Span]] = []
    for text in texts:
        end += len(text)
        own = [(a - start, b - start) for a, b in words if start <= a < end]
        if not own or own[-1][1] <= end - start:
            sentences.append(whole[start:end])
            spans.append(own)
            start = end
    return sentences, spans


def runs_of(subwords: Sequence[Span], words: Sequence[Span]) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
    """The runs of words that subwords belong to: the shortest such that no subword has characters of two runs.

    A subword without a character of a word, such as a lone space, belongs to the next word.  A word without a subword,
    such as one that normalisation removes, belongs to the run of the word before it.

    Args:
        subwords: the characters of the text that each subword is of.
        words: those of each word.

    Returns:
        The run of each subword, -1 without words, and the number of words of each run (None: one each).
    """
    if not subwords or not words:
        return np.full(len(subwords), -1, dtype=np.int32), None
    (starts, ends), (word_starts, word_ends) = zip(*subwords), zip(*words)
    last_word = len(words) - 1
    first = np.minimum(np.searchsorted(word_ends, starts, side="right"), last_word)
    last = np.maximum(first, np.searchsorted(word_starts, ends, side="left") - 1)
    reached = np.concatenate([[-1], np.maximum.accumulate(last)[:-1]])
    begins = first > reached
    runs = np.cumsum(begins) - 1
    bounds = first[begins]
    bounds[0] = 0
    counts = np.diff([*bounds, last_word + 1])
    return runs.astype(np.int32), None if (counts == 1).all() else counts.astype(np.int32)


def sentence_splitter(language: str) -> Callable[[str], list[str]]:
    """What cuts a text of a language into sentences, which join to the text.

    The language may have more parts (``de_DE``, ``deu_Latn``); one that sentencex does not know is cut as English.
    """
    try:
        from sentencex import segment
    except ImportError as error:
        raise InputError("cutting lines into sentences needs sentencex: pip install sentencex") from error
    if not language:
        raise InputError("the languages of the model are not known: state source and target language (-s, -t)")
    first = re.split("[-_]", language)[0].lower()
    code = _KNOWN_TO_SENTENCEX.get(first, first)

    def split(text: str) -> list[str]:
        sentences: list[str] = []
        for part in segment(code, text):
            if sentences and not (is_visible(part) and is_visible(sentences[-1])):
                sentences[-1] += part
            else:
                sentences.append(part)
        return sentences or [text]

    return split


def splitter_name() -> str:
    """The splitter, as signatures name it."""
    return f"sentencex-{version('sentencex')}"


# ---- strings that both lines have


def with_copies(pair: SentencePair, strings: Strings) -> SentencePair:
    """The pair, with the strings that stand in both lines."""
    if len(pair.sentences) > 1:
        sides = map(Line.joined, zip(*(with_copies(sentence, strings) for sentence in pair.sentences)))
        both = zip(sides, pair)
        return SentencePair(*(replace(side, given=line.given, marked=line.marked) for side, line in both))
    copies: list[tuple[Span, Span]] = []
    rest = strings.spans(pair.target.text)
    for span in strings.spans(pair.source.text):
        string = pair.source.text[slice(*span)]
        copy = next((other for other in rest if pair.target.text[slice(*other)] == string), None)
        if copy is not None:
            rest.remove(copy)
            copies.append((span, copy))
    if not copies:
        return pair
    return SentencePair(*(replace(line, copies=spans) for line, spans in zip(pair, zip(*copies))))


def linked_copies(pair: SentencePair) -> tuple[set[int], set[int], set[Link]]:
    """The source words and the target words of copies, and their links."""
    links: set[Link] = set()
    sides: tuple[set[int], set[int]] = set(), set()
    for spans in zip(*(line.copies for line in pair)):
        sources, targets = (line.words_of(span) for line, span in zip(pair, spans))
        links.update(zip(sources, targets) if len(sources) == len(targets) else itertools.product(sources, targets))
        sides[0].update(sources)
        sides[1].update(targets)
    return (*sides, links)
