"""Reads maps of sentence pairs, teacher-forced or of the model's own translations, and lists window by window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from alignment_eval.errors import InputError, shown
from alignment_eval.extraction.method import MapName
from alignment_eval.maps.sentence import status_of
from alignment_eval.report.map_view import DisplayMaps
from fairseq_norm_plugin.aligner.aligner import length_batches
from fairseq_norm_plugin.aligner.direction import Direction, EncodedSide, SourceAndTarget, lengths_of
from fairseq_norm_plugin.model.sentences import GivenPair, Sentence, empty_sentence
from fairseq_norm_plugin.model.translator import Translator
from fairseq_norm_plugin.text.tokens import Vocabulary

#: A window of pairs goes through the model in about this many parts of similar lengths.
_PARTS = 4
#: The types of token ids; others would be cut to whole numbers.
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class MapReader:
    """Reads the maps of all layers from the models of one direction.

    Args:
        direction: the models, with their segmentation.
        vocabularies: of source and target.
        translator: translates with them.
    """

    def __init__(
        self,
        direction: Direction,
        vocabularies: tuple[Vocabulary, Vocabulary],
        translator: Translator,
    ) -> None:
        self._translator = translator
        self._direction = direction
        self._vocabularies = vocabularies

    def encode(self, pair: GivenPair) -> SourceAndTarget:
        """Encode both sides of a pair."""
        target = None if pair.target is None else self._side(pair.target, 1, pair.names[1])
        return self._side(pair.source, 0, pair.names[0]), target

    def _side(self, sentence: Sentence, which: int, name: str) -> EncodedSide:
        """Encode a source (``which`` 0) or a target (1), called ``name`` in messages."""
        if isinstance(sentence, str):
            side = self._direction.encode_side(self._direction.pipelines[which].read(sentence), which)
        else:
            side = self._of_ids(sentence, which, name)
        if not side.side.word_count:
            raise empty_sentence(name)
        limit = self._direction.limits[which]
        if len(side.ids) > limit:
            raise InputError(f"{name}: {len(side.ids)} tokens with </s>: the model takes at most {limit}")
        return side

    def _of_ids(self, sentence: Iterable[int], which: int, name: str) -> EncodedSide:
        vocabulary = self._vocabularies[which]
        dictionary = vocabulary.dictionary
        try:
            given = torch.as_tensor(list(sentence))
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise InputError(f"{name}: {shown(sentence)}: expected text or token ids ({error})") from error
        if len(given) and (given.dim() != 1 or given.dtype not in _WHOLE):
            raise InputError(f"{name}: {shown(sentence)}: expected text or token ids, which are whole numbers")
        ids = given.to(torch.long)
        if len(ids) and ids[-1] == dictionary.eos():
            ids = ids[:-1]
        frame = self._direction.frames.target if which else self._direction.frames.source
        ids = torch.cat([ids.new_tensor(frame.before), ids, ids.new_tensor(frame.after)])
        if int(ids.min()) < 0 or int(ids.max()) >= len(dictionary):
            raise InputError(
                f"{name}: token ids {int(ids.min())} to {int(ids.max())}: expected 0 to {len(dictionary) - 1}"
            )
        return self._spelled(ids, which)

    def _spelled(self, ids: Tensor, which: int) -> EncodedSide:
        spelling = self._vocabularies[which].spell(ids)
        return EncodedSide(ids, spelling.side, spelling.unknown, spelling.certain)

    def many(
        self, given: Iterator[GivenPair], kinds: Sequence[str], beam: int, max_tokens: int
    ) -> Iterator[DisplayMaps]:
        """Read the maps of pairs, in order; the maps of about ``max_tokens`` tokens are held at once."""
        for window in self._windows(given, max_tokens):
            maps = {}
            for ids in length_batches(lengths_of(window), max(1, max_tokens // _PARTS)):
                maps.update(self.read({id_: window[id_] for id_ in ids}, kinds, beam))
            for id_ in window:
                yield maps.pop(id_)

    def _windows(self, given: Iterator[GivenPair], max_tokens: int) -> Iterator[dict[int, SourceAndTarget]]:
        """Windows whose longer sides have up to ``max_tokens`` tokens, with one pair at least."""
        window: dict[int, SourceAndTarget] = {}
        tokens = 0
        for number, pair in enumerate(given):
            sides = self.encode(pair)
            longest = max(lengths_of({number: sides})[number])
            if window and tokens + longest > max_tokens:
                yield window
                window, tokens = {}, 0
            window[number] = sides
            tokens += longest
        yield window

    def read(self, pairs: Mapping[int, SourceAndTarget], kinds: Sequence[str], beam: int) -> dict[int, DisplayMaps]:
        """Read the maps of ``kinds`` of a batch of pairs, by id; either all have a target or none has one."""
        sides = {id_: (source, target) for id_, (source, target) in pairs.items() if target is not None}
        if not sides:
            sample = self._direction.sample(pairs)
            for id_, (best, *_) in zip(sample["id"].tolist(), self._translator.search(pairs, sample, beam)):
                own = replace(self._spelled(best["tokens"].cpu(), 1), certain=True)
                sides[id_] = pairs[id_][0], own
        names = [MapName(layer) for layer in range(self._direction.layers)]
        maps = {}
        for id_, found in self._direction.maps(sides, kinds, names, log_probs=True).items():
            assert found.log_probs is not None
            status = status_of(*(side.certain for side in sides[id_]))
            maps[id_] = replace(DisplayMaps.of(found), status=status, score=float(found.log_probs.mean()))
        return maps
