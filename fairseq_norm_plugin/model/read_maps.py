"""Maps of sentence pairs, of single blocks, and of masked language models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask

from alignment_eval.errors import InputError, shown
from alignment_eval.extraction.method import MapName
from alignment_eval.figures.notebook import DisplayMaps
from alignment_eval.maps.kinds import KINDS, block_kinds
from alignment_eval.maps.sentence import Array, status_of
from alignment_eval.maps.words import require_known
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions, teacher_forcing
from fairseq_norm_plugin.capture.build import build_model
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, ENCODER_SELF
from fairseq_norm_plugin.capture.recorder import BatchMaps, Quantities
from fairseq_norm_plugin.checkpoints.read import fairseq_errors, read_checkpoint_parts
from fairseq_norm_plugin.environment import enough_threads
from fairseq_norm_plugin.formulas.block import Block
from fairseq_norm_plugin.formulas.kinds import head_map, layer_map, mixing_ratio
from fairseq_norm_plugin.model.direction import Direction, length_batches
from fairseq_norm_plugin.model.translate import Translator
from fairseq_norm_plugin.text.pair import Line, SentencePair

#: Text, or token ids.
Sentence = str | Sequence[int]
#: The types of token ids; others would be cut to whole numbers.
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def encode_sentence(direction: Direction, sentence: Sentence, which: int, name: str) -> Line:
    """Encode a source (``which`` 0) or a target (1), called ``name`` in messages."""
    if isinstance(sentence, str):
        line = direction.encode_line(direction.pipelines[which].read(sentence), which)
    else:
        line = _spelled(direction, _checked_ids(direction, sentence, which, name), which)
    if not line.side.word_count:
        raise InputError(f"{name}: an empty sentence: expected at least one token")
    if len(line.ids) > (limit := direction.limits[which]):
        raise InputError(f"{name}: {len(line.ids)} tokens with </s>: the model takes at most {limit}")
    return line


def encode_sentences(direction: Direction, sentences: Iterable[Sentence], which: int, name: str) -> list[Line]:
    """Encode the sources (``which`` 0) or the targets (1) of a list, called ``name`` in messages."""
    if isinstance(sentences, str) or not isinstance(sentences, Iterable):
        raise InputError(f"{name}: {sentences!r:.40}: expected a list of sentences, each of them text or token ids")
    lines = [encode_sentence(direction, own, which, f"{name}[{number}]") for number, own in enumerate(sentences)]
    if not lines:
        raise InputError(f"{name}: an empty list: expected at least one sentence")
    return lines


def _checked_ids(direction: Direction, sentence: Sequence[int], which: int, name: str) -> torch.Tensor:
    """Token ids, with the special tokens around them."""
    dictionary = direction.vocabularies[which].dictionary
    try:
        given = torch.as_tensor(list(sentence))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(f"{name}: {shown(sentence)}: expected text or token ids ({error})") from error
    if len(given) and (given.dim() != 1 or given.dtype not in _WHOLE):
        raise InputError(f"{name}: {shown(sentence)}: expected text or token ids, which are whole numbers")
    ids = given.to(torch.long)
    if len(ids) and ids[-1] == dictionary.eos():
        ids = ids[:-1]
    prefix, suffix = map(ids.new_tensor, direction.special_tokens.around(which))
    ids = torch.cat([prefix, ids, suffix])
    if int(ids.min()) < 0 or int(ids.max()) >= len(dictionary):
        raise InputError(f"{name}: token ids {int(ids.min())} to {int(ids.max())}: expected 0 to {len(dictionary) - 1}")
    return ids


def _spelled(direction: Direction, ids: torch.Tensor, which: int) -> Line:
    spelling = direction.vocabularies[which].spell(ids)
    return Line("", (), "", spelling.side, ids, spelling.unknown, spelling.certain)


def read_maps(
    translator: Translator,
    sources: Sequence[Line],
    targets: Sequence[Line] | None,
    kinds: Sequence[str],
    beam: int,
    max_tokens: int,
) -> list[DisplayMaps]:
    """The maps of ``kinds`` of all layers of encoded pairs, in order; without targets the model translates."""
    direction = translator.direction
    pairs = dict(enumerate(map(SentencePair, sources, targets or [Line("", (), "")] * len(sources))))
    names = [MapName(layer) for layer in range(direction.layers)]
    maps = {}
    for batch in length_batches(pairs, max_tokens):
        if targets is None:
            for id_, best in translator.search(batch, beam).items():
                translation = replace(_spelled(direction, best["tokens"].cpu(), 1), certain=True)
                batch[id_] = batch[id_]._replace(target=translation)
        for id_, found in direction.maps(batch, kinds, names, log_probs=True).items():
            assert found.log_probs is not None
            status = status_of(*(line.certain for line in batch[id_]))
            maps[id_] = replace(DisplayMaps.of(found), status=status, score=float(found.log_probs.mean()))
    return [maps[id_] for id_ in pairs]


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
    return MaskedLM(task, build_model(task, read_checkpoint_parts([str(path)]), str(path), swapped=ENCODER_SELF))
