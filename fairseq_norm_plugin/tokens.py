"""From token ids to the tokens and words that records hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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


def side(
    ids: Tensor,
    dictionary: Any,
    mark: str,
    surface: Optional[Sequence[str]] = None,
    specials: Optional[Collection[int]] = None,
) -> SentenceSide:
    """The side that token ``ids`` (no pads) spell.

    The ids ``specials`` (default: :func:`special_ids` without tags) belong to no word; ``<unk>`` is a word or a piece
    of one.  ``surface`` gives the surface forms of the other tokens where they are known: an unknown piece keeps its
    subword mark then.
    """
    numbers = ids.tolist()
    if specials is None:
        specials = special_ids(dictionary)
    special = [number in specials for number in numbers]
    tokens = [dictionary[number] for number in numbers]
    if surface is not None and len(surface) == len(special) - sum(special):
        forms = iter(surface)
        tokens = [token if is_special else next(forms) for token, is_special in zip(tokens, special)]
    return SentenceSide(tuple(tokens), word_indices(tokens, mark, special))


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
