"""Sentence pairs of fairseq's data sets: batches of all of them, the words that their ids spell, and their gold."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.data import BaseWrapperDataset
from torch import Tensor

from alignment_eval.errors import InputError
from alignment_eval.links.files import ReadOptions, read_gold
from alignment_eval.links.formats import GoldSentence
from alignment_eval.maps.sentence import UNKNOWN, SentenceMaps, status_of
from alignment_eval.reading import TextFile, content_hash, json_hash
from alignment_eval.scoring.gold_corpus import GoldMatrix, check_links
from fairseq_norm_plugin.text.tokens import Spelling, UnknownTokens, Vocabulary

logger = logging.getLogger(__name__)
#: The logger of validations: a child of that of fairseq-train, so that ``--log-file`` has the messages too.
train_logger = logging.getLogger("fairseq_cli.train.monitoring")

#: The key of a batch for its :class:`GoldBatch`.
GOLD_KEY = "gold"
#: Metrics that are the same in all batches: the size of the gold, to check whether a validation saw all of it; and the
#: numbers that tell golds and texts apart, so that no curve joins AERs of two.
SAME = ("aer_sentences_gold", "aer_gold", "aer_texts")
#: The names of the sides of a data set, and of a pair.
_SIDES = (("src", "source"), ("tgt", "target"))


def all_batches(
    batch_by_size: Callable[..., Any], indices: Any, required_batch_size_multiple: int = 1, **sizes: Any
) -> tuple[list[Any], list[Any]]:
    """fairseq's batches of a data set, and batches of the sentences that it loses.

    fairseq drops the last batch unless its size is a multiple of ``--required-batch-size-multiple``.
    """
    multiple = required_batch_size_multiple
    batches = list(batch_by_size(indices, required_batch_size_multiple=multiple, **sizes) if len(indices) else ())
    lost = indices[~np.isin(indices, [id_ for batch in batches for id_ in batch])]
    if not len(lost):
        return batches, []
    logger.info(
        "%d of %d sentences come last: fairseq alone would lose them (--required-batch-size-multiple %d)",
        *(len(lost), len(indices), multiple),
    )
    return batches, list(batch_by_size(lost, **sizes))


# ---- words


class BinarisedText:
    """What the ids of a data set's sentence pairs spell, with the help of their text; and how much is unknown.

    Args:
        dataset: fairseq's data set of ``size`` pairs, which may hold the text itself.
        vocabularies: of source and target.
        texts: files of the text of source and target, in subwords or words; None: there is none.
        cut: whether source sentences may be only the beginning of their text (``--truncate-source``).

    Attributes:
        hashes: of the content of the texts; None: there is none.

    Raises:
        InputError: a text has another number of lines.
    """

    def __init__(
        self,
        dataset: Any,
        size: int,
        vocabularies: tuple[Vocabulary, Vocabulary],
        texts: Sequence[str | Path | None] = (None, None),
        cut: bool = False,
    ) -> None:
        self.vocabularies, self._dataset, self._cut = vocabularies, dataset, cut
        self._files = [None if text is None else TextFile(text) for text in texts]
        self._lines = [None if file is None else [line for _, line in file.lines()] for file in self._files]
        self.hashes = [None if file is None else file.hash for file in self._files]
        self._unknown, self._uncertain, self._sentences, self._left_out = UnknownTokens(), Counter[str](), 0, 0
        for file, lines in zip(self._files, self._lines):
            if file is not None and lines is not None and len(lines) != size:
                raise InputError(
                    f"{file.name}: the text has {len(lines)} lines, but the binarised data has {size} sentences"
                )

    def spell(self, which: int, id_: int, ids: Tensor) -> Spelling:
        """What the ``ids`` of a sentence's source (``which`` 0) or target (1) spell."""
        vocabulary, file, lines = self.vocabularies[which], self._files[which], self._lines[which]
        if file is None or lines is None:
            text = surface(self._dataset, _SIDES[which][0], id_)
            try:
                return vocabulary.spell(ids) if text is None else spell_with(vocabulary, ids, text, cut=True)
            except InputError:  # the data set has changed the sentence, so its text does not help with these tokens
                return vocabulary.spell(ids)
        # separated by ASCII whitespace only; fairseq also separates at others
        forms = [token.decode() for token in lines[id_].split()]
        try:
            return spell_with(vocabulary, ids, forms, self._cut and which == 0)
        except InputError as error:
            raise InputError(f"{file.name}:{id_ + 1}: {error}") from error

    def count(self, *pair: Spelling) -> None:
        """Count the unknown tokens of source and target, and whether their words are certain."""
        self._sentences += 1
        self._left_out += not all(side.certain for side in pair)
        for (_, name), side in zip(_SIDES, pair):
            self._unknown.add(name, len(side.side.tokens), side.unknown)
            self._uncertain[name] += not side.certain

    def warnings(self) -> Iterator[str]:
        """Warnings if many tokens are unknown, and if they make the words of sentences uncertain."""
        if warning := self._unknown.warning():
            yield warning
        if self._left_out:
            options = [f"--norm-{name}-text" for _, name in _SIDES if self._uncertain[name]]
            yield (
                f"{self._left_out} of {self._sentences} sentences ({100 * self._left_out / self._sentences:.1f} %) get "
                f"no links, because {UNKNOWN} in them may be a piece of a word, which would shift all later words; "
                f"give the text that was binarised ({', '.join(options)})"
            )


def spell_with(vocabulary: Vocabulary, ids: Tensor, text: Sequence[str], cut: bool = False) -> Spelling:
    """What ``ids`` spell, if ``text`` has the tokens or the words of the sentence, without special ones.

    - The tokens that were binarised: known tokens must be equal, and the unknown ones are taken from the text.
    - Words: all unknown subwords end a word, or none does, whichever gives the text's number of words.

    ``cut``: ``ids`` may be only the beginning of the text.

    Raises:
        InputError: it is the text of another sentence.
    """
    found, dictionary, numbers = vocabulary.spell(ids), vocabulary.dictionary, ids.tolist()
    forms = [form for form in text if dictionary.index(form) not in vocabulary.specials]
    ordinary = [number for number in numbers if number not in vocabulary.specials]
    first = forms[: len(ordinary)] if cut else forms
    if [dictionary.index(form) for form in first] == ordinary:
        if vocabulary.mark == "▁" and len(first) > 1 and not any(form.startswith("▁") for form in first):
            return found  # tokens of one word and several words look the same here
        rest, own = iter(first), found.side.tokens
        tokens = [token if id_ in vocabulary.specials else next(rest) for id_, token in zip(numbers, own)]
        side = vocabulary.side(numbers, tokens)
        return Spelling(side, side, found.unknown)
    for side in (found.side, found.other):
        if side.word_count == len(forms):
            return Spelling(side, side, found.unknown)
    fewest, most = sorted((found.side.word_count, found.other.word_count))
    if fewest < len(forms) < most or (cut and len(forms) > most):
        return found
    raise InputError(
        f"the line has {len(forms)} words, but the binarised sentence has {most} words in {len(ordinary)} tokens; give "
        f"its text"
    )


def surface(dataset: Any, which: str, id_: int) -> list[str] | None:
    """The original tokens of the side ``src`` or ``tgt`` of a sentence, if the data set keeps them; else None.

    The data set may be wrapped in another and have tags added.
    """
    while dataset is not None and not hasattr(dataset, which):
        parts = getattr(dataset, "datasets", None)
        dataset = parts[0] if parts else getattr(dataset, "dataset", None)
    texts = getattr(dataset, which, None)
    while texts is not None and not hasattr(texts, "get_original_text"):
        texts = getattr(texts, "dataset", None)
    return None if texts is None else str(texts.get_original_text(id_)).split()


# ---- gold


@dataclass(frozen=True, eq=False)
class GoldPair:
    """One sentence pair: its tokens and words (no maps yet), and its gold."""

    sentence: SentenceMaps  #: its status is ``ok`` if its words are certain
    gold: GoldMatrix | None  #: None if they are not; the sentence then counts as a hypothesis without links
    links: GoldSentence  #: the same as links, whether the words are certain or not
    pictured: bool = False  #: whether each validation draws it


@dataclass(frozen=True, eq=False)
class GoldBatch:
    """The gold of a batch."""

    pairs: Sequence[GoldPair]  #: in the order of ``batch["id"]``
    numbers: Mapping[str, int]  #: the values of the metrics :data:`SAME`
    lost: bool = False  #: whether fairseq alone would lose the batch, so that it counts for AER only


class GoldDataset(BaseWrapperDataset):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's data set of sentence pairs, whose batches hold the gold of their sentences.

    ``pairs`` are by id; ``identity`` has the hashes of gold and texts, and how the gold was read.
    """

    def __init__(self, dataset: Any, pairs: list[GoldPair], identity: Mapping[str, Any]) -> None:
        super().__init__(dataset)
        self.pairs, self.identity = pairs, identity
        file = {name: value for name, value in identity.items() if name != "texts"}
        #: The values of the metrics :data:`SAME`.
        self.numbers = dict(zip(SAME, (len(pairs), log_number(file), log_number(identity["texts"]))))
        self._lost: frozenset[int] = frozenset()

    def batch_by_size(self, indices: Any, *args: Any, **sizes: Any) -> list[Any]:
        """fairseq's batches; then those of the sentences that it loses.

        If it loses all, there is no loss of fairseq's, and they count for the loss, too.
        """
        batches, lost = all_batches(super().batch_by_size, indices, *args, **sizes)
        self._lost = frozenset(int(id_) for batch in lost for id_ in batch) if batches else frozenset()
        return batches + lost

    def collater(self, samples: Any, **kwargs: Any) -> Any:
        """fairseq's batch, with its gold."""
        batch = self.dataset.collater(samples, **kwargs)
        if batch:
            ids = batch["id"].tolist()
            batch[GOLD_KEY] = GoldBatch([self.pairs[id_] for id_ in ids], self.numbers, ids[0] in self._lost)
        return batch


def with_gold(dataset: Any, subset: str, path: str | Path, base: str, text: BinarisedText) -> GoldDataset:
    """Add the gold of the file ``path``, whose line k belongs to sentence k, to fairseq's data set of a subset."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file, but --aer-gold names it for subset {subset}; check the path")
    alignments = read_gold(path, ReadOptions(base=base, advise="{} --aer-gold-{}".format, warn=train_logger.warning))
    gold = list(alignments)
    if len(gold) != len(dataset):
        raise InputError(
            f"{path}: the gold has {len(gold)} sentences, but subset {subset} has {len(dataset)}; binarise the text of "
            f"the gold"
        )
    if not alignments.possible:
        raise InputError(f"{path}: the gold of subset {subset} has no links, so every AER would be 1; check the file")
    texts, pairs = [], []
    for id_, links in enumerate(gold):
        source, target = (text.spell(which, id_, ids[id_]) for which, ids in enumerate((dataset.src, dataset.tgt)))
        text.count(source, target)
        texts.append(json.dumps([(s.side.tokens, s.side.words.tolist()) for s in (source, target)]).encode())
        status = status_of(source.certain, target.certain)
        sentence = SentenceMaps(id_, source.side, target.side, layers=(), status=status)
        if sentence.ok:
            check_links(links.possible, sentence, f"{path}, subset {subset}")
        pairs.append(GoldPair(sentence, GoldMatrix.of(links, sentence) if sentence.ok else None, links))
    sure, possible = (sum(len(getattr(s, name)) for s in gold) for name in ("sure", "possible"))
    train_logger.info(
        "gold of subset %s: %s, base %d, %d sentences, %d sure links, %d possible only",
        *(subset, path, alignments.base, len(gold), sure, possible - sure),
    )
    for warning in text.warnings():
        train_logger.warning(warning)
    read = {"gold": alignments.hash, "format": alignments.format, "base": alignments.base, "swap": alignments.swap}
    return GoldDataset(dataset, pairs, {**read, "texts": content_hash(texts)})


def log_number(value: Any) -> int:
    """A number of at most six digits, which is all that fairseq logs, that tells values apart."""
    return int(json_hash(value), 16) % 1_000_000
