"""From token ids to the tokens and words that records hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from torch import Tensor

from alignment_eval.maps import Side
from alignment_eval.subwords import detect_mark, word_indices


def dictionary_mark(dictionary: Any, option: str) -> str:
    """The subword mark of a fairseq dictionary, unless ``option`` states it."""
    return detect_mark(dictionary.symbols[dictionary.nspecial :]) if option == "auto" else option


def side(ids: Tensor, dictionary: Any, mark: str, surface: Optional[Sequence[str]] = None) -> Side:
    """The side that token ``ids`` (no pads) spell.

    Special tokens (``</s>``, ``<s>``) belong to no word; ``<unk>`` is a word or a piece of one.  ``surface`` gives
    the tokens' surface forms where they are known: an unknown piece keeps its subword mark then.
    """
    numbers = ids.tolist()
    specials = {dictionary.eos(), dictionary.bos(), dictionary.pad()}
    special = [number in specials for number in numbers]
    tokens = [dictionary[number] for number in numbers]
    if surface is not None and len(surface) == len(special) - sum(special):
        forms = iter(surface)
        tokens = [token if is_special else next(forms) for token, is_special in zip(tokens, special)]
    return Side(tuple(tokens), word_indices(tokens, mark, special))
