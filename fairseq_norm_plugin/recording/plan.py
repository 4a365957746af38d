"""The plan of a run of generation or forced scoring: the sentences that it will yield, and its signature."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from fairseq.data.iterators import EpochBatchIterator
from numpy.typing import NDArray
from torch import nn

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from fairseq_norm_plugin.checkpoints.identity import architecture_hash, data_hash, dictionary_hash
from fairseq_norm_plugin.installed import versions
from fairseq_norm_plugin.text.tokens import SideReader

#: Options of generation that change no map.
_SILENT_OPTIONS = {"_name", "print_alignment", "print_step", "no_beamable_mm"}


@dataclass(frozen=True)
class Plan:
    """The sentences that a run over a data set will yield, known before its first batch."""

    subset: str
    size: int  #: of the data set
    batches: Sequence[Sequence[int]]  #: the expected ids of this shard, without those that were written before
    kept: int  #: the number of the latter
    skipped: Mapping[int, str]  #: the ids (of all shards) that fairseq skipped, with the reason
    shard: int
    shards: int
    batching: Mapping[str, int | None]  #: it decides the distribution over shards and what ``--sampling`` draws

    @classmethod
    def of(
        cls,
        subset: str,
        iterator: Any,
        skipped: Mapping[int, str],
        batching: Mapping[str, Any],
        written: Sequence[int] | NDArray[np.int64] = (),
    ) -> Plan:
        """The plan for fairseq's ``iterator`` with the arguments ``batching``, when ``written`` ids are done.

        Sentences stay in their batches: in other batches the last digits of values would change.
        """
        size = len(iterator.dataset)
        batches = iterator.frozen_batches
        if not batches:
            raise InputError(
                f"subset {subset} has no sentence to process ({size} sentences, {len(skipped)} skipped as too "
                f"long); raise --max-source-positions or --max-target-positions"
            )
        shard, shards = batching.get("shard_id", 0), batching.get("num_shards", 1)
        batches = batches[shard::shards]
        done = np.zeros(size, dtype=np.bool_)
        ids = np.asarray(written, dtype=np.int64)
        done[ids[ids < size]] = True  # that of a run with more sentences is refused later
        if done.any():
            batches = [[id_ for id_ in batch if not done[id_]] for batch in batches]
            batches = [batch for batch in batches if batch]
        return cls(
            subset=subset,
            size=size,
            batches=batches,
            kept=int(done.sum()),
            skipped=skipped,
            shard=shard,
            shards=shards,
            batching={
                name: batching.get(name)
                for name in ("max_tokens", "max_sentences", "required_batch_size_multiple", "seed")
            },
        )

    def iterator(self, whole: Any) -> Any:
        """fairseq's iterator ``whole``, or one over the remaining sentences."""
        if not self.kept:
            return whole
        return EpochBatchIterator(
            whole.dataset,
            whole.collate_fn,
            self.batches,
            num_workers=whole.num_workers,
            buffer_size=whole.buffer_size,
        )

    def stubs(self, layers: tuple[int, ...]) -> list[SentenceMaps]:
        """Stubs for the skipped sentences; the first shard records those of all shards."""
        if self.shard != 0:
            return []
        empty = SentenceSide((), np.empty(0, dtype=np.int32))
        return [
            SentenceMaps(id=id_, source=empty, target=empty, layers=layers, status=reason)
            for id_, reason in sorted(self.skipped.items())
        ]


def run_signature(
    task: str,
    cfg: Any,
    plan: Plan,
    models: Sequence[nn.Module],
    parameters: str,
    readers: Sequence[SideReader],
    input_options: Mapping[str, Any],
    generation: Any,
) -> dict[str, Any]:
    """The signature of a run: everything that every output depends on.

    ``task`` is the name of the task's class, ``cfg`` its options, ``input_options`` more of them that change the input
    of the model, ``parameters`` the hash of the models' parameters in float32.
    """
    languages = (cfg.source_lang, cfg.target_lang)
    vocabularies = [reader.vocabulary for reader in readers]
    texts = [reader.text and reader.text.hash for reader in readers]
    generation_fields = generation_options(generation)
    batching = plan.batching if plan.shards > 1 or generation_fields.get("sampling") else {}
    return {
        **versions(),
        "task": task,
        "model": parameters,
        "dtype": str(next(models[0].parameters()).dtype).removeprefix("torch."),
        "architecture": architecture_hash(models),
        "data": data_hash(cfg.data.split(":")[0], plan.subset, languages),
        "dictionaries": dictionary_hash(*(vocabulary.dictionary for vocabulary in vocabularies)),
        "subset": plan.subset,
        "languages": list(languages),
        "marks": [vocabulary.mark for vocabulary in vocabularies],
        "special_tokens": [sorted(vocabulary.specials) for vocabulary in vocabularies],
        **input_options,
        "left_pad": [cfg.left_pad_source, cfg.left_pad_target],
        "max_positions": [cfg.max_source_positions, cfg.max_target_positions],
        "truncate_source": cfg.truncate_source,
        "shards": plan.shards,
        "generation": generation_fields,
        **({"texts": texts} if any(texts) else {}),
        **batching,
    }


def generation_options(args: Any) -> dict[str, Any]:
    """The generation options of a run (fairseq's GenerationConfig in any of its forms), for JSON."""
    if dataclasses.is_dataclass(args) and not isinstance(args, type):
        options = dataclasses.asdict(args)
    else:
        options = dict(args.items() if hasattr(args, "items") else vars(args))
    return {
        name: value if isinstance(value, (int, float, type(None))) else str(value)
        for name, value in sorted(options.items())
        if name not in _SILENT_OPTIONS
    }
