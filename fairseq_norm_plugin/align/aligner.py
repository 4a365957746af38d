"""From raw parallel text to word alignments: reading, subwords, maps of a batch, links of one or both directions.

What the command line of align.py is made of; usable by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np
import torch
from fairseq.data.data_utils import batch_by_size
from fairseq.data.language_pair_dataset import collate
from torch import Tensor

from alignment_eval.errors import UsageError
from alignment_eval.extraction.bidirectional import check_join, join, words_of
from alignment_eval.extraction.extract import ExtractionOptions, WordLinks, word_links
from alignment_eval.extraction.lexicon import check_lexicon, with_lexicon, without_maps
from alignment_eval.formats.line_style import LineStyle
from alignment_eval.formats.reading import format_pharaoh_line
from alignment_eval.links.symmetrize import DEFAULT_VARIANT, check_method, symmetrize
from alignment_eval.maps.sentence import HEAD_KINDS, SentenceMaps, SentenceSide
from alignment_eval.signature import Value
from fairseq_norm_plugin.align.text import Segmenter, TokenPair, Tokens
from fairseq_norm_plugin.api import NormModel
from fairseq_norm_plugin.capture.recorder import MAPS_KEY, RecordedMaps, recorded_quantities
from fairseq_norm_plugin.generation.generator import Hypotheses, record_hypotheses


@dataclass(frozen=True, eq=False)
class Encoded:
    """One side of a pair as a model takes it: token ids with ``</s>``, and tokens with their words."""

    ids: Tensor
    side: SentenceSide
    unknown: int


class Direction:
    """A model (or an ensemble) and how links are read from it.

    Args:
        model: the model.
        segmenters: of source and target.
        options: what is extracted.
        name: the checkpoint, for messages.

    Raises:
        UsageError: ``options`` names a layer or head that the model or the kind has not.
    """

    def __init__(
        self, model: NormModel, segmenters: tuple[Segmenter, Segmenter], options: ExtractionOptions, name: str
    ) -> None:
        for map_ in options.maps:
            if map_.head is not None and options.kind not in HEAD_KINDS:
                raise UsageError(f"head {map_} of kind {options.kind}: that kind has maps of whole layers only")
            if map_.layer >= model.layers or (map_.head is not None and map_.head >= model.heads):
                raise UsageError(
                    f"map {map_} (LAYER.HEAD, or LAYER for a whole one): {name} has {model.layers} decoder layers of "
                    f"{model.heads} heads, counted from 0; name maps that it has"
                )
        self.options = options
        self.model = model
        self.limits = tuple(min(m.max_positions()[which] for m in model.models) for which in (0, 1))
        self._segmenters = segmenters
        self._dictionaries = (model.task.source_dictionary, model.task.target_dictionary)
        self._recorded = RecordedMaps(
            tuple(sorted({map_.layer for map_ in options.maps})),
            recorded_quantities([options.kind], len(model.models)),
            source_words=self._source_words,
        )
        self._batch: Mapping[int, tuple[Encoded, Encoded]] = {}

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers whose maps are taken."""
        return self._recorded.layers

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.model.task.cfg.source_lang, self.model.task.cfg.target_lang

    @property
    def dictionary_files(self) -> tuple[Path, ...]:
        """The dictionaries of source and target."""
        return tuple(Path(self.model.task.cfg.data) / f"dict.{language}.txt" for language in self.languages)

    def encode(self, pair: TokenPair) -> tuple[Encoded, Encoded]:
        """A pair's source and target as the model takes them."""
        source, target = map(_encode, pair, self._segmenters, self._dictionaries)
        return source, target

    def forget(self) -> None:
        """Free what was kept of the words so far."""
        for segmenter in self._segmenters:
            segmenter.forget()

    @torch.no_grad()
    def maps(self, pairs: Mapping[int, tuple[Encoded, Encoded]]) -> dict[int, SentenceMaps]:
        """The maps of a batch of pairs, given and returned by id: one teacher-forced pass without the output layer."""
        self._batch = pairs
        source_dictionary, target_dictionary = self._dictionaries
        items = [{"id": id_, "source": source.ids} for id_, (source, _) in pairs.items()]
        sample = dict(collate(items, source_dictionary.pad(), source_dictionary.eos()))
        device = next(self.model.models[0].parameters()).device
        sample["net_input"] = {
            name: tensor.to(device) for name, tensor in sample["net_input"].items() if torch.is_tensor(tensor)
        }
        ids = sample["id"].tolist()
        hypotheses: Hypotheses = [[{"tokens": pairs[id_][1].ids.to(device)}] for id_ in ids]
        pad, eos = target_dictionary.pad(), target_dictionary.eos()
        record_hypotheses(self.model.models, sample, hypotheses, self._recorded, pad, eos)
        return {
            id_: SentenceMaps(id_, pairs[id_][0].side, pairs[id_][1].side, self.layers, arrays=hypothesis[MAPS_KEY])
            for id_, (hypothesis,) in zip(ids, hypotheses)
        }

    def _source_words(self, id_: int, row: Tensor) -> list[int]:
        words: list[int] = self._batch[id_][0].side.words.tolist()
        return [-1] * (len(row) - len(words)) + words  # pads are on the left


def _encode(tokens: Tokens, segmenter: Segmenter, dictionary: Any) -> Encoded:
    pieces, words = segmenter(tokens)
    # a word of the text that looks like </s> or <pad> is none
    ids = [i if (i := dictionary.index(piece)) >= dictionary.nspecial else dictionary.unk() for piece in pieces]
    side = SentenceSide((*pieces, dictionary[dictionary.eos()]), np.append(words, np.int32(-1)))
    return Encoded(torch.tensor([*ids, dictionary.eos()]), side, ids.count(dictionary.unk()))


@dataclass(frozen=True)
class Both:
    """How the links of two directions become one alignment: ``join`` (directions.JOINS) or ``method`` (symmetrize)."""

    join: Optional[str] = None
    method: Optional[str] = None
    variant: str = DEFAULT_VARIANT

    def check(self) -> None:
        """Check that one way is named, and known.

        Raises:
            UsageError: it is not.
        """
        if (self.join is None) == (self.method is None):
            raise UsageError("--reverse-path brings a second alignment: expected one of --join and --symmetrize")
        if self.method is not None:
            check_method(self.method, self.variant)

    def fields(self) -> dict[str, Value]:
        """What a signature says of it."""
        if self.join is not None:
            return {"join": self.join}
        grown = self.method not in ("intersection", "union")
        return {"symmetrized": self.method, "variant": self.variant if grown else None}


class Aligner:
    """Alignment lines of sentence pairs from the model of one direction or of both.

    Args:
        forward: the source-target model.
        style: what is printed of a sentence.
        reverse: the target-source model.
        both: how the two are brought together.
        max_tokens: tokens of a batch, pads included.
        lexicon: how often a lexicon of the pairs given together is made (:mod:`extraction.lexicon`); 0: never.

    Attributes:
        tokens: subwords so far, of ``source`` and ``target``, and as the other model has them.
        unknown: how many of them the models do not know.

    Raises:
        UsageError: only one of ``reverse`` and ``both`` is given, or the rule does not allow it.
    """

    def __init__(
        self,
        forward: Direction,
        style: LineStyle,
        reverse: Optional[Direction] = None,
        both: Optional[Both] = None,
        max_tokens: int = 4000,
        lexicon: int = 0,
    ) -> None:
        if (reverse is None) != (both is None):
            raise UsageError("a model of the other direction and how to bring both together: expected both or neither")
        if both is not None:
            both.check()
            if both.join is not None:
                check_join(both.join, forward.options)
        if lexicon:
            if both is not None and both.method is not None:
                raise UsageError("--lexicon with --symmetrize: links are drawn before; expected --join product")
            check_lexicon(forward.options, None if both is None else both.join)
        self._directions = [forward, *([] if reverse is None else [reverse])]
        self._style = style
        self._both = both
        self._max_tokens = max_tokens
        self._lexicon = lexicon
        self._weighed: dict[int, WordLinks] = {}
        self._reverse_maps: dict[int, SentenceMaps] = {}
        self.tokens: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()

    def batches(
        self, pairs: Mapping[int, TokenPair], progress: Callable[[int], object] = lambda count: None
    ) -> Iterator[list[SentenceMaps]]:
        """Forward maps of ``pairs``, given by id, in batches of similar length; :meth:`line` makes lines of them.

        Pairs that are not aligned, empty or too long ones, come first, without maps and with the reason as status.
        ``progress`` is called with the number of pairs whenever some have been through the models, which with a
        lexicon is long before the first batch comes.
        """
        exchanged = {id_: (target, source) for id_, (source, target) in pairs.items()}
        encoded = [
            {id_: direction.encode(pair) for id_, pair in of.items()}
            for direction, of in zip(self._directions, (pairs, exchanged))
        ]
        stubs = {id_: reason for id_ in pairs if (reason := self._reason(id_, pairs[id_], encoded))}
        nothing = SentenceSide((), np.empty(0, dtype=np.int32))
        layers = self._directions[0].layers
        progress(len(stubs))
        yield [SentenceMaps(id_, nothing, nothing, layers, status=reason) for id_, reason in stubs.items()]
        batches = self._mapped(encoded, stubs, progress)
        yield from self._with_lexicon(batches) if self._lexicon else batches
        for direction in self._directions:
            direction.forget()

    def _mapped(
        self,
        encoded: Sequence[Mapping[int, tuple[Encoded, Encoded]]],
        left_out: Mapping[int, str],
        progress: Callable[[int], object],
    ) -> Iterator[list[SentenceMaps]]:
        for batch in self._batched(encoded, left_out):
            maps = [d.maps({id_: of[id_] for id_ in batch}) for d, of in zip(self._directions, encoded)]
            self._reverse_maps = maps[1] if len(maps) > 1 else {}
            progress(len(batch))
            yield [maps[0][id_] for id_ in batch]

    def _with_lexicon(self, batches: Iterable[list[SentenceMaps]]) -> Iterator[list[SentenceMaps]]:
        """The batches once more, when the links of all of them are known."""
        maps = {s.id: (without_maps(s), words_of(s), self._found(s).shares) for batch in batches for s in batch}
        self._weighed = dict(with_lexicon(maps, self._directions[0].options, self._lexicon))
        yield [sentence for sentence, _, _ in maps.values()]

    def _reason(self, id_: int, pair: TokenPair, encoded: Sequence[Mapping[int, tuple[Encoded, Encoded]]]) -> str:
        if not (pair[0] and pair[1]):
            return "empty"
        for direction, of in zip(self._directions, encoded):
            for limit, side in zip(direction.limits, of[id_]):
                if len(side.ids) > limit:
                    return f"longer than {limit} tokens"
        names = [("source", "target"), ("reverse source", "reverse target")]
        for of, sides in zip(encoded, names):
            for name, side in zip(sides, of[id_]):
                self.tokens[name] += len(side.ids) - 1
                self.unknown[name] += side.unknown
        return ""

    def _batched(
        self, encoded: Sequence[Mapping[int, tuple[Encoded, Encoded]]], left_out: Mapping[int, str]
    ) -> Iterator[list[int]]:
        ids = np.array([id_ for id_ in encoded[0] if id_ not in left_out], dtype=np.int64)
        if len(ids):
            lengths = np.array([[len(side.ids) for of in encoded for side in of[id_]] for id_ in ids.tolist()])
            order = np.lexsort((*lengths.T, lengths.max(axis=1)))
            longest = lengths.max(axis=1)[order]
            # numbers within the window: fairseq's function indexes the lengths by them
            batches = batch_by_size(
                np.arange(len(ids)), None, num_tokens_vec=longest, max_tokens=max(self._max_tokens, int(longest[-1]))
            )
            for batch in batches:
                yield ids[order][batch].tolist()

    def line(self, sentence: SentenceMaps) -> str:
        """The line of a sentence of the last batch."""
        if self._both is not None and self._both.method is not None:
            found, back = self._one_way(sentence), self._other_way(sentence)
            return format_pharaoh_line(symmetrize(found.links, _exchanged(back), self._both.method, self._both.variant))
        return self._style.line(self._weighed[sentence.id] if self._lexicon else self._found(sentence))

    def _found(self, sentence: SentenceMaps) -> WordLinks:
        """The links of a sentence, of both directions joined if there are two."""
        found = self._one_way(sentence)
        if self._both is None:
            return found
        assert self._both.join is not None
        return join(self._both.join, sentence, self._directions[0].options, found, self._other_way(sentence))

    def _one_way(self, sentence: SentenceMaps) -> WordLinks:
        return word_links(sentence, self._directions[0].options)

    def _other_way(self, sentence: SentenceMaps) -> WordLinks:
        return word_links(self._reverse_maps[sentence.id], self._directions[1].options)


def _exchanged(found: WordLinks) -> frozenset[tuple[int, int]]:
    return frozenset((j, i) for i, j in found.links)
