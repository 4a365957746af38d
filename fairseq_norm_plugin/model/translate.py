"""Translates lines, and copies from them what a model does not translate."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairseq.sequence_generator import SequenceGenerator

from alignment_eval.alignment import Alignment
from alignment_eval.extraction.pair_scores import DECIMALS
from alignment_eval.transfer.pairs import with_elements
from alignment_eval.transfer.tags import MarkedLine, protect
from alignment_eval.transfer.units import is_unspaced
from fairseq_norm_plugin.capture.attention import in_one_thread
from fairseq_norm_plugin.environment import enough_threads
from fairseq_norm_plugin.model.direction import Direction, count_tokens, length_batches
from fairseq_norm_plugin.text.offsets import is_visible
from fairseq_norm_plugin.text.pair import Line, SentencePair

#: What stands for an unknown subword in a translation until a source word is copied: no text has this character.
UNKNOWN = "\ue000"
#: Unknown words, side by side.
_UNKNOWN_WORDS = re.compile(rf"{UNKNOWN}(?:\s*{UNKNOWN})*")
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
                translations[id_] = Translation(self._text(tokens), round(float(best["score"]), DECIMALS), len(tokens))
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
            generator = SequenceGenerator(models, dictionary, beam_size=beam, eos=eos)
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
    score = round(sum(mean * count for mean, count in scored) / tokens, DECIMALS) if tokens else None
    parted = tuple(sentences) if len(sentences) == len(translations) else ()
    return Translation("".join(sentences), score, tokens, parted)


def _completed(translation: str, marked: MarkedLine, alignment: Alignment) -> str:
    """A translation with the strings that were taken out of its source, and its unknown words copied from the source.

    ``alignment`` is of the rest of the source and of the translation, with its word maps.
    """
    text = with_elements(marked, alignment) if marked.elements else translation  # which may be in subwords
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
