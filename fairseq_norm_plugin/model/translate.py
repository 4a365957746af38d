"""Translates lines, and copies from them what a model does not translate."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from alignment_eval.alignment import Alignment
from alignment_eval.extraction.pair_scores import DECIMALS
from alignment_eval.transfer.pairs import with_elements
from alignment_eval.transfer.pieces import Strings
from alignment_eval.transfer.tags import MarkedLine, protect
from alignment_eval.transfer.units import is_unspaced
from fairseq_norm_plugin.text.offsets import is_visible

#: What stands for an unknown subword in a translation until a source word is copied: no text has this character.
COPY = "\ue000"
#: Those, side by side.
_TO_COPY = re.compile(rf"{COPY}(?:\s*{COPY})*")
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


def translate_lines(
    lines: Sequence[str],
    translate: Callable[[Sequence[str]], list[Translation]],
    align: Callable[[Sequence[str], Sequence[str]], Sequence[Alignment]],
    strings: Strings | None,
) -> list[Translation]:
    """Translate raw lines, and put back what a model does not translate: ``strings`` if given, and unknown words.

    ``translate`` is :meth:`.model.Model.translate`; ``align`` aligns lines with their translations, with word maps.
    """
    marked = [MarkedLine(line, (), escaped=False) if strings is None else protect(line, strings) for line in lines]
    translations = translate([line.text for line in marked])
    incomplete = []
    for number, (line, translation) in enumerate(zip(marked, translations)):
        if line.elements and not is_visible(line.text):
            translations[number] = Translation(lines[number])
        elif translation.text and (line.elements or COPY in translation.text):
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
        return text.replace(COPY, "<unk>")

    def source_of(target: int) -> int:
        """The source word of the surest link of a target word, or of the largest share if it has none."""
        linked = [i for i, j in alignment.links if j == target]
        if linked:
            return max(linked, key=lambda i: alignment.confidences.get((i, target), 0.0))
        return int(alignment.word_map.to_numpy()[target, :-1].argmax())

    targets = [j for j, word in enumerate(alignment.target_words) for _ in range(word.count(COPY))]
    sources = iter([source_of(j) for j in targets])

    def copy(unknown: re.Match[str]) -> str:
        words = dict.fromkeys(next(sources) for _ in range(unknown[0].count(COPY)))  # each once
        return " ".join(alignment.source_words[i] for i in words)

    return _TO_COPY.sub(copy, text)
