"""Classes of tokens, and how much of the maps of a text goes to each (Kobayashi et al. 2020, section 4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import SentenceMaps, bare_piece, is_punctuation

#: Classes of tokens; ``other`` is the rest.
TOKEN_CLASSES = ("<s>", "</s>", "mask", "punctuation", "other")
#: The row of the tokens themselves.
_TOKENS = ("tokens", "all", "all")
_SPECIAL = {"<s>": 0, "</s>": 1, "<mask>": 2}


def token_class(token: str) -> int:
    """The index of a token's class in :data:`TOKEN_CLASSES`."""
    piece = bare_piece(token)
    return _SPECIAL.get(token, 3 if piece and is_punctuation(piece) else 4)


def class_shares(sentences: Iterable[SentenceMaps]) -> pd.DataFrame:
    """The share of each class of source token in the maps of a text (:func:`alignment_eval.class_shares`)."""
    found: dict[tuple[Any, ...], NDArray[np.float64]] = {}
    for sentence in sentences:
        classes = np.eye(len(TOKEN_CLASSES))[list(map(token_class, sentence.source.tokens))]
        rows: list[tuple[tuple[Any, ...], NDArray[np.float64]]] = [(_TOKENS, classes.sum(0))]
        for kind in sentence.kinds:
            maps = np.concatenate([sentence.head_maps(kind), sentence.layer_maps(kind)[:, None]], axis=1)
            for layer, of_layer in zip(sentence.layers, maps.sum(axis=2, dtype=np.float64) @ classes):
                rows += (((kind, layer, head), row) for head, row in zip((*range(len(of_layer) - 1), "all"), of_layer))
        for place, row in rows if sentence.arrays else ():
            found[place] = found.get(place, 0) + row
    if not found:
        raise InputError("no sentence has maps: expected the maps of at least one")
    index = pd.MultiIndex.from_tuples(list(found), names=["kind", "layer", "head"])
    table = pd.DataFrame(np.stack(list(found.values())), index, list(TOKEN_CLASSES))
    used = [name for name, count in zip(TOKEN_CLASSES, found[_TOKENS]) if count]
    return table[used].div(table.sum(axis=1), axis=0)
