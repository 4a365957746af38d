"""A sentence pair: its subword tokens, the words that they spell, its maps, and the kinds of maps.

A *word index* array has one entry per token: the word that the token belongs to, from 0, or -1 for a special token.
Markers of subword-nmt, SentencePiece and WordPiece show the words.

Each map kind is a row of :data:`KINDS`, which commands, records, tables and figures read (docs/maps.md).  A new kind is
a row here and its function in :mod:`fairseq_norm_plugin.formulas.kinds`.  Only quantities that cannot be derived from
others are recorded:

======================== ========= ===========================================================================
quantity                 axes      meaning
======================== ========= ===========================================================================
``head_attn_w``          L H T S   attention weight α after softmax, before dropout
``transformed_norm``     L H S     norm of the transformed vector, ‖f^h(x_j)‖ (Kobayashi et al. 2020)
``head_attn_n``          L H T S   α‖f(x)‖ of each head; recorded only if the two quantities above do not
                                   determine it (the mean over an ensemble)
``layer_attn_n``         L T S     ‖Σ_h α^h f^h(x_j)‖ (Kobayashi et al. 2020, eq. 5 summed over heads)
``head_KIND``            L H T S   head maps of other kinds
``layer_KIND``           L T S     layer maps of other kinds
======================== ========= ===========================================================================

L layers, H heads, T target tokens with ``</s>``, S source tokens with ``</s>``.  Row r of a map has decoder input r and
predicts target token r.  Kinds with the residual connection also have a part from the target token itself, which
belongs to no source token; records do not hold it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, require_known


@dataclass(frozen=True)
class MapKind:
    """One kind of map."""

    name: str  #: as options, records and tables spell it
    label: str  #: as figures call it
    quantities: tuple[str, ...]  #: what is recorded for it; the layer's map is read from the last one
    heads: bool = False  #: whether it has maps of single heads
    scale: float = 1.0  #: factor of the layer's map, if it is read from a quantity of another kind
    mixing: bool = False  #: whether it has a mixing ratio
    feed_forward: bool = False  #: whether it goes through the feed-forward network, which only some blocks have
    #: whether the token's own part counts; without it nothing but the source mixes in encoder-decoder attention
    residual: bool = True
    #: the kind whose maps of all blocks up to the layer are multiplied; None: a map of one block
    rollout: str | None = None
    costly: bool = False  #: whether it takes many times as long as a forward pass
    colour: str | None = None  #: of its lines in figures; None: the next of the palette


_FEED_FORWARD: dict[str, Any] = {"mixing": True, "feed_forward": True, "costly": True}
_ROWS = (
    MapKind("attn_w", "weights", ("head_attn_w",), heads=True, mixing=True, residual=False),
    MapKind(
        "attn_n", "norms", ("head_attn_w", "transformed_norm", "layer_attn_n"), heads=True, mixing=True, residual=False
    ),
    MapKind("attn_p", "projections", ("head_attn_p", "layer_attn_p"), heads=True, residual=False),
    MapKind("attn_logit", "logit attributions", ("head_attn_logit", "layer_attn_logit"), heads=True, residual=False),
    MapKind("attnres_w", "weights, residual", ("head_attn_w",), scale=0.5, mixing=True),
    # the residual of encoder-decoder attention belongs to no source token, so source columns do not change
    MapKind("attnres_n", "norms, residual", ("layer_attn_n",), mixing=True),
    MapKind(
        "attnresln_n", "norms, residual, layer norm", ("head_attnresln_n", "layer_attnresln_n"), heads=True, mixing=True
    ),
    MapKind("ff_n", "norms, feed-forward", ("layer_ff_n",), **_FEED_FORWARD),
    MapKind("ffres_n", "norms, feed-forward, residual", ("layer_ffres_n",), **_FEED_FORWARD),
    MapKind(
        "ffresln_n", "norms, feed-forward, residual, layer norm", ("layer_ffresln_n",), **_FEED_FORWARD, colour="0.5"
    ),
    MapKind("alti", "ALTI", ("layer_alti",)),
    MapKind("rollout_w", "rollout of weights", ("layer_rollout_w",), rollout="attnres_w"),
    MapKind("alti_rollout", "ALTI rollout", ("layer_alti_rollout",), rollout="alti"),
)
#: Map kinds by name, in the order in which commands list them.
KINDS: dict[str, MapKind] = {row.name: row for row in _ROWS}
#: The kinds that are recorded by default.
DEFAULT_KINDS = ("attn_w", "attn_n")


def block_kinds() -> tuple[str, ...]:
    """The kinds that are maps of one block."""
    return tuple(name for name, kind in KINDS.items() if kind.rollout is None)


def kinds_help() -> str:
    """What helps say of the kinds."""
    return ", ".join(f"{name} ({kind.label})" for name, kind in KINDS.items())


def mixing_kinds() -> tuple[str, ...]:
    """The kinds that have mixing ratios."""
    return tuple(name for name, kind in KINDS.items() if kind.mixing)


def quantities() -> tuple[str, ...]:
    """The recorded quantities, in the order in which records hold them."""
    every = (name for kind in KINDS.values() for name in kind.quantities)
    return tuple(dict.fromkeys(("head_attn_w", "transformed_norm", "head_attn_n", *every)))


def axes_of(quantity: str) -> str:
    """The axes of a recorded quantity, such as ``LHTS``."""
    return "LHS" if quantity == "transformed_norm" else {"head": "LHTS", "layer": "LTS"}[quantity.partition("_")[0]]


Array = NDArray[Any]
#: The words of a sentence pair, source and target.
PairWords = tuple[Sequence[str], Sequence[str]]
#: Characters of a line, counted in code points from 0; the end is exclusive.
Span = tuple[int, int]
#: A line, and the span of each word in it.
SpannedLine = tuple[str, tuple[Span, ...]]

#: The subword markers, and whether a ``token`` continues the word of the ``last`` one.
MARKS: Mapping[str, Callable[[str, str], bool]] = {
    "@@": lambda last, token: last.endswith("@@"),
    "▁": lambda last, token: not token.startswith("▁"),
    "##": lambda last, token: token.startswith("##"),
    "￭": lambda last, token: last.endswith("￭") or token.startswith("￭"),
    "</w>": lambda last, token: not last.endswith("</w>"),
    "none": lambda last, token: False,
}
#: fairseq's token for a subword that is not in the dictionary.
UNKNOWN = "<unk>"
#: A word without characters: SentencePiece's blank alone.
UNSPELLED = "▁"
#: How entries of a vocabulary look that have a marker; the last two are not read.
_MARKS_OF_ENTRIES = {
    "@@": re.compile("..*@@$"),
    "▁": re.compile("^▁."),
    "##": re.compile("^##."),
    "￭": re.compile("￭"),
    "</w>": re.compile(".</w>$"),
    "Ġ at the beginning of words": re.compile("^Ġ."),
    "▁ at the end of words": re.compile("[^▁]▁$"),
}
#: Marks of subwords; what Moses escapes or marks.
_SUBWORD = re.compile(r"\S(?:@@|▁|</w>)(?: |$)|(?:^| )(?:▁\S|##\w|Ġ\S* Ġ)|￭")
_ESCAPE = re.compile(r"(?:^| )(?:&(?:apos|quot|#91|#93|#124);|@\W@ )")
#: Lines look prepared if more than this share of them have such marks.
_PREPARED = 0.1
_MARKED = {"@@": "{}@@", "▁": "▁{}", "##": "##{}", "￭": "￭{}￭", "</w>": "{}</w>"}


def word_indices(tokens: Sequence[str], mark: str, special: Sequence[bool] | None = None) -> NDArray[np.int32]:
    """Number the words that subword ``tokens`` spell.

    ``▁`` works with and without SentencePiece's dummy prefix: the first ordinary token begins word 0 with or without
    the marker, and a lone ``▁`` begins a word that the next subwords continue.

    ``special`` is true where a token is special; None: no token is.  A special token ends the word before it.
    """
    require_known("subword marker", mark, MARKS)
    words = np.full(len(tokens), -1, dtype=np.int32)
    word, last = -1, None
    for i, token in enumerate(tokens):
        if special is not None and special[i]:
            last = None
            continue
        word += last is None or not MARKS[mark](last, token)
        words[i], last = word, token
    return words


def with_marks(tokens: Sequence[str], unknown: Sequence[bool], mark: str) -> list[str]:
    """The ``tokens`` as if each ``unknown`` one had the marker ``mark``.

    Words are certain if they are the same with and without these markers: each unknown token decides only one boundary,
    so what holds in both extreme cases holds in every case between them.
    """
    return [_MARKED.get(mark, "{}").format(token) if lost else token for token, lost in zip(tokens, unknown)]


def detect_mark(vocabulary: Iterable[str]) -> str:
    """Detect the subword marker of a vocabulary from its entries.

    Raises:
        InputError: it has several markers, or one that is not read.
    """
    entries = list(vocabulary)
    counts = {
        mark: sum(entry != mark and pattern.search(entry) is not None for entry in entries)
        for mark, pattern in _MARKS_OF_ENTRIES.items()
    }
    # A corpus may hold a stray "##abc", and Maltese begins names with Ġ, but a scheme in use marks a large part of its
    # vocabulary.  Joiners may stand at punctuation only.
    used = [mark for mark, count in counts.items() if count > (0 if mark == "￭" else 0.02) * len(entries)]
    if len(used) > 1:
        raise InputError(
            f"the vocabulary of {len(entries)} entries mixes subword markers "
            f"({', '.join(f'{m} on {counts[m]}' for m in used)}); specify one"
        )
    mark = used[0] if used else "none"
    if mark not in MARKS:
        raise InputError(
            f"{counts[mark]} of {len(entries)} entries of the vocabulary have {mark}, a mark of subwords that is not "
            f"read: expected one of {', '.join(MARKS)}; join the subwords to words first"
        )
    return mark


def marks_of_tools(lines: Sequence[str]) -> tuple[str, str]:
    """What shows that lines were cut into subwords, and that Moses escaped them; each empty if nothing does."""
    cut, escaped = (sum(mark.search(line) is not None for line in lines) for mark in (_SUBWORD, _ESCAPE))
    fewest, size = _PREPARED * len(lines), len(lines)
    return (
        f"{cut} of {size} sampled lines have marks of subwords, such as @@, ▁, ## or ￭" if cut > fewest else "",
        f"{escaped} of {size} sampled lines have Moses' escapes, such as &apos; or @-@" if escaped > fewest else "",
    )


def word_strings(tokens: Sequence[str], words: Sequence[int] | NDArray[np.int32]) -> list[str]:
    """The words that subword ``tokens`` spell, for any marker; a lone ``▁`` before more subwords is dropped."""
    spelled: dict[int, str] = {}
    for token, word in zip(tokens, words):
        if word >= 0:
            spelled[int(word)] = spelled.get(int(word), "") + bare_piece(token)
    return [spelled[word] or UNSPELLED for word in sorted(spelled)]


def bare_piece(token: str) -> str:
    """What a subword spells, for any marker; empty for a lone ``▁``, while ``##`` and ``@@`` alone may be words."""
    if token == UNSPELLED:
        return ""
    return token.lstrip("▁").removeprefix("##").removesuffix("@@").removesuffix("</w>").strip("￭") or token


def is_punctuation(word: str) -> bool:
    """Whether all characters are punctuation (Unicode categories P…); symbols such as $, + and ^ are not."""
    return all(unicodedata.category(character).startswith("P") for character in word)


@dataclass(frozen=True)
class SentenceSide:
    """The tokens of one side of a sentence pair, ``</s>`` included.

    ``words[i]`` is the word (from 0) that ``tokens[i]`` belongs to, -1 for a special token.

    Subwords may span words of the text, such as a Chinese one of two characters if characters are the words.  Then
    ``words`` counts runs of words that no subword spans the ends of, and ``words_per_run`` how many words each has;
    None: one each.  ``forms`` are the words of the text; None: the tokens spell them.  ``line`` is the raw line, with
    the characters of each word in it; None: only the words are known.
    """

    tokens: tuple[str, ...]
    words: NDArray[np.int32]
    words_per_run: NDArray[np.int32] | None = None
    forms: tuple[str, ...] | None = None
    line: Optional[SpannedLine] = None

    @classmethod
    def of_words(cls, words: Sequence[str]) -> SentenceSide:
        """Words without subwords and special tokens."""
        return cls(tuple(words), np.arange(len(words), dtype=np.int32))

    @cached_property
    def special(self) -> NDArray[np.bool_]:
        """True at tokens that belong to no word (``</s>``, language tags)."""
        result: NDArray[np.bool_] = self.words < 0
        return result

    @cached_property
    def runs(self) -> NDArray[np.intp]:
        """The starts of runs of tokens of the same word (or of special tokens)."""
        return np.flatnonzero(np.diff(self.words, prepend=-2))

    @cached_property
    def word_count(self) -> int:
        """Number of words."""
        return int(self.words.max(initial=-1)) + 1 if self.words_per_run is None else int(self.words_per_run.sum())

    @cached_property
    def _words(self) -> Sequence[str]:
        return word_strings(self.tokens, self.words) if self.forms is None else self.forms

    def word_strings(self) -> list[str]:
        """The words: those of the text if they are known, else what the tokens spell."""
        return list(self._words)

    def by_tokens(self) -> SentenceSide:
        """The same tokens, where each token that belongs to a word becomes a word of its own."""
        ordinary = ~self.special
        return SentenceSide(self.tokens, np.where(ordinary, np.cumsum(ordinary) - 1, -1).astype(np.int32))


#: Whether the words of source and target are certain -> the status of a sentence that has maps.  They are not certain
#: if ``<unk>`` may stand for a part of a word, because then the word numbers of all later tokens are uncertain.
_STATUS = {
    (True, True): "ok",
    (False, True): "unknown source subwords",
    (True, False): "unknown target subwords",
    (False, False): "unknown subwords on both sides",
}


def status_of(source_certain: bool, target_certain: bool) -> str:
    """The status of a sentence that has maps: ``ok`` only if the words of both sides are certain."""
    return _STATUS[source_certain, target_certain]


@dataclass(frozen=True)
class SentenceMaps:
    """The recorded quantities of one sentence pair.

    ``status`` is ``"ok"``, or the reason why its words cannot be aligned: there are no maps (then both sides may be
    empty), or the words are not certain (:func:`status_of`).
    ``rank`` is the place in the n-best list (0 is the best; 0 in forced scoring).  ``score`` is the model's score.
    ``layers[k]`` is the fairseq number (from 0) of the layer at index k of the L axis.  ``log_probs`` [T] are the log
    probabilities of the target tokens (base e), if they were computed; they are not recorded.
    """

    id: int
    source: SentenceSide
    target: SentenceSide
    layers: tuple[int, ...]
    rank: int = 0
    score: float | None = None
    status: str = "ok"
    arrays: Mapping[str, Array] = field(default_factory=dict)
    log_probs: NDArray[np.float64] | None = None

    @property
    def ok(self) -> bool:
        """Whether the sentence has maps and words that can be aligned."""
        return self.status == "ok"

    def confirmed(self) -> SentenceMaps:
        """The sentence with status ``ok`` if it has maps, for a caller who knows that its words are right."""
        return replace(self, status="ok") if self.status in _STATUS.values() else self

    def by_tokens(self) -> SentenceMaps:
        """The same sentence with each token that belongs to a word as a word of its own; these words are certain."""
        return replace(self.confirmed(), source=self.source.by_tokens(), target=self.target.by_tokens())

    @property
    def kinds(self) -> tuple[str, ...]:
        """The map kinds that can be read."""
        return tuple(kind for kind in KINDS if self._has(kind))

    @property
    def heads(self) -> int:
        """Number of heads H; 0 if no quantity of single heads was recorded."""
        return next((a.shape[1] for name, a in self.arrays.items() if "H" in axes_of(name)), 0)

    def head_maps(self, kind: str) -> Array:
        """The head maps of ``kind``, [L, H, T, S].

        H is 0 for kinds that have only layer maps.

        Raises:
            InputError: the kind is unknown or was not recorded.
        """
        self._require(kind)
        if f"head_{kind}" in self.arrays:
            return self.arrays[f"head_{kind}"]
        if kind == "attn_n":
            product: Array = self.arrays["head_attn_w"] * self.arrays["transformed_norm"][..., None, :]
            return product
        return self.layer_maps(kind)[:, None][:, :0]

    def layer_maps(self, kind: str) -> Array:
        """The layer maps of ``kind``, [L, T, S]: mean of the heads for ``attn_w``, norm of the sum for ``attn_n``.

        Raises:
            InputError: the kind is unknown or was not recorded.
        """
        name = self._require(kind, whole_layer=True).quantities[-1]
        if name.startswith("layer_"):
            return self.arrays[name]
        mean: Array = KINDS[kind].scale * self.arrays[name].mean(axis=1, dtype=np.float64)
        return mean

    def at(self, layer: int) -> SentenceMaps:
        """The sentence with only the maps of layer number ``layer`` (fairseq's, from 0), which it has."""
        index = self.layers.index(layer)
        arrays = {name: array[index : index + 1] for name, array in self.arrays.items()}
        return replace(self, layers=(layer,), arrays=arrays)

    def _has(self, kind: str) -> bool:
        if kind == "attn_n":
            heads = "head_attn_n" in self.arrays or {"head_attn_w", "transformed_norm"} <= self.arrays.keys()
            return heads and "layer_attn_n" in self.arrays
        return all(name in self.arrays for name in KINDS[kind].quantities)

    def _require(self, kind: str, whole_layer: bool = False) -> MapKind:
        """The row of ``kind``, if its maps can be read, or those of whole layers."""
        require_known("map kind", kind, KINDS)
        if not (self.ok or self.arrays):
            raise InputError(f"sentence {self.id} has no maps: {self.status}")
        if not (KINDS[kind].quantities[-1] in self.arrays if whole_layer else self._has(kind)):
            raise InputError(
                f"the records have no map kind {kind!r} (they have {', '.join(self.kinds) or 'none'}): record it "
                f"(--norm-record-kinds {kind}; in Python maps(…, kinds=['{kind}']))"
            )
        return KINDS[kind]


def words_of(sentence: SentenceMaps) -> PairWords:
    """The words of a sentence pair, source and target."""
    return sentence.source.word_strings(), sentence.target.word_strings()
