"""From token ids to the tokens and words that records hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Optional

from torch import Tensor

from alignment_eval.maps.sentence import SentenceSide
from alignment_eval.maps.subwords import detect_mark, word_indices


def dictionary_mark(dictionary: Any, option: str) -> str:
    """The subword mark of a fairseq dictionary, unless ``option`` states it."""
    return detect_mark(dictionary.symbols[dictionary.nspecial :]) if option == "auto" else option


def special_ids(dictionary: Any, tags: Iterable[str] = ()) -> frozenset[int]:
    """The ids that belong to no word: of ``</s>``, ``<s>``, pads, and of those ``tags`` that the dictionary has."""
    known = {dictionary.index(tag) for tag in tags} - {dictionary.unk()}
    return frozenset({dictionary.eos(), dictionary.bos(), dictionary.pad()} | known)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """What the token ids of one side mean.

    Attributes:
        dictionary: fairseq's.
        stated_mark: how subwords are marked, one of alignment_eval.maps.subwords.MARKS, or ``auto``.
        specials: the ids that belong to no word (:func:`special_ids`).
    """

    dictionary: Any
    stated_mark: str
    specials: Collection[int]

    @cached_property
    def mark(self) -> str:
        """How subwords are marked, detected from the dictionary unless it is stated.

        Raises:
            InputError: the dictionary mixes marks.
        """
        return dictionary_mark(self.dictionary, self.stated_mark)

    def side(self, ids: Tensor, surface: Optional[Sequence[str]] = None) -> SentenceSide:
        """The tokens and words that ``ids`` spell.

        ``<unk>`` is a word or a piece of one.  ``surface`` gives the surface forms of the tokens that are not special,
        where they are known: an unknown piece keeps its subword mark then.
        """
        numbers = ids.tolist()
        special = [number in self.specials for number in numbers]
        tokens = [self.dictionary[number] for number in numbers]
        if surface is not None and len(surface) == len(special) - sum(special):
            forms = iter(surface)
            tokens = [token if is_special else next(forms) for token, is_special in zip(tokens, special)]
        return SentenceSide(tuple(tokens), word_indices(tokens, self.mark, special))


def surface(dataset: Any, which: str, id_: int) -> Optional[list[str]]:
    """The tokens of a sentence as they were read, where the data set keeps them (``--dataset-impl raw``).

    Args:
        dataset: a data set of sentence pairs, perhaps the only part of another, whose sides may have tags added.
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
