"""What goes on in a model: the maps of single blocks; what a prediction loses without words, or without patterns.

What it loses without a word of the source is the measure of which map says what a prediction needs.  That it loses
little without the attention patterns that were learned is a claim of Kobayashi et al. (2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from numpy.typing import NDArray

from alignment_eval.errors import InputError, require_known
from alignment_eval.extraction.method import DEFAULTS
from alignment_eval.maps.sentence import KINDS, Array, SentenceSide, block_kinds
from fairseq_norm_plugin.capture.attention import (
    MapCapture,
    NormAttention,
    capturing,
    in_one_thread,
    norm_attentions,
    swap_attention,
    teacher_forcing,
)
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, ENCODER_SELF, build_model
from fairseq_norm_plugin.capture.recorder import BatchMaps, Quantities
from fairseq_norm_plugin.checkpoints.read import fairseq_errors, read_checkpoint_parts
from fairseq_norm_plugin.environment import enough_threads
from fairseq_norm_plugin.formulas.block import Block
from fairseq_norm_plugin.formulas.kinds import head_map, layer_map, mixing_ratio
from fairseq_norm_plugin.model.model import Model, length_batches
from fairseq_norm_plugin.text.pair import SentencePair

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BlockMaps:
    """The maps of one block type for one sentence (pair).

    Attributes:
        block: block type (capture.layers.BLOCK_TYPES).
        kind: map kind.
        layers: layer maps, float32 [L, T, S]; for encoder-decoder attention, kinds with a residual connection have an
            additional last column for it.
        heads: maps of single heads, [L, H, T, S]; None for kinds without.
        mixing_ratio: [L, T], from 0 to 1; None for kinds without.
        rows: the T tokens of the rows; in the decoder, its inputs.
        columns: the S tokens of the columns.
    """

    block: str
    kind: str
    layers: Array
    heads: Array | None
    mixing_ratio: Array | None
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __repr__(self) -> str:
        numbers, rows, columns = self.layers.shape
        heads = "" if self.heads is None else f", {self.heads.shape[1]} heads"
        return f"BlockMaps({self.block}, {self.kind}, {numbers} layers{heads}, {rows} × {columns} tokens)"


def block_maps_of(
    models: Sequence[Any],
    inputs: dict[str, Any],
    block: str,
    kind: str,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
) -> BlockMaps:
    """Compute the maps of ``kind`` of all blocks of type ``block`` over ``inputs``: the mean over ``models``."""
    require_known("block type", block, BLOCK_TYPES)
    require_known("map kind", kind, block_kinds())
    maps = BatchMaps()
    for model in models:
        numbers = [attention.site.number for attention in norm_attentions(model, block)]
        capture = MapCapture(block, numbers, partial(_maps_of, kind=kind))
        threads = enough_threads([model], len(rows) + len(columns))
        with torch.no_grad(), threads, teacher_forcing(model), capturing(norm_attentions(model), capture):
            model(**inputs, features_only=True)
        maps.add(capture.take())
    found = {name: of_batch[0] for name, of_batch in maps.means().items()}
    return BlockMaps(block, kind, found["layers"], found.get("heads"), found.get("ratio"), rows, columns)


def _maps_of(block: Block, kind: str) -> Quantities:
    """The layer map of a block, and the maps of its heads and the mixing ratio if the kind has them."""
    found = {"layers": layer_map(block, kind)}
    if KINDS[kind].heads:
        found["heads"] = head_map(block, kind)
    if KINDS[kind].mixing:
        found["ratio"] = mixing_ratio(block, kind)
    return found


class MaskedLM:
    """A masked language model, made by :func:`load_masked_lm`; several threads may use it, as with NormModel."""

    def __init__(self, task: Any, model: Any) -> None:
        self.task = task
        self.model = model

    def block_maps(self, sentence: str, kind: str) -> BlockMaps:
        """Compute the maps of ``kind`` of every layer's self-attention; only ``<mask>`` in the text is masked.

        Args:
            sentence: subwords separated by spaces, without ``<s>`` and ``</s>``.
            kind: a kind of map of one block (docs/maps.md).

        Raises:
            InputError: the sentence is empty or longer than the model takes.
            UsageError: an unknown kind.
        """
        dictionary = self.task.source_dictionary
        text = dictionary.encode_line(sentence, add_if_not_exist=False, append_eos=True).long()
        ids = torch.cat([text.new_tensor([dictionary.bos()]), text])
        limit = self.model.max_positions()
        if not 2 < len(ids) <= limit:
            raise InputError(f"{len(ids) - 2} tokens: expected 1 to {limit - 2} (<s> and </s> are added)")
        tokens = tuple(dictionary[i] for i in ids.tolist())
        return block_maps_of([self.model], {"src_tokens": ids[None]}, ENCODER_SELF, kind, tokens, tokens)


def load_masked_lm(path: str | Path, data: str | Path) -> MaskedLM:
    """Load a masked language model (fairseq's RoBERTa, or a converted BERT) to read maps from.

    Args:
        path: the checkpoint.
        data: the directory with ``dict.txt``.

    Raises:
        InputError: a file is missing, the checkpoint is unsafe, or the model has no Transformer encoder.
    """
    for name in (str(path), str(Path(data) / "dict.txt")):
        if not Path(name).is_file():
            raise InputError(f"{name}: no such file: expected the checkpoint, and dict.txt in {data}")
    with fairseq_errors(f"{data}/dict.txt: not a dictionary of fairseq", "give the dict.txt of the model"):
        task = MaskedLMTask.setup_task(MaskedLMConfig(data=str(data)))
    model = build_model(task, read_checkpoint_parts([str(path)]), str(path))
    swap_attention(model, ENCODER_SELF)
    return MaskedLM(task, model)


# ---- what a prediction loses


def losses_of_words(model: Model, pair: SentencePair, unknown: bool = False) -> Floats:
    """The log probability of each target word minus that without each source word, [target words, source words]."""
    size = pair.source.side.word_count
    whole, *without = word_log_probs(model, pair, np.eye(size + 1, size, k=-1, dtype=bool), unknown)
    losses: Floats = (whole - np.stack(without)).T
    return losses


@torch.no_grad()
def word_log_probs(model: Model, pair: SentencePair, deleted: NDArray[np.bool_], unknown: bool = False) -> Floats:
    """The log probability (base e) of each target word, all words before it given, without source words.

    ``deleted`` [N, source words] are the words of each of N cases.  The encoder-decoder attention of no layer sees
    them, as if they were padding; with ``unknown`` the encoder reads ``<unk>`` in their place.  Words that share a
    subword go and count together.  Returns [N, target words], of the mean probability of the networks.
    """
    hidden = torch.from_numpy((deleted.astype(int) @ _tokens_of(pair.source.side)) > 0)
    rows = max(1, DEFAULTS.max_tokens // max(pair.lengths))
    found = []
    for part in torch.split(hidden.to(model.device), rows):
        sample = model.sample(dict.fromkeys(range(len(part)), pair))
        inputs, target = sample["net_input"], list(sample["target"])
        if unknown:
            ids = inputs["src_tokens"].masked_fill(part, model.vocabularies[0].dictionary.unk())
            inputs["src_tokens"] = ids
        log_probs = BatchMaps()
        for network in model.networks:
            with enough_threads([network], part.numel()), teacher_forcing(network):
                # the encoder reads the same text in each case, unless words are unknown
                read = {name: tensor[: len(part) if unknown else 1] for name, tensor in inputs.items()}
                encoded = network.encoder.forward_torchscript(read)
                if not unknown:
                    encoded = network.encoder.reorder_encoder_out(encoded, part.new_zeros(len(part), dtype=torch.long))
                    encoded["encoder_padding_mask"] = [part]
                decoded = network.decoder(inputs["prev_output_tokens"], encoder_out=encoded, features_only=True)
                log_probs.add_log_probs(network, decoded[0], target)
        found += log_probs.log_probs([len(target[0])] * len(part))
    return np.stack(found) @ _tokens_of(pair.target.side).T


@torch.no_grad()
def uniform_losses(
    model: Model, pairs: Mapping[int, SentencePair], max_tokens: int
) -> Iterator[tuple[str, int | None, float]]:
    """What a target token of encoded pairs loses of its log probability if a layer's attention weights are uniform.

    A query of zeros gives all positions that a row sees the same weight.  Yields block type, layer (None: all of the
    type) and mean loss, by the first network.
    """
    network = model.networks[0]
    batches = list(length_batches(pairs, max_tokens))

    def mean(layers: Sequence[NormAttention]) -> float:
        queries = [part for attention in layers for part in attention.q_proj.parameters()]
        with in_one_thread([network]), ExitStack() as stack:
            for part in queries:
                stack.callback(part.copy_, part.clone())
                part.zero_()
            scores = [scores for batch in batches for scores in model.scores(batch).values()]
        return float(np.concatenate(scores).mean())

    whole = mean([])
    for block in BLOCK_TYPES:
        attentions = norm_attentions(network, block)
        for attention in attentions:
            yield block, attention.site.number, whole - mean([attention])
        yield block, None, whole - mean(attentions)


def _tokens_of(side: SentenceSide) -> NDArray[np.int64]:
    """1 where a token belongs to a word, [words, tokens]."""
    counts = np.ones(side.word_count, dtype=int) if side.words_per_run is None else side.words_per_run
    runs = np.repeat(np.arange(len(counts)), counts)
    members: NDArray[np.int64] = np.equal(runs[:, None], side.words).astype(np.int64)
    return members
