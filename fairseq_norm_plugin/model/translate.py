"""Translates lines, and carries over to a translation what its alignment places: copies, markup, labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape
from typing import Any

from alignment_eval.alignment import Alignment
from alignment_eval.characters import is_unspaced
from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from alignment_eval.transfer.labels import project_labels, spans_of
from alignment_eval.transfer.markup import transfer_markup
from alignment_eval.transfer.tags import MarkedLine, Syntax, parse_markup, protect
from fairseq_norm_plugin.capture.attention import in_one_thread
from fairseq_norm_plugin.environment import enough_threads
from fairseq_norm_plugin.hooks.generator import NormSequenceGenerator
from fairseq_norm_plugin.model.direction import Direction, count_tokens, length_batches
from fairseq_norm_plugin.text.offsets import is_visible
from fairseq_norm_plugin.text.tokenise import Line, SentencePair

#: What stands for an unknown subword in a translation until a source word is copied: no text has this character.
UNKNOWN = "\ue000"
#: Unknown words, side by side.
_UNKNOWN_WORDS = re.compile(rf"{UNKNOWN}(?:\s*{UNKNOWN})*")
#: What looks like a tag in a line whose markup is damaged.
_TAG = re.compile(r"</?[A-Za-z!?][^<>]*>")
#: Translations that are completed together: their word maps are kept meanwhile.
_TOGETHER = 1000


@dataclass(frozen=True)
class Translation:
    """A translation, as fairseq-generate prints it (D-); empty, without a score, if the source was not translated.

    The score is the mean log probability of its ``tokens``, base e.  If the source was cut into several ``sentences``,
    their translations join to the text.
    """

    text: str = ""
    score: float | None = None
    tokens: int = 0
    sentences: tuple[str, ...] = ()


class Translator:
    """Translates by fairseq's own beam search, by the models of one direction."""

    def __init__(self, direction: Direction) -> None:
        self.direction = direction

    def translate(
        self, sources: Sequence[str], beam: int, max_tokens: int, progress: Callable[[int], object] = lambda _: None
    ) -> list[Translation]:
        """The best translation of each raw line, in their order, with :data:`UNKNOWN` for each ``<unk>``.

        A line of which the models read nothing, or one that is longer than they take, gets an empty translation.
        ``progress`` is called with the number of lines after each batch.
        """
        pairs: dict[int, SentencePair] = {}
        for id_, line in enumerate(map(self.direction.pipelines[0].read, sources)):
            source = self.direction.encode_line(line, 0)
            if not self.direction.refusal([source]):
                pairs[id_] = SentencePair(source, Line("", (), ""))
        translations = [Translation()] * len(sources)
        progress(len(sources) - len(pairs))
        for batch in length_batches(pairs, max_tokens):
            for id_, best in self.search(batch, beam).items():
                tokens = best["tokens"].tolist()
                translations[id_] = Translation(self._text(tokens), float(best["score"]), len(tokens))
            progress(len(batch))
        return translations

    def search(self, pairs: Mapping[int, SentencePair], beam: int) -> dict[int, dict[str, Any]]:
        """The best hypothesis of fairseq's beam search for the source of each pair of a batch, by id."""
        sample = self.direction.sample(pairs, targets=False)
        special, models = self.direction.special_tokens, self.direction.models
        dictionary = self.direction.vocabularies[1].dictionary
        eos, prefix = special.target_suffix[-1], special.target_prefix
        source = sample["net_input"]["src_tokens"]
        forced = source.new_tensor(prefix).expand(len(source), -1) if prefix else None
        first = None if special.first == eos else special.first
        threads = enough_threads(models, count_tokens(pairs))
        with threads, in_one_thread(models):  # a generator sets its beam on the models
            generator = NormSequenceGenerator(models, dictionary, beam_size=beam, eos=eos)
            hypotheses = generator.generate(models, sample, prefix_tokens=forced, bos_token=first)
        return {id_: best for id_, (best, *_) in zip(sample["id"].tolist(), hypotheses)}

    def _text(self, ids: Sequence[int]) -> str:
        vocabulary = self.direction.vocabularies[1]
        tokens = [vocabulary.dictionary[number] for number in ids if number not in vocabulary.specials]
        text, unknown = self.direction.pipelines[1].raw(tokens), vocabulary.dictionary.unk()
        return text.replace(vocabulary.dictionary[unknown], UNKNOWN) if unknown in ids else text


def translate_lines(
    lines: Sequence[str],
    translate: Callable[[Sequence[str]], list[Translation]],
    align: Callable[[Sequence[str], Sequence[str]], Sequence[Alignment]],
    strings: re.Pattern[str] | None,
) -> list[Translation]:
    """Translate raw lines, and put back what a model does not translate: ``strings`` if given, and unknown words.

    ``translate`` is :meth:`Translator.translate`; ``align`` aligns lines with their translations, with word maps.
    """
    marked = [MarkedLine(line, (), escaped=False) if strings is None else protect(line, strings) for line in lines]
    translations = translate([line.text for line in marked])
    incomplete = []
    for number, (line, translation) in enumerate(zip(marked, translations)):
        if line.elements and not is_visible(line.text):
            translations[number] = Translation(lines[number])
        elif translation.text and (line.elements or UNKNOWN in translation.text):
            incomplete.append(number)
    for start in range(0, len(incomplete), _TOGETHER):
        numbers = incomplete[start : start + _TOGETHER]
        alignments = align([marked[k].text for k in numbers], [translations[k].text for k in numbers])
        for number, alignment in zip(numbers, alignments):
            text = _completed(translations[number].text, marked[number], alignment)
            translations[number] = replace(translations[number], text=text)
    return translations


def join_translations(sources: Sequence[str], translations: Sequence[Translation]) -> Translation:
    """The translation of a line, of those of its sentences, with the white space that stands between these.

    A space is added or left out as the script of the target has it.  A line is translated if all its sentences are.
    """
    if len(translations) == 1:
        return translations[0]
    if any(not translation.text and translation.score is None for translation in translations):
        return Translation()
    sources = [source for source, translation in zip(sources, translations) if translation.text]
    sentences = [translation.text for translation in translations if translation.text]
    for place, (source, following) in enumerate(zip(sources, sentences[1:])):
        space = source[len(source.rstrip()) :] or " "
        sentences[place] += "" if is_unspaced(following[0]) and space == " " else space
    scored = [(translation.score, translation.tokens) for translation in translations if translation.score is not None]
    tokens = sum(count for _, count in scored)
    score = sum(mean * count for mean, count in scored) / tokens if tokens else None
    parted = tuple(sentences) if len(sentences) == len(translations) else ()
    return Translation("".join(sentences), score, tokens, parted)


def _completed(translation: str, marked: MarkedLine, alignment: Alignment) -> str:
    """A translation with the strings that were taken out of its source, and its unknown words copied from the source.

    ``alignment`` is of the rest of the source and of the translation, with its word maps.
    """
    text = _with_elements(marked, alignment) if marked.elements else translation  # which may be in subwords
    if not alignment.ok:
        return text.replace(UNKNOWN, "<unk>")

    def source_of(target: int) -> int:
        """The source word of the surest link of a target word, or of the largest share if it has none."""
        linked = [i for i, j in alignment.links if j == target]
        if linked:
            return max(linked, key=lambda i: alignment.confidences.get((i, target), 0.0))
        return int(alignment.word_map.to_numpy()[target, :-1].argmax())

    targets = [j for j, word in enumerate(alignment.target_words) for _ in range(word.count(UNKNOWN))]
    sources = iter([source_of(j) for j in targets])

    def copy(unknown: re.Match[str]) -> str:
        words = dict.fromkeys(next(sources) for _ in range(unknown[0].count(UNKNOWN)))  # each once
        return " ".join(alignment.source_words[i] for i in words)

    return _UNKNOWN_WORDS.sub(copy, text)


def _with_elements(marked: MarkedLine, alignment: Alignment) -> str:
    """The target line with the elements of the source line."""
    links = alignment.confidences or alignment.links
    return transfer_markup(marked, alignment.source_spans, alignment.target, alignment.target_spans, links)


@dataclass(frozen=True)
class Markup:
    """How lines with markup are read; ``opaque`` names further elements whose content is no text.

    If the model translates, it leaves out ``strings``.
    """

    syntax: Syntax
    opaque: tuple[str, ...] = ()
    strings: re.Pattern[str] | None = None

    @classmethod
    def of(cls, syntax: str, opaque: Collection[str] = (), strings: re.Pattern[str] | None = None) -> Markup:
        """Check the options; raises UsageError."""
        if syntax not in ("xml", "html"):
            raise UsageError(f"syntax {syntax}: choose xml or html")
        if isinstance(opaque, str) or not all(isinstance(name, str) and name.strip() == name != "" for name in opaque):
            raise UsageError(f"opaque {opaque!r}: expected names of elements, such as code, without < and >")
        names = tuple(name.lower() if syntax == "html" else name for name in opaque)
        return cls("xml" if syntax == "xml" else "html", names, strings)

    def read(self, line: str) -> MarkedLine:
        """A line without its markup."""
        return parse_markup(line, self.syntax, self.opaque, self.strings)

    def plain(self, line: str, name: str = "", keep_going: bool = False) -> str:
        """A line without its markup, which is what a model reads.

        ``name`` is the line's in messages; if it is empty, the caller adds it.  ``keep_going``: if the markup is
        damaged, drop what looks like a tag.
        """
        try:
            return self.read(line).text
        except InputError as error:
            if keep_going:
                return re.sub(r"[\r\n]", " ", unescape(_TAG.sub("", line)))  # one line, as of markup that is whole
            raise InputError(f"{name}: {error}") if name else error from error

    def put(self, source: str, alignment: Alignment, name: str) -> str:
        """The target line with the markup of the source line (alignment_eval.transfer.markup).

        ``alignment`` is of the source line without markup and of the target line, ``name`` the target's in messages.
        """
        try:
            marked = self.read(source)
            if marked.elements and alignment.status.startswith("longer"):
                raise InputError(f"found a line with tags that is {alignment.status}; cut it into sentences")
            if marked.elements and alignment.source != marked.text:  # its words would be at other places
                raise InputError(
                    "found a line in subwords with tags; expected whole words with one blank between them: give the "
                    "text before it was cut"
                )
            return _with_elements(marked, alignment)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error


def check_labels(labels: Sequence[str], words: Sequence[str], name: str) -> None:
    """Check the labels, called ``name`` in messages, of the ``words`` of a source."""
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise InputError(f"{name}: {labels!r:.40}: expected a list of labels, each of them text")
    if len(labels) != len(words):
        raise InputError(f"{name}: {len(labels)} labels, but the source has {len(words)} words: expected one for each")
    try:
        spans_of(labels)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def with_labels(labels: Sequence[Sequence[str]], alignments: Sequence[Alignment]) -> list[list[tuple[str, str]]]:
    """The words of each target, each with its BIO label, of the ``labels`` of the source words.

    A warning counts the spans without a counterpart.
    """
    projected = []
    for of_line, pair in zip(labels, alignments):
        words = pair.source_words, pair.target_words
        projected.append(project_labels(of_line, pair.confidences or pair.links, len(pair.target_spans), words))
    before, after = (sum(label.startswith("B-") for line in lines for label in line) for lines in (labels, projected))
    if after < before:
        warn_on_stderr(f"{before - after} of {before} spans have no counterpart; their labels are left out")
    return [list(zip(pair.target_words, of_line)) for pair, of_line in zip(alignments, projected)]
