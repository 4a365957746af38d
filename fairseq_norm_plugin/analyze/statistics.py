"""Statistics of Kobayashi et al. (2020, 2021) over a data set, as streaming sums in bounded memory.

- Mixing ratios (2021, section 4): mean over positions for each layer and head, by the position's token class, and their
  rank correlation with token frequency.  Positions with nothing to mix, which see only themselves, are left out.
- Attention to special tokens (2020, section 4): the share of attention weight and of norm that goes to each class of
  source token; the rank correlation of α and ‖f(x)‖, and of ‖f(x)‖ and token frequency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from alignment_eval.maps.subwords import bare_piece, is_punctuation
from fairseq_norm_plugin.capture.layers import DECODER_SELF, mixing_positions
from fairseq_norm_plugin.maps.block import Block
from fairseq_norm_plugin.maps.kinds import HEAD_MIXING_RATIOS, head_map, head_mixing_ratio, layer_map, mixing_ratio
from fairseq_norm_plugin.maps.norms import transformed_norms

#: Classes of tokens; ``other`` is the rest.
TOKEN_CLASSES = ("<s>", "</s>", "punctuation", "other")
#: Number of (α, ‖f(x)‖) pairs of a block that are kept for their rank correlation, a uniform sample of all pairs.
SAMPLED_PAIRS = 20_000
#: In float32 arithmetic, values are equal if they differ by less than this, relative to the largest.
ROUNDING = 1e-5


@dataclass(frozen=True)
class TokenTypes:
    """Properties of each token of a dictionary: arrays [V]."""

    tokens: tuple[str, ...]
    classes: Tensor  #: index into :data:`TOKEN_CLASSES`
    special: NDArray[np.bool_]  #: ``<s>``, ``<pad>``, ``</s>``, ``<unk>``, which fairseq does not count
    frequency: NDArray[np.int64]  #: count in the training text, from the dictionary; all equal: unknown
    pad: int

    @classmethod
    def of(cls, dictionary: Any) -> TokenTypes:
        """The properties of the tokens of a fairseq dictionary."""
        tokens = tuple(dictionary.symbols)
        special = {dictionary.bos(): 0, dictionary.eos(): 1}
        spelled = map(bare_piece, tokens)
        classes = [special.get(i, 2 if piece and is_punctuation(piece) else 3) for i, piece in enumerate(spelled)]
        frequency = np.asarray(dictionary.count, dtype=np.int64)
        return cls(
            tokens, torch.tensor(classes), np.arange(len(tokens)) < dictionary.nspecial, frequency, dictionary.pad()
        )

    @cached_property
    def by_class(self) -> Tensor:
        """1 where a token is of a class: float64 [V, classes]."""
        return torch.nn.functional.one_hot(self.classes, len(TOKEN_CLASSES)).double()


class BlockStatistics:
    """The sums of one block: of its block type, for ``kinds`` of mixing ratios.

    ``rows`` and ``columns`` are the vocabularies of target and source positions; ``seed`` is of the sample of pairs.
    """

    def __init__(self, type_: str, kinds: Sequence[str], rows: TokenTypes, columns: TokenTypes, seed: int = 0) -> None:
        self.type, self.rows, self.columns = type_, rows, columns
        self.left_out = 0  #: positions with nothing to mix
        self._heads = 0
        self._mixing = {kind: torch.zeros(len(rows.tokens), dtype=torch.float64) for kind in kinds}
        self._row_counts = torch.zeros(len(rows.tokens), dtype=torch.float64)
        self._head_mixing: dict[str, Tensor] = {}
        self._mass: dict[str, Tensor] = {}
        self._class_counts = torch.zeros(len(TOKEN_CLASSES), dtype=torch.float64)
        self._norms = torch.zeros(len(columns.tokens), dtype=torch.float64)
        self._column_counts = torch.zeros(len(columns.tokens), dtype=torch.float64)
        #: α, then ‖f(x)‖ of each head, float64 [pairs, 2 · heads], of the pairs with the largest random keys.
        self.pairs, self._keys = torch.empty(0, 0), torch.empty(0)
        self._generator = torch.Generator().manual_seed(seed)

    def add(self, block: Block, row_tokens: Tensor, column_tokens: Tensor) -> None:
        """Add the block of one pass; the ids of its target and source positions are [B, T] and [B, S], with padding."""
        self._heads = block.weights.heads
        self._add_mixing(block, row_tokens)
        real_rows, real_columns = row_tokens.ne(self.rows.pad), column_tokens.ne(self.columns.pad)
        norms = transformed_norms(block.factor).double()  # [B, H, S]
        ids = column_tokens[real_columns].cpu()
        self._norms.index_add_(0, ids, norms.mean(1)[real_columns].cpu())
        self._column_counts += torch.bincount(ids, minlength=len(self._column_counts))
        by_class = self.columns.by_class[column_tokens.cpu()] * real_columns.cpu()[..., None]  # [B, S, C]
        self._class_counts += by_class.sum((0, 1))
        for kind in ("attn_w", "attn_n"):
            maps = torch.cat([head_map(block, kind), layer_map(block, kind)[:, None]], dim=1).double().cpu()
            mass = torch.einsum("bhts,bsc,bt->hc", maps, by_class, real_rows.cpu().double())
            self._mass[kind] = self._mass.get(kind, 0) + mass
        visible = real_rows[:, :, None] & real_columns[:, None, :]
        if self.type == DECODER_SELF:
            visible = visible.tril()
        self._sample_pairs(block.alpha, norms, visible)

    def _sample_pairs(self, alpha: Tensor, norms: Tensor, visible: Tensor) -> None:
        """Keep a uniform sample of all pairs so far; ``norms`` are [B, H, S], ``visible`` pairs bool [B, T, S]."""
        b, i, j = visible.nonzero(as_tuple=True)
        keys = torch.rand(len(b), generator=self._generator)
        best = torch.topk(keys, min(SAMPLED_PAIRS, len(keys))).indices
        b, i, j = (index[best.to(index.device)] for index in (b, i, j))
        pairs = torch.cat([alpha[b, :, i, j].double(), norms[b, :, j]], dim=1).cpu()
        self._keys = torch.cat([self._keys, keys[best]])
        self.pairs = pairs if not len(self.pairs) else torch.cat([self.pairs, pairs])
        kept = torch.topk(self._keys, min(SAMPLED_PAIRS, len(self._keys))).indices
        self._keys, self.pairs = self._keys[kept], self.pairs[kept]

    def _add_mixing(self, block: Block, row_tokens: Tensor) -> None:
        real = row_tokens.ne(self.rows.pad)
        mixes = mixing_positions(self.type, real)
        self.left_out += int((real & ~mixes).sum())
        ids = row_tokens[mixes].cpu()
        self._row_counts += torch.bincount(ids, minlength=len(self._row_counts))
        for kind in self._mixing:
            self._mixing[kind].index_add_(0, ids, mixing_ratio(block, kind).double()[mixes].cpu())
        if block.weights.cross:
            return
        classes = self.rows.by_class[ids]
        for kind in HEAD_MIXING_RATIOS:
            ratio = head_mixing_ratio(block, kind).double().transpose(1, 2)[mixes].cpu()  # [rows, H]
            self._head_mixing[kind] = self._head_mixing.get(kind, 0) + ratio.t() @ classes

    @property
    def broken(self) -> bool:
        """Whether a map had NaN or infinite values."""
        sums = [self._norms, *self._mixing.values(), *self._head_mixing.values(), *self._mass.values()]
        return not all(bool(total.isfinite().all()) for total in sums)

    def tables(self) -> dict[str, list[dict[Any, Any]]]:
        """The rows of each table, by the name of its file (docs/analysis.md)."""
        return {
            "mixing": self.mixing(),
            "mixing_by_frequency": [
                {"kind": kind, **_correlation(total, self._row_counts, self.rows)}
                for kind, total in self._mixing.items()
            ],
            "attention": self.attention(),
            "weight_norm_correlation": self.weight_norm_correlation(),
            "norm_by_frequency": [_correlation(self._norms, self._column_counts, self.columns)],
            "token_norms": self.token_norms().to_dict("records"),
        }

    def mixing(self) -> list[dict[str, Any]]:
        """Mean mixing ratios: rows of kind, head (None: the block), token class (also ``all``), mean, positions."""
        classes = self.rows.by_class
        counts = self._row_counts @ classes
        sums: dict[tuple[str, Any], Tensor] = {(kind, None): total @ classes for kind, total in self._mixing.items()}
        for kind, of_heads in self._head_mixing.items():
            sums.update({(kind, head): row for head, row in enumerate(of_heads)})
        return [
            {"kind": kind, "head": head, "token_class": name, "mean": float(total / count), "positions": int(count)}
            for (kind, head), by_class in sums.items()
            for name, total, count in [("all", by_class.sum(), counts.sum()), *zip(TOKEN_CLASSES, by_class, counts)]
            if count
        ]

    def attention(self) -> list[dict[str, Any]]:
        """Shares of attention weight, of norm and of source tokens for each class, by head (None: the block)."""
        seen, tokens = self._class_counts > 0, self._class_counts / self._class_counts.sum()
        shares = {kind: mass / mass.sum(1, keepdim=True) for kind, mass in self._mass.items()}
        return [
            {
                "head": head,
                "token_class": TOKEN_CLASSES[c],
                "weight_share": float(shares["attn_w"][-1 if head is None else head][c]),
                "norm_share": float(shares["attn_n"][-1 if head is None else head][c]),
                "token_share": float(tokens[c]),
            }
            for head in [None, *range(self._heads)]
            for c in seen.nonzero()[:, 0].tolist()
        ]

    def weight_norm_correlation(self) -> list[dict[str, Any]]:
        """Spearman's ρ of α and ‖f(x)‖ over (target, source) pairs; one row per head."""
        pairs = self.pairs.numpy()
        return [
            {"head": head, "spearman": spearman(pairs[:, head], pairs[:, self._heads + head]), "pairs": len(pairs)}
            for head in range(self._heads)
        ]

    def token_norms(self) -> pd.DataFrame:
        """Mean ‖f(x)‖ (over heads and occurrences) of every source token type that occurred.

        Special tokens have no ``frequency``, because their count in fairseq's dictionary is a placeholder.
        """
        columns, counts = self.columns, self._column_counts.numpy()
        seen = counts > 0
        return pd.DataFrame(
            {
                "token": np.asarray(columns.tokens, dtype=object)[seen],
                "frequency": pd.Series(columns.frequency[seen]).astype("Int64").mask(columns.special[seen]),
                "occurrences": counts[seen].astype(int),
                "norm": self._norms.numpy()[seen] / counts[seen],
                "token_class": np.asarray(TOKEN_CLASSES, dtype=object)[columns.classes.numpy()[seen]],
            }
        )


def _correlation(total: Tensor, counts: Tensor, types: TokenTypes) -> dict[str, Any]:
    """Spearman's ρ, over types that occurred, of a mean and the frequency in the dictionary, or if it has none here."""
    used = (counts > 0).numpy() & ~types.special
    means = total.numpy()[used] / counts.numpy()[used]
    known = len(set(types.frequency[used].tolist())) > 1
    frequency = types.frequency if known else counts.numpy()
    where = "training text" if known else "this text"
    return {"spearman": spearman(means, frequency[used]), "types": int(used.sum()), "frequency": where}


def spearman(x: Any, y: Any) -> float:
    """Spearman's rank correlation, with mean ranks for ties.

    It is NaN if a side has fewer than two values or is constant except for rounding (:data:`ROUNDING`), because ranks
    of rounding errors mean nothing.
    """
    if any(len(side) < 2 or np.ptp(side) <= ROUNDING * np.abs(side).max() for side in (x, y)):
        return math.nan
    correlation = pd.DataFrame({"x": x, "y": y}).corr(method="spearman")
    return float(correlation.to_numpy()[0, 1])
