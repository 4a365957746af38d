"""A validation subset with gold alignments, which are part of its batches."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairseq.data import BaseWrapperDataset

from alignment_eval.errors import InputError
from alignment_eval.files import ContentHash, json_hash
from alignment_eval.links.formats import GoldSentence
from alignment_eval.links.read import ReadOptions, read_gold
from alignment_eval.maps.sentence import SentenceMaps, status_of
from alignment_eval.scoring.gold_corpus import GoldMatrix, check_links
from fairseq_norm_plugin.text.tokens import SideReader, UnknownTokens

#: A child of the logger of fairseq-train, so that ``--log-file`` has the messages too.
logger = logging.getLogger("fairseq_cli.train.monitoring")

#: The key of a batch for its list of :class:`GoldPair`, in the order of ``batch["id"]``.
GOLD_KEY = "gold"
#: The metrics that tell gold and texts apart, so that no curve joins AERs of two.
NUMBERED = ("aer_gold", "aer_texts")


@dataclass(frozen=True, eq=False)
class GoldPair:
    """One sentence pair: its tokens and words (no maps yet), and its gold."""

    sentence: SentenceMaps  #: its status is ``ok`` if its words are certain
    gold: GoldMatrix | None  #: None if they are not; the sentence then counts as a hypothesis without links
    links: GoldSentence  #: the same as links, whether the words are certain or not
    gold_size: int  #: number of sentences in the whole gold, to check whether a validation saw all of them
    #: The numbers of gold and texts in logs (:data:`NUMBERED`), the same for all pairs.
    numbers: Mapping[str, int] = field(default_factory=dict)
    pictured: bool = False  #: whether each validation draws it


class GoldDataset(BaseWrapperDataset):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's data set of sentence pairs, whose batches hold the gold of their sentences, ``pairs`` by id.

    ``identity`` has the hashes of gold and texts, and how the gold was read.
    """

    def __init__(self, dataset: Any, pairs: list[GoldPair], identity: Mapping[str, Any]) -> None:
        super().__init__(dataset)
        self.pairs = pairs
        self.identity = identity

    def collater(self, samples: Any, **kwargs: Any) -> Any:
        """fairseq's batch, with :data:`GOLD_KEY`."""
        batch = self.dataset.collater(samples, **kwargs)
        if batch:
            batch[GOLD_KEY] = [self.pairs[id_] for id_ in batch["id"].tolist()]
        return batch

    @property
    def src(self) -> Any:
        """The source side."""
        return self.dataset.src

    @property
    def tgt(self) -> Any:
        """The target side."""
        return self.dataset.tgt


def with_gold(
    dataset: Any,
    subset: str,
    path: str | Path,
    options: ReadOptions,
    readers: tuple[SideReader, SideReader],
) -> GoldDataset:
    """Add the gold of the file ``path``, whose line k belongs to sentence k, to fairseq's data set of a subset."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file, but --aer-gold names it for subset {subset}; check the path")
    alignments = read_gold(path, replace(options, advise="{} --aer-gold-{}".format), warn=logger.warning)
    gold = list(alignments)
    if len(gold) != len(dataset):
        raise InputError(
            f"{path}: the gold has {len(gold)} sentences, but subset {subset} has {len(dataset)}; binarise the subset "
            f"from the text of the gold (fairseq-preprocess --testpref)"
        )
    if not alignments.file.possible:
        raise InputError(f"{path}: the gold of subset {subset} has no links, so every AER would be 1; check the file")
    unknown = UnknownTokens()
    pairs = []
    numbers: dict[str, int] = {}  # not known before all pairs are read
    for id_, links in enumerate(gold):
        source, target = (reader.spell(id_, ids[id_]) for reader, ids in zip(readers, (dataset.src, dataset.tgt)))
        unknown.add_pair(source, target)
        certain = status_of(source.certain, target.certain)
        sentence = SentenceMaps(id_, source.side, target.side, layers=(), status=certain)
        if sentence.ok:
            check_links(links.possible, sentence, f"{path}, subset {subset}")
        matrix = GoldMatrix.of(links, sentence) if sentence.ok else None
        pairs.append(GoldPair(sentence, matrix, links, len(gold), numbers))
    sure, possible = (sum(len(getattr(s, name)) for s in gold) for name in ("sure", "possible"))
    logger.info(
        "gold of subset %s: %s, base %d, %d sentences, %d sure links, %d possible only",
        *(subset, path, alignments.base, len(gold), sure, possible - sure),
    )
    for warning in filter(None, (unknown.warning(), unknown.uncertain_warning())):
        logger.warning(warning)
    texts = ContentHash()
    for pair in pairs:
        sides = [(side.tokens, side.words.tolist()) for side in (pair.sentence.source, pair.sentence.target)]
        texts.update(json.dumps(sides).encode())
    of_file = alignments.file
    identity = {"gold": of_file.hash, "format": of_file.format, "base": alignments.base, "swap": alignments.swap}
    numbers.update(zip(NUMBERED, map(log_number, (identity, texts.short))))
    return GoldDataset(dataset, pairs, {**identity, "texts": texts.short})


def log_number(value: Any) -> int:
    """A number of at most six digits, which is all that fairseq logs, that tells values apart."""
    return int(json_hash(value), 16) % 1_000_000
