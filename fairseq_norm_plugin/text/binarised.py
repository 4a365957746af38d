"""The texts of binarised sentences: their tokens before the dictionary turned them into ids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from alignment_eval.errors import InputError
from alignment_eval.links.text import TextFile
from fairseq_norm_plugin.text.tokens import Spelling, Vocabulary


class TextLines:
    """The sentences of a text, one per line.

    Attributes:
        name: the file.
        hash: the hash of its content.
    """

    def __init__(self, path: str | Path, size: int) -> None:
        file = TextFile(path)
        self._lines = [line for _, line in file.lines()]
        self.name, self.hash = file.name, file.hash.short
        if len(self._lines) != size:
            raise InputError(
                f"{self.name}: the text has {len(self._lines)} lines, but the binarised data has {size} sentences; "
                f"give the text of that data, line by line"
            )

    def tokens(self, id_: int) -> list[str]:
        """The tokens of sentence ``id_``, separated by ASCII blanks only; fairseq also separates at others."""
        return [token.decode() for token in self._lines[id_].split()]


@dataclass(frozen=True, eq=False)
class SideReader:
    """Reads one side of the sentences of a data set.

    Attributes:
        vocabulary: the vocabulary of its ids.
        dataset: fairseq's data set of sentence pairs, which may hold the text itself (:func:`surface`).
        which: ``src`` or ``tgt``.
        text: its text, if given.
        cut: whether a sentence may be only the beginning of its text.
    """

    vocabulary: Vocabulary
    dataset: Any
    which: str
    text: TextLines | None = None
    cut: bool = False

    def spell(self, id_: int, ids: Tensor) -> Spelling:
        """The tokens and words that the ``ids`` of sentence ``id_`` spell."""
        if self.text is None:
            return self._by_data(id_, ids)
        try:
            return self.vocabulary.spell(ids, self.text.tokens(id_), self.cut)
        except InputError as error:
            raise InputError(f"{self.text.name}:{id_ + 1}: {error}") from error

    def _by_data(self, id_: int, ids: Tensor) -> Spelling:
        forms = surface(self.dataset, self.which, id_)
        try:
            return self.vocabulary.spell(ids, forms, cut=True)
        except InputError:  # the data set has changed the sentence, so its text does not help with these tokens
            return self.vocabulary.spell(ids)


def side_readers(
    dataset: Any,
    size: int,
    vocabularies: tuple[Vocabulary, Vocabulary],
    texts: tuple[str | Path | None, str | Path | None],
    cut: bool,
) -> tuple[SideReader, SideReader]:
    """Readers of source and target.

    Args:
        dataset: fairseq's data set of sentence pairs.
        size: its number of sentences.
        vocabularies: of source and target.
        texts: files of source and target text, if given.
        cut: whether source sentences may be cut (``--truncate-source``).
    """
    source, target = (
        SideReader(vocabulary, dataset, which, None if path is None else TextLines(path, size), cut and which == "src")
        for vocabulary, which, path in zip(vocabularies, ("src", "tgt"), texts)
    )
    return source, target


def surface(dataset: Any, which: str, id_: int) -> list[str] | None:
    """The original tokens of a sentence, if the data set keeps them (``--dataset-impl raw``); else None.

    Args:
        dataset: a data set of sentence pairs, which may be wrapped in another and have tags added.
        which: ``src`` or ``tgt``.
        id_: the sentence.
    """
    while dataset is not None and not hasattr(dataset, which):
        parts = getattr(dataset, "datasets", None)
        dataset = parts[0] if parts else getattr(dataset, "dataset", None)
    texts = getattr(dataset, which, None)
    while texts is not None and not hasattr(texts, "get_original_text"):
        texts = getattr(texts, "dataset", None)
    return None if texts is None else str(texts.get_original_text(id_)).split()
