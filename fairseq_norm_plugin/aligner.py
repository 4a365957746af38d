"""From raw parallel text to word alignments: reading, subwords, maps of a batch, links of one or both directions.

What the command line of align.py is made of; usable by itself.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Optional

import numpy as np
import torch
from fairseq.data.data_utils import batch_by_size
from fairseq.data.language_pair_dataset import collate
from numpy.typing import NDArray
from torch import Tensor

from alignment_eval.commands.extract import Lines
from alignment_eval.directions import check_join, join
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extract import ExtractionOptions, WordLinks, word_links
from alignment_eval.formats import format_pharaoh_line
from alignment_eval.maps import HEAD_KINDS, SentenceMaps, Side
from alignment_eval.signature import Value
from alignment_eval.subwords import word_indices
from alignment_eval.symmetrize import check_method, symmetrize
from alignment_eval.textfiles import STANDARD, TextFile, token_lines
from fairseq_norm_plugin.api import NormModel
from fairseq_norm_plugin.generator import MAPS_KEY, Hypotheses, record_hypotheses
from fairseq_norm_plugin.quantities import RecordedMaps, recorded_quantities

#: Stands between source and target where both are in one file, as in fast_align's input.
SEPARATOR = b"|||"

Tokens = list[str]
#: A sentence pair's words, source and target.
TokenPair = tuple[Tokens, Tokens]


class ParallelText:
    """Tokenised sentence pairs of two files, or of one file of ``source ||| target`` lines; ``-`` is standard input.

    The text is read once at the beginning (line counts, encoding, hashes; standard input is copied to a temporary
    file), and again, line by line, whenever pairs are iterated over.  Memory does not grow with it.

    Attributes:
        size: the number of pairs.
        hashes: those of the files' content.

    Raises:
        InputError: a file cannot be read, is empty or not UTF-8, the two are not of as many lines, or a line of the
            one file has not exactly one separator (a blank line is an empty pair).
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths: list[str] = []
        self._copies: list[Any] = []
        names, sizes, hashes = [], [], []
        for path in paths:
            file = TextFile(path)
            sizes.append(self._read_once(file, path, joined=len(paths) == 1))
            names.append(file.name)
            hashes.append(file.hash.short)
        if len(set(sizes)) > 1:
            raise InputError(
                f"{names[1]}: {sizes[1]} lines, but {names[0]} has {sizes[0]}: expected as many, line by line the "
                f"translations of each other; are both whole?"
            )
        self.size: int = sizes[0]
        self.hashes = tuple(hashes)

    def _read_once(self, file: TextFile, path: str, joined: bool) -> int:
        copy: Any = None
        if path == STANDARD:
            copy = NamedTemporaryFile(prefix="align-")  # noqa: SIM115  # goes with this object
            self._copies.append(copy)
        self._paths.append(path if copy is None else copy.name)
        lines = 0
        for chunk in file:
            if joined:
                _check_joined(chunk, file.name, lines)
            lines += chunk.count(b"\n")
            if copy is not None:
                copy.write(chunk)
        if copy is not None:
            copy.flush()
        return lines

    def __iter__(self) -> Iterator[TokenPair]:
        texts = [token_lines(path) for path in self._paths]
        lines = zip(*texts) if len(texts) == 2 else map(_split, texts[0])
        for source, target in lines:
            yield [token.decode() for token in source], [token.decode() for token in target]


def _check_joined(chunk: bytes, name: str, before: int) -> None:
    for number, line in enumerate(chunk.split(b"\n")[:-1], before + 1):
        count = line.split().count(SEPARATOR)
        if count != 1 and line.strip():
            raise InputError(
                f"{name}:{number}: {count} separators |||: expected one, SOURCE ||| TARGET; give source and target as "
                f"two files (--source-text, --target-text) if ||| is part of the text"
            )


def _split(tokens: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    if not tokens:
        return [], []
    middle = tokens.index(SEPARATOR)
    return tokens[:middle], tokens[middle + 1 :]


class Segmenter:
    """Cuts words into the subwords of a model, and knows which word each is a piece of.

    Args:
        codes: subword-nmt's codes; None: the text is in subwords already, and their ``mark`` tells the words.
        mark: one of alignment_eval.subwords.MARKS.

    Raises:
        InputError: the codes cannot be read, or subword-nmt is not installed.
    """

    def __init__(self, codes: Optional[str], mark: str = "none") -> None:
        self._bpe = None if codes is None else _read_codes(codes)
        self._mark = mark

    def __call__(self, tokens: Tokens) -> tuple[Tokens, NDArray[np.int32]]:
        """The pieces of a sentence, and the word of each, from 0."""
        if self._bpe is None:
            return tokens, word_indices(tokens, self._mark)
        pieces = [self._bpe.segment_tokens([token]) for token in tokens]
        counts = np.array([len(of_word) for of_word in pieces], dtype=np.int32)
        words = np.repeat(np.arange(len(tokens), dtype=np.int32), counts)
        return list(itertools.chain.from_iterable(pieces)), words

    def forget(self) -> None:
        """Forget the words seen so far, which subword-nmt keeps all of otherwise."""
        if self._bpe is not None:
            self._bpe.cache.clear()


def _read_codes(path: str) -> Any:
    try:
        from subword_nmt.apply_bpe import BPE
    except ImportError as error:
        raise InputError(
            "subword-nmt is not installed: expected it for --bpe-codes; pip install subword-nmt, or give text in "
            "subwords and --bpe none"
        ) from error
    try:
        with Path(path).open(encoding="utf-8") as codes:
            return BPE(codes)
    except (OSError, UnicodeDecodeError, SystemExit) as error:  # subword-nmt exits at a line of another form
        raise InputError(f"{path}: cannot be read as BPE codes: expected a file of subword-nmt learn-bpe") from error


@dataclass(frozen=True, eq=False)
class Encoded:
    """One side of a pair as a model takes it: token ids with ``</s>``, and tokens with their words."""

    ids: Tensor
    side: Side
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
    side = Side((*pieces, dictionary[dictionary.eos()]), np.append(words, np.int32(-1)))
    return Encoded(torch.tensor([*ids, dictionary.eos()]), side, ids.count(dictionary.unk()))


@dataclass(frozen=True)
class Both:
    """How the links of two directions become one alignment: ``join`` (directions.JOINS) or ``method`` (symmetrize)."""

    join: Optional[str] = None
    method: Optional[str] = None
    variant: str = "moses"

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
        lines: what is printed of a sentence.
        reverse: the target-source model.
        both: how the two are brought together.
        max_tokens: tokens of a batch, pads included.

    Attributes:
        tokens: subwords so far, of ``source`` and ``target``, and as the other model has them.
        unknown: how many of them the models do not know.

    Raises:
        UsageError: only one of ``reverse`` and ``both`` is given, or the rule does not allow it.
    """

    def __init__(
        self,
        forward: Direction,
        lines: Lines,
        reverse: Optional[Direction] = None,
        both: Optional[Both] = None,
        max_tokens: int = 4000,
    ) -> None:
        if (reverse is None) != (both is None):
            raise UsageError("a model of the other direction and how to bring both together: expected both or neither")
        if both is not None:
            both.check()
            if both.join is not None:
                check_join(both.join, forward.options)
        self._directions = [forward, *([] if reverse is None else [reverse])]
        self._lines = lines
        self._both = both
        self._max_tokens = max_tokens
        self._reverse_maps: dict[int, SentenceMaps] = {}
        self.tokens: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()

    def batches(self, pairs: Mapping[int, TokenPair]) -> Iterator[list[SentenceMaps]]:
        """Forward maps of ``pairs``, given by id, in batches of similar length; :meth:`line` makes lines of them.

        Pairs that are not aligned, empty or too long ones, come first, without maps and with the reason as status.
        """
        exchanged = {id_: (target, source) for id_, (source, target) in pairs.items()}
        encoded = [
            {id_: direction.encode(pair) for id_, pair in of.items()}
            for direction, of in zip(self._directions, (pairs, exchanged))
        ]
        stubs = {id_: reason for id_ in pairs if (reason := self._reason(id_, pairs[id_], encoded))}
        nothing = Side((), np.empty(0, dtype=np.int32))
        layers = self._directions[0].layers
        yield [SentenceMaps(id_, nothing, nothing, layers, status=reason) for id_, reason in stubs.items()]
        for batch in self._batched(encoded, stubs):
            maps = [d.maps({id_: of[id_] for id_ in batch}) for d, of in zip(self._directions, encoded)]
            self._reverse_maps = maps[1] if len(maps) > 1 else {}
            yield [maps[0][id_] for id_ in batch]
        for direction in self._directions:
            direction.forget()

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
        found = word_links(sentence, self._directions[0].options)
        if len(self._directions) > 1:
            assert self._both is not None
            back = word_links(self._reverse_maps[sentence.id], self._directions[1].options)
            if self._both.method is not None:
                links = symmetrize(found.links, _exchanged(back), self._both.method, self._both.variant)
                return format_pharaoh_line(links)
            assert self._both.join is not None
            found = join(self._both.join, sentence, self._directions[0].options, found, back)
        return self._lines.of(found)


def _exchanged(found: WordLinks) -> frozenset[tuple[int, int]]:
    return frozenset((j, i) for i, j in found.links)
