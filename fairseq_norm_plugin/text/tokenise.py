"""The text pipeline of one side of a model: a line of text → its words → pieces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from fairseq_norm_plugin.text.pieces import Pieces, Splitter

#: Words are separated by ASCII white space only; other Unicode spaces may be part of a word.
_WORD = re.compile(r"[^ \t\n\r\v\f]+")
#: Names of characters of scripts that are written without blanks between words.
_UNSPACED = re.compile(r"CJK|HIRAGANA|KATAKANA|THAI|LAO|KHMER|MYANMAR|TIBETAN|YI|BOPOMOFO|IDEOGRAPHIC|FULLWIDTH")


class WordsInText(list[str]):
    """The words of a sentence, with the ``text`` that they stand in, in this order."""

    def __init__(self, words: Sequence[str], text: str | None = None) -> None:
        super().__init__(words)
        self.text = " ".join(words) if text is None else text


def words_of_text(text: str) -> list[str]:
    """The words of a sentence that blanks separate."""
    return _WORD.findall(text)


def characters_of_text(text: str) -> list[str]:
    """The characters of a sentence in scripts without blanks between words; what else stands together is one word.

    A combining character belongs to the one before it.
    """
    words: list[str] = []
    for token in words_of_text(text):
        before = True  # whether the character before this one ends a word
        for place, character in enumerate(token):
            joins = place and unicodedata.combining(character)
            unspaced = is_unspaced(character)
            if not joins and (before or unspaced):
                words.append(character)
            else:
                words[-1] += character
            before = before if joins else unspaced
    return words


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that puts no blanks between words."""
    return character > "\u0dff" and _UNSPACED.match(unicodedata.name(character, "")) is not None


class TextPipeline:
    """From a line of text to the pieces that a model reads.

    Args:
        splitter: cuts words into pieces.
        tokenize: from a raw line to tokens separated by blanks; None: the line is taken as it is.
        words: what the words are, one of :data:`~fairseq_norm_plugin.choices.WORDS`.
    """

    def __init__(self, splitter: Splitter, tokenize: Callable[[str], str] | None = None, words: str = "blanks") -> None:
        self._splitter = splitter
        self._tokenize = tokenize
        self._words = words

    def read(self, line: str) -> WordsInText:
        """The words of a line; what is in pieces already is not joined yet (:meth:`words`)."""
        text = line if self._tokenize is None else self._tokenize(line)
        if self._words == "characters":
            return WordsInText(characters_of_text(text), text)
        words = words_of_text(text)
        return WordsInText(words, "".join(words) if self._words == "segmented" else None)

    def segment(self, words: Sequence[str]) -> Pieces:
        """The pieces of a sentence."""
        return self._splitter(words, words.text if isinstance(words, WordsInText) else " ".join(words))

    def words(self, words: Sequence[str]) -> list[str]:
        """The words of a sentence that links count."""
        return self._splitter.words(words)
