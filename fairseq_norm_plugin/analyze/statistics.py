"""Runs a model over a data set and collects the statistics of Kobayashi et al. (2020, 2021) in bounded memory.

- Mixing ratios (2021, section 4): mean over positions for each layer and head, by the position's token class, and their
  rank correlation with token frequency.  Positions with nothing to mix, which see only themselves, are left out.
- Attention to special tokens (2020, section 4): the share of attention weight and of norm that goes to each class of
  source token; the rank correlation of α and ‖f(x)‖, and of ‖f(x)‖ and token frequency.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from fairseq import utils
from fairseq.tasks import setup_task
from torch import Tensor
from tqdm import tqdm

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import KINDS
from alignment_eval.scoring.classes import TOKEN_CLASSES, token_class
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions, teacher_forcing
from fairseq_norm_plugin.capture.layers import (
    BLOCK_TYPES,
    DECODER_CROSS,
    DECODER_SELF,
    ENCODER_SELF,
    build_model,
    mixing_positions,
)
from fairseq_norm_plugin.checkpoints.identity import data_hash, model_hash
from fairseq_norm_plugin.checkpoints.read import fairseq_errors, read_checkpoint_parts
from fairseq_norm_plugin.environment import versions
from fairseq_norm_plugin.formulas.block import Block, transformed_norms
from fairseq_norm_plugin.formulas.kinds import HEAD_MIXING_RATIOS, head_map, head_mixing_ratio, layer_map, mixing_ratio

#: The tokens of the rows and of the columns of each block type's maps.
_SIDES = {ENCODER_SELF: ("source",) * 2, DECODER_SELF: ("target",) * 2, DECODER_CROSS: ("target", "source")}
#: Number of (α, ‖f(x)‖) pairs of a block that are kept for their rank correlation, a uniform sample of all pairs.
SAMPLED_PAIRS = 20_000
#: In float32 arithmetic, values are equal if they differ by less than this, relative to the largest.
ROUNDING = 1e-5


def analyse(cfg: Any, path: str, kinds: Sequence[str]) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """Run the model of the checkpoint ``path`` over the subset of fairseq's ``cfg``.

    Returns the tables, with ``kinds`` of mixing ratios, and a summary of the run.
    """
    with fairseq_errors(f"{cfg.task.data}: fairseq cannot set up its task", "give data of fairseq-preprocess"):
        task = setup_task(cfg.task)
    # fairseq-validate would take the task from the checkpoint; here it must be one that can read maps
    model: Any = build_model(task, read_checkpoint_parts([path]), path)
    if torch.cuda.is_available() and not cfg.common.cpu:
        model.cuda()
    subset = cfg.dataset.gen_subset
    try:
        task.load_dataset(subset)
    except FileNotFoundError as error:
        raise InputError(f"{error}; give a subset that fairseq-preprocess made, with --gen-subset") from error
    analysis = Analysis(model, task, kinds)
    batches = task.get_batch_iterator(
        dataset=task.dataset(subset),
        max_tokens=cfg.dataset.max_tokens,
        max_sentences=cfg.dataset.batch_size,
        max_positions=utils.resolve_max_positions(task.max_positions(), model.max_positions()),
        ignore_invalid_inputs=cfg.dataset.skip_invalid_size_inputs_valid_test,
        required_batch_size_multiple=1,  # fairseq would drop the last batch otherwise
        num_workers=cfg.dataset.num_workers,
        data_buffer_size=cfg.dataset.data_buffer_size,
    ).next_epoch_itr(shuffle=False)
    for sample in tqdm(batches, desc="batches", disable=None, file=sys.stderr):
        analysis.add(utils.move_to_cuda(sample) if next(model.parameters()).is_cuda else sample)
    summary = {
        **versions(),
        "checkpoint": path,
        "model": model_hash([model]),
        "subset": subset,
        "data": data_hash(
            cfg.task.data.split(":")[0],
            subset,
            (getattr(task.cfg, "source_lang", None), getattr(task.cfg, "target_lang", None)),
        ),
        "task": str(cfg.task._name),
        "kinds": list(kinds),
        "sentences": analysis.sentences,
        "tokens": analysis.tokens,
        "positions_with_nothing_to_mix": {
            f"{block} {layer}": found.left_out
            for (block, layer), found in analysis.statistics.items()
            if found.left_out
        },
    }
    return analysis.tables(), summary


class Analysis:
    """Statistics of every block of a swapped model, collected batch by batch.

    ``task`` has the dictionaries.  A block ignores ``kinds`` of mixing ratios that do not apply to it.
    """

    def __init__(self, model: Any, task: Any, kinds: Sequence[str]) -> None:
        self._model = model
        types = {"source": TokenTypes(task.source_dictionary)}
        if hasattr(model, "decoder"):
            types["target"] = TokenTypes(task.target_dictionary)
        self.sentences, self.tokens = 0, dict.fromkeys(types, 0)
        self.statistics: dict[tuple[str, int], BlockStatistics] = {}
        self._captures: list[MapCapture[None]] = []
        self._ids: dict[str, Tensor] = {}  # of the batch, by side; its captures read it
        self._pad = types["source"].pad
        for attention in sorted(norm_attentions(model), key=lambda known: BLOCK_TYPES.index(known.site.block)):
            block, layer, weights = attention.site.block, attention.site.number, attention.block_weights()
            known = [
                kind
                for kind in kinds
                if (weights.feed_forward if KINDS[kind].feed_forward else KINDS[kind].residual or not weights.cross)
            ]  # a mixing ratio without residual is constantly 1 in encoder-decoder attention
            statistics = self.statistics[block, layer] = BlockStatistics(block, known, types)
            self._captures.append(MapCapture(block, [layer], partial(statistics.add, ids=self._ids)))

    def add(self, sample: dict[str, Any]) -> None:
        """Run the model over one batch, teacher-forced, and add it."""
        inputs = sample["net_input"]
        self._ids.update(source=inputs["src_tokens"], target=inputs.get("prev_output_tokens"))
        self.sentences += len(inputs["src_tokens"])
        for side in self.tokens:
            self.tokens[side] += int(self._ids[side].ne(self._pad).sum())
        with torch.no_grad(), teacher_forcing(self._model), capturing(norm_attentions(self._model), *self._captures):
            self._model(**inputs, features_only=True)
        for capture in self._captures:
            capture.take()

    def tables(self) -> dict[str, pd.DataFrame]:
        """The results, one table per file (docs/analysis.md)."""
        broken = [place for place, statistics in self.statistics.items() if statistics.broken]
        if broken:  # the first one of a forward pass, where it arises
            block, layer = min(broken, key=lambda place: (place[0] != ENCODER_SELF, place[1]))
            raise InputError(f"the maps of {block} {layer} hold NaN; check whether the checkpoint holds NaN")
        collected: dict[str, list[dict[str, Any]]] = {}
        for (block, layer), statistics in self.statistics.items():
            for name, rows in statistics.tables().items():
                collected.setdefault(name, []).extend({"block": block, "layer": layer, **row} for row in rows)
        tables = {name: pd.DataFrame(rows) for name, rows in collected.items()}
        for name, table in tables.items():  # pandas would turn integers with gaps into floats
            column = "frequency" if name == "token_norms" else "head"
            if column in table:
                table[column] = table[column].astype("Int64")
        return tables


class TokenTypes:
    """Properties of each token of a fairseq dictionary."""

    def __init__(self, dictionary: Any) -> None:
        self.tokens, self.pad = tuple(dictionary.symbols), dictionary.pad()
        #: Index into :data:`TOKEN_CLASSES`, [V].
        self.classes = list(map(token_class, self.tokens))
        #: 1 where a token is of a class, float64 [V, classes].
        self.by_class = torch.nn.functional.one_hot(torch.tensor(self.classes), len(TOKEN_CLASSES)).double()
        #: ``<s>``, ``<pad>``, ``</s>``, ``<unk>``, ``<mask>``, which fairseq does not count, bool [V].
        self.special = np.arange(len(self.tokens)) < dictionary.nspecial
        self.special |= np.equal(self.classes, TOKEN_CLASSES.index("mask"))
        #: Count in the training text, from the dictionary, [V]; all equal: unknown.
        self.frequency = np.asarray(dictionary.count, dtype=np.int64)


class _Sums:
    """Sums of quantities over positions, by the token type and by the token class of a position."""

    def __init__(self, types: TokenTypes) -> None:
        self.types = types
        self.counts = torch.zeros(len(types.tokens), dtype=torch.float64)  #: positions of each type
        self.by_type: dict[str, Tensor] = {}  #: float64 [V], of the block
        self.by_class: dict[str, Tensor] = {}  #: float64 [columns, classes]: the heads, then the block

    def add(self, ids: Tensor, quantities: dict[str, Tensor]) -> None:
        """Add positions whose tokens are ``ids`` [N]; each quantity is [N, columns]."""
        ids = ids.cpu()
        self.counts += torch.bincount(ids, minlength=len(self.counts))
        for name, values in quantities.items():
            values = values.double().cpu()
            self.by_type.setdefault(name, torch.zeros_like(self.counts)).index_add_(0, ids, values[:, -1])
            self.by_class[name] = self.by_class.get(name, 0) + values.t() @ self.types.by_class[ids]

    def correlation(self, name: str) -> dict[str, Any]:
        """Spearman's ρ of a mean and the frequency in the dictionary, or in this text, over types that occurred."""
        used = (self.counts > 0).numpy() & ~self.types.special
        counts, frequency = self.counts.numpy()[used], self.types.frequency[used]
        known = len(set(frequency.tolist())) > 1
        rho = spearman(self.by_type[name].numpy()[used] / counts, frequency if known else counts)
        return {"spearman": rho, "types": int(used.sum()), "frequency": "training text" if known else "this text"}


class BlockStatistics:
    """The sums of one block: of its block type, for ``kinds`` of mixing ratios; ``types`` are of each side's tokens."""

    def __init__(self, type_: str, kinds: Sequence[str], types: Mapping[str, TokenTypes]) -> None:
        self.type, self.kinds = type_, kinds
        self.rows, self.columns = (_Sums(types[side]) for side in _SIDES[type_])
        self.left_out = 0  #: positions with nothing to mix
        #: Of the pairs with the largest random keys: key, α and ‖f(x)‖ of each head, float64 [pairs, 1 + 2 · heads].
        self.pairs = torch.empty(0)
        self._generator = torch.Generator().manual_seed(0)

    def add(self, block: Block, ids: Mapping[str, Tensor]) -> None:
        """Add the block of one pass; ``ids`` are the tokens of each side, [B, N], with padding."""
        row_tokens, column_tokens = (ids[side] for side in _SIDES[self.type])
        real_rows, real_columns = row_tokens.ne(self.rows.types.pad), column_tokens.ne(self.columns.types.pad)
        mixes = mixing_positions(self.type, real_rows)
        self.left_out += int((real_rows & ~mixes).sum())
        ratios = {kind: mixing_ratio(block, kind)[..., None] for kind in self.kinds}
        for kind in () if block.weights.cross else HEAD_MIXING_RATIOS:
            heads = head_mixing_ratio(block, kind).transpose(1, 2)
            ratios[kind] = torch.cat([heads, ratios.get(kind, heads[..., :1])], dim=-1)  # heads are always reported
        self.rows.add(row_tokens[mixes], {kind: ratio[mixes] for kind, ratio in ratios.items()})
        norms = transformed_norms(block.factor).double()  # [B, H, S]
        shares = {"norm": norms.mean(1)[..., None]}
        for kind in ("attn_w", "attn_n"):
            maps = torch.cat([head_map(block, kind), layer_map(block, kind)[:, None]], dim=1).double()
            shares[kind] = torch.einsum("bhts,bt->bsh", maps, real_rows.double())
        self.columns.add(column_tokens[real_columns], {name: share[real_columns] for name, share in shares.items()})
        visible = real_rows[:, :, None] & real_columns[:, None, :]
        self._sample_pairs(block.alpha, norms, visible.tril() if self.type == DECODER_SELF else visible)

    def _sample_pairs(self, alpha: Tensor, norms: Tensor, visible: Tensor) -> None:
        """Keep a uniform sample of all pairs so far; ``norms`` are [B, H, S], ``visible`` pairs bool [B, T, S]."""
        b, i, j = visible.nonzero(as_tuple=True)
        keys = torch.rand(len(b), generator=self._generator)
        best = torch.topk(keys, min(SAMPLED_PAIRS, len(keys))).indices
        b, i, j = (index[best.to(index.device)] for index in (b, i, j))
        pairs = torch.cat([alpha[b, :, i, j].double(), norms[b, :, j]], dim=1).cpu()
        self.pairs = torch.cat([self.pairs, torch.cat([keys[best, None].double(), pairs], dim=1)])
        self.pairs = self.pairs[torch.topk(self.pairs[:, 0], min(SAMPLED_PAIRS, len(self.pairs))).indices]

    @property
    def broken(self) -> bool:
        """Whether a map had NaN or infinite values."""
        return not all(total.isfinite().all() for sums in (self.rows, self.columns) for total in sums.by_class.values())

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of each table, by the name of its file (docs/analysis.md); head None is the whole block."""
        pairs, ratios = self.pairs.numpy(), self.rows.by_class
        weights, norms = (self.columns.by_class[kind] for kind in ("attn_w", "attn_n"))
        heads = len(weights) - 1
        means: list[tuple[str, int | None, Tensor]] = [(kind, None, ratios[kind][-1]) for kind in self.kinds]
        means += [(kind, head, row) for kind, rows in ratios.items() for head, row in enumerate(rows[:-1])]
        mixing, attended = (sums.counts @ sums.types.by_class for sums in (self.rows, self.columns))
        types, counts, total = self.columns.types, self.columns.counts, self.columns.by_type["norm"]
        return {
            "mixing": [
                {"kind": kind, "head": head, "token_class": name, "mean": float(ratio / count), "positions": int(count)}
                for kind, head, row in means
                for name, ratio, count in [("all", row.sum(), mixing.sum()), *zip(TOKEN_CLASSES, row, mixing)]
                if count
            ],
            "mixing_by_frequency": [{"kind": kind, **self.rows.correlation(kind)} for kind in self.kinds],
            "attention": [
                {
                    "head": None if head < 0 else head,
                    "token_class": TOKEN_CLASSES[c],
                    "weight_share": float(weights[head, c] / weights[head].sum()),
                    "norm_share": float(norms[head, c] / norms[head].sum()),
                    "token_share": float(attended[c] / attended.sum()),
                }
                for head in range(-1, heads)
                for c in attended.nonzero()[:, 0].tolist()
            ],
            "weight_norm_correlation": [
                {"head": h, "spearman": spearman(pairs[:, 1 + h], pairs[:, 1 + heads + h]), "pairs": len(pairs)}
                for h in range(heads)
            ],
            "norm_by_frequency": [self.columns.correlation("norm")],
            # the count of special tokens in fairseq's dictionary is a placeholder
            "token_norms": [
                {
                    "token": types.tokens[i],
                    "frequency": None if types.special[i] else int(types.frequency[i]),
                    "occurrences": int(counts[i]),
                    "norm": float(total[i] / counts[i]),
                    "token_class": TOKEN_CLASSES[types.classes[i]],
                }
                for i in counts.nonzero()[:, 0].tolist()
            ],
        }


def spearman(x: Any, y: Any) -> float:
    """Spearman's rank correlation, with mean ranks for ties.

    It is NaN if a side has fewer than two values or is constant except for rounding (:data:`ROUNDING`), because ranks
    of rounding errors mean nothing.
    """
    if any(len(side) < 2 or np.ptp(side) <= ROUNDING * np.abs(side).max() for side in (x, y)):
        return math.nan
    correlation = pd.DataFrame({"x": x, "y": y}).corr(method="spearman")
    return float(correlation.to_numpy()[0, 1])
