"""Runs a model over a data set, teacher-forced, and collects statistics batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import torch
from fairseq import utils
from fairseq.tasks import setup_task
from tqdm import tqdm

from alignment_eval.errors import InputError
from alignment_eval.maps.kinds import KINDS
from fairseq_norm_plugin.analyze.statistics import BlockStatistics, TokenTypes
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions, teacher_forcing
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.checkpoints.build import build_model
from fairseq_norm_plugin.checkpoints.files import dictionary_files
from fairseq_norm_plugin.checkpoints.identity import data_hash, model_hash
from fairseq_norm_plugin.checkpoints.read import fairseq_errors, read_checkpoint_parts
from fairseq_norm_plugin.installed import versions
from fairseq_norm_plugin.maps.block import Block
from fairseq_norm_plugin.maps.weights import BlockWeights
from fairseq_norm_plugin.transformers.families import read_release

#: The tokens of the rows and of the columns of each block type's maps.
_SIDES = {ENCODER_SELF: ("source",) * 2, DECODER_SELF: ("target",) * 2, DECODER_CROSS: ("target", "source")}


def analyse(cfg: Any, path: str, kinds: Sequence[str]) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """Run one model, a checkpoint or a directory in the format of Transformers, over the subset of fairseq's ``cfg``.

    Returns the tables, with ``kinds`` of mixing ratios, and a summary of the run.
    """
    with fairseq_errors(f"{cfg.task.data}: fairseq cannot set up its task", "give data of fairseq-preprocess"):
        task = setup_task(cfg.task)
    # fairseq-validate would take the task from the checkpoint; here it must be one that can read maps
    state = _released(path, task, cfg.task) if Path(path).is_dir() else read_checkpoint_parts([path])
    model: Any = build_model(task, state, path)
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
        "data": data_hash(cfg.task.data.split(":")[0], subset, analysis.languages),
        "task": str(cfg.task._name),
        "kinds": list(kinds),
        **analysis.size(),
    }
    return analysis.tables(), summary


def _released(path: str, task: Any, cfg: Any) -> dict[str, Any]:
    """What a checkpoint would hold, of a directory in the format of Transformers."""
    with TemporaryDirectory(prefix="dictionaries-") as place:
        release = read_release(Path(path), Path(place), cfg.source_lang, cfg.target_lang)
        files = dictionary_files(Path(place), release.languages)
        own = [task.load_dictionary(str(file)) for file in files]
    if own != [task.source_dictionary, task.target_dictionary]:
        raise InputError(
            f"{cfg.data}: was not binarised with the dictionaries of {path}; write them with python -m "
            f"fairseq_norm_plugin.convert, and use them as --srcdict and --tgtdict of fairseq-preprocess"
        )
    return release.state


class Analysis:
    """Statistics of every block of a swapped model, collected batch by batch.

    ``task`` has the dictionaries.  A block ignores ``kinds`` of mixing ratios that do not apply to it.
    """

    def __init__(self, model: Any, task: Any, kinds: Sequence[str]) -> None:
        self._model = model
        self._decodes = hasattr(model, "decoder")
        source = TokenTypes.of(task.source_dictionary)
        types = {"source": source, "target": TokenTypes.of(task.target_dictionary) if self._decodes else source}
        self.languages = (task.cfg.source_lang, task.cfg.target_lang) if self._decodes else (None, None)
        self.statistics: dict[tuple[str, int], BlockStatistics] = {}
        self._captures: list[MapCapture[None]] = []
        self._tokens: dict[str, torch.Tensor] = {}
        self._sentences, self._pad = 0, source.pad
        self._counts = dict.fromkeys(types if self._decodes else ("source",), 0)
        for attention in sorted(norm_attentions(model), key=lambda known: BLOCK_TYPES.index(known.site.block)):
            block, number = attention.site.block, attention.site.number
            rows, columns = (types[side] for side in _SIDES[block])
            known = [kind for kind in kinds if _applies(kind, attention.block_weights())]
            self.statistics[block, number] = BlockStatistics(block, known, rows, columns)
            self._captures.append(MapCapture(block, [number], partial(self._add_block, (block, number))))

    def add(self, sample: dict[str, Any]) -> None:
        """Run the model over one batch, teacher-forced, and add it."""
        inputs = sample["net_input"]
        source = inputs["src_tokens"]
        self._tokens = {"source": source, "target": inputs.get("prev_output_tokens", source)}
        self._sentences += len(source)
        for side in self._counts:
            self._counts[side] += int(self._tokens[side].ne(self._pad).sum())
        with torch.no_grad(), teacher_forcing(self._model), capturing(norm_attentions(self._model), *self._captures):
            self._model(**(inputs if self._decodes else {"src_tokens": source}), features_only=True)
        for capture in self._captures:
            capture.take()

    def _add_block(self, key: tuple[str, int], block: Block) -> None:
        rows, columns = (self._tokens[side] for side in _SIDES[key[0]])
        self.statistics[key].add(block, rows, columns)

    def size(self) -> dict[str, Any]:
        """The numbers of analysed sentences and tokens, and of positions that were left out."""
        left_out = {f"{type_} {number}": s.left_out for (type_, number), s in self.statistics.items() if s.left_out}
        return {"sentences": self._sentences, "tokens": self._counts, "positions_with_nothing_to_mix": left_out}

    def tables(self) -> dict[str, pd.DataFrame]:
        """The results, one table per file (docs/analysis.md)."""
        broken = [place for place, statistics in self.statistics.items() if statistics.broken]
        if broken:  # the first one of a forward pass, where it arises
            block, number = min(broken, key=lambda place: (place[0] != ENCODER_SELF, place[1]))
            raise InputError(f"the maps of {block} {number} hold NaN; check whether the checkpoint holds NaN")
        collected: dict[str, list[dict[Any, Any]]] = {}
        for (block, number), statistics in self.statistics.items():
            for name, rows in statistics.tables().items():
                collected.setdefault(name, []).extend({"block": block, "layer": number, **row} for row in rows)
        tables = {name: pd.DataFrame(rows) for name, rows in collected.items()}
        for name, table in tables.items():  # pandas would turn integers with gaps into floats
            column = "frequency" if name == "token_norms" else "head"
            if column in table:
                table[column] = table[column].astype("Int64")
        return tables


def _applies(kind: str, weights: BlockWeights) -> bool:
    if KINDS[kind].feed_forward:
        return weights.feed_forward is not None
    return KINDS[kind].residual or not weights.cross  # else constantly 1
