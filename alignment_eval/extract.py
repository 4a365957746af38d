"""From maps to word alignments: the named extraction rules.

Everything is computed in float64 and for any leading axes (layers, heads) at once, so that one
head extracted alone and a sweep over all of them give the same links.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.links import Links
from alignment_eval.maps import KINDS, Array, SentenceMaps, Side
from alignment_eval.subwords import word_strings
from alignment_eval.word_maps import SETTINGS, check_pair, require_known, token_rows, word_map

#: Rule -> the treatments of the null column that it knows; the first is its default.
RULES: dict[str, tuple[str, ...]] = {"kobayashi2020": ("allow", "mask"), "shift-att": ("mask",)}

NULLS = ("allow", "mask")

_UNALIGNED = -1


@dataclass(frozen=True)
class ExtractionOptions:
    """Which map, and how links are read from it; names are checked on construction.

    Attributes:
        kind: a map kind (:data:`alignment_eval.maps.KINDS`).
        layer: the layer's fairseq number, from 0.
        head: the head's number, from 0; None: the map of the whole layer.
        setting: ``awo``, alignment with output: a target token's row is the one that predicts it; ``awi``,
            alignment with input: the row after, where it is the decoder input.
        rule: ``kobayashi2020`` (:func:`choose_words`) or ``shift-att`` (:func:`choose_subwords`).
        null: ``allow``: special source tokens (``</s>``) may win, the word then stays unaligned;
            ``mask``: they are barred.  None becomes the rule's default.
        final_punctuation: tie the final marks to each other (:func:`final_marks`).

    Raises:
        UsageError: an unknown name, or a ``null`` that the rule does not know.
    """

    kind: str
    layer: int
    head: int | None = None
    setting: str = "awi"
    rule: str = "kobayashi2020"
    null: str | None = None
    final_punctuation: bool = False

    def __post_init__(self) -> None:
        require_known("map kind", self.kind, KINDS)
        require_known("setting", self.setting, SETTINGS)
        require_known("rule", self.rule, RULES)
        object.__setattr__(self, "null", RULES[self.rule][0] if self.null is None else self.null)
        require_known("null", str(self.null), NULLS)
        if self.null not in RULES[self.rule]:
            raise UsageError(
                f"null {self.null!r} with rule {self.rule!r}: that rule always masks the special source tokens, "
                f"expected null 'mask'; leave it out or take rule 'kobayashi2020'"
            )


@dataclass(frozen=True)
class Choices:
    """What the units of a target sentence (words or subwords) chose.

    ``target_words`` [K] is the target word of each unit, ``source_words`` [..., K] the source word it chose,
    -1 where it stays unaligned.  Units of one word may choose the same source word: that is one link.
    """

    target_words: NDArray[np.intp]
    source_words: NDArray[np.intp]

    def linked(self, source_count: int, target_count: int) -> NDArray[np.bool_]:
        """The links as a matrix [..., source words, target words], true where linked."""
        leading = self.source_words.shape[:-1]
        # One row more: unaligned units (-1) write there.
        matrix = np.zeros((math.prod(leading), source_count + 1, target_count), dtype=np.bool_)
        source_words = self.source_words.reshape(len(matrix), len(self.target_words))
        matrix[np.arange(len(matrix))[:, None], source_words, self.target_words] = True
        return matrix[:, :-1].reshape(*leading, source_count, target_count)


def extract(sentence: SentenceMaps, options: ExtractionOptions) -> Links:
    """The links of one sentence.

    Raises:
        InputError: the sentence has no maps, the kind, layer or head was not recorded, a map holds NaN or an
            infinity, word indices are no count from 0, or AWI asks for a row beyond the map.
    """
    maps = stacked_maps(sentence, options.kind)[sentence.layer_index(options.layer)]
    heads = len(maps) - 1
    if options.head is not None and not 0 <= options.head < heads:
        known = f"a layer has {heads} heads, counted from 0; name one of 0 to {heads - 1}"
        if not heads:
            known = f"kind {options.kind!r} has maps of whole layers only; leave the head out"
        raise InputError(f"head {options.head} is not in the records: {known}")
    chosen = choose(maps[heads if options.head is None else options.head], sentence, options)
    pairs = zip(chosen.source_words.tolist(), chosen.target_words.tolist())
    return frozenset((i, j) for i, j in pairs if i != _UNALIGNED)


def stacked_maps(sentence: SentenceMaps, kind: str) -> NDArray[np.float64]:
    """The maps of all heads and, at the last head index, the layer maps: float64 [L, H + 1, T, S].

    Raises:
        InputError: no such maps, or a value that is NaN or infinite.
    """
    # Products of recorded quantities are taken in float64 too: in float16 they could overflow.
    wide = replace(sentence, arrays={name: array.astype(np.float64) for name, array in sentence.arrays.items()})
    maps: NDArray[np.float64] = np.concatenate([wide.head_maps(kind), wide.layer_maps(kind)[:, None]], axis=1)
    if not np.isfinite(maps).all():
        raise InputError(
            f"sentence {sentence.id}: a map of kind {kind!r} holds NaN or infinite values: expected finite ones; "
            f"record again, with --norm-records-dtype float32 if it was float16"
        )
    return maps


def choose(maps: Array, sentence: SentenceMaps, options: ExtractionOptions) -> Choices:
    """Apply the rule of ``options`` to ``maps`` [..., T, S] of ``sentence``.

    Kind, layer and head of ``options`` are not read: they say which maps, and those are given.

    Raises:
        InputError: word indices are no count from 0, or AWI asks for a row beyond the map.
    """
    source, target = sentence.source, sentence.target
    try:
        if options.rule == "kobayashi2020":
            return choose_words(maps, source, target, options.setting, options.null, options.final_punctuation)
        return choose_subwords(maps, source, target, options.setting, options.final_punctuation)
    except InputError as error:
        raise InputError(f"sentence {sentence.id}: {error}") from error


def choose_words(
    maps: Array, source: Side, target: Side, setting: str, null: str | None = "allow", final_punctuation: bool = False
) -> Choices:
    """Rule ``kobayashi2020`` (Kobayashi et al. 2020, section 5): each target word takes one source word or none.

    Argmax of the word map over the source words and the null column, ties to the first; a target word stays
    unaligned where null wins.  With ``null="mask"`` the null column is barred.

    Args:
        maps: [..., T, S].
        source: the S source tokens.
        target: the T target tokens.
        setting: ``awo`` or ``awi``.
        null: ``allow`` or ``mask``.
        final_punctuation: see :func:`final_marks`.
    """
    scores = word_map(maps, source, target, setting)
    final = final_punctuation and final_marks(source, target)
    if null == "mask":
        scores[..., -1] = -np.inf
    if final:
        scores[..., :-1, -2] = -np.inf
    # The null column is the last one: its index is turned into "unaligned" by this table.
    words = np.append(np.arange(source.word_count), _UNALIGNED)
    chosen = _choose(scores, words)
    if final:
        chosen[..., -1] = source.word_count - 1
    return Choices(np.arange(target.word_count), chosen)


def choose_subwords(maps: Array, source: Side, target: Side, setting: str, final_punctuation: bool = False) -> Choices:
    """Rule ``shift-att`` (Chen et al. 2020): each target subword takes one source subword.

    Argmax over the ordinary source subwords, ties to the first; special tokens are barred, so that every subword
    aligns.  A word pair is linked if any of its subword pairs is.  The published Shift-Att has setting ``awi``.
    Arguments as for :func:`choose_words`.
    """
    check_pair(maps, source, target)
    columns, rows = np.flatnonzero(~source.special), token_rows(target, setting)
    source_words, target_words = source.words[columns], target.words[~target.special]
    scores = maps[..., rows, :][..., columns].astype(np.float64)
    final = final_punctuation and final_marks(source, target)
    if final:
        last_target = target_words == target.word_count - 1
        barred = ~last_target[:, None] & (source_words == source.word_count - 1)
        scores[..., barred] = -np.inf
    chosen = _choose(scores, source_words)
    if final:
        chosen[..., last_target] = source.word_count - 1
    return Choices(target_words.astype(np.intp), chosen)


def _choose(scores: NDArray[np.float64], words: Array) -> NDArray[np.intp]:
    """For each row of ``scores`` [..., K, N] the word (of ``words`` [N]) of the largest, first of equals.

    -1 where every column is barred (-inf) or there is none.
    """
    if not len(words):
        return np.full(scores.shape[:-1], _UNALIGNED, dtype=np.intp)
    chosen: NDArray[np.intp] = words[scores.argmax(axis=-1)].astype(np.intp)
    chosen[scores.max(axis=-1) == -np.inf] = _UNALIGNED
    return chosen


def final_marks(source: Side, target: Side) -> bool:
    """Whether the final-punctuation rule applies: the last words of both sides are punctuation.

    A word is punctuation if every character of it has a Unicode category P (so not ``$``, ``+`` or `````).  Where the
    rule applies, the last target word is linked to the last source word and to nothing else, and the last source
    word is barred for all other target words (of a one-word source they stay unaligned, if null is masked).  It
    holds for words, whatever the extraction rule; where it does not apply nothing changes.  The published Shift-Att
    figures use it.
    """
    if not (source.word_count and target.word_count):
        return False
    last = (word_strings(side.tokens, side.words)[-1] for side in (source, target))
    return all(unicodedata.category(character).startswith("P") for word in last for character in word)


def max_norm_layer(sentences: Iterable[SentenceMaps], setting: str) -> int:
    """The layer (fairseq's number) whose ``attn_n`` layer map has the highest mean: a choice without gold.

    The mean is pooled over all cells of all sentences that have maps, ``</s>`` included.  Of equal layers the first.

    Raises:
        UsageError: the setting is not AWI: in AWO the rule picks a layer of poor alignments.
        InputError: no sentence has maps, or kind ``attn_n`` was not recorded.
    """
    require_known("setting", setting, SETTINGS)
    if setting != "awi":
        raise UsageError(
            f"layer max-norm with setting {setting!r}: the layer of the highest mean norm is known to align well in "
            f"AWI only (in AWO it aligns badly); take setting 'awi' or name a layer"
        )
    sums: list[NDArray[np.float64]] = []
    cells = 0
    layers: tuple[int, ...] = ()
    for sentence in sentences:
        if sentence.ok:
            maps = sentence.layer_maps("attn_n")
            sums.append(maps.sum(axis=(1, 2), dtype=np.float64))
            cells += maps[0].size
            layers = sentence.layers
    if not cells:
        raise InputError("layer max-norm: no sentence has maps: expected some to take the mean of; name a layer")
    # fsum: the same layer in whatever order the shards give the sentences
    means = [math.fsum(column) / cells for column in zip(*sums)]
    if not all(map(math.isfinite, means)):
        raise InputError("layer max-norm: the maps hold NaN or infinite values: expected finite ones; record again")
    return layers[means.index(max(means))]
