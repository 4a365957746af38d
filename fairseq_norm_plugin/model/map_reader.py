"""Reads maps of sentence pairs, teacher-forced or of the model's own translations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from alignment_eval.errors import InputError, shown
from alignment_eval.extraction.method import MapName
from alignment_eval.maps.sentence import status_of
from alignment_eval.report.map_view import DisplayMaps
from fairseq_norm_plugin.model.align import length_batches
from fairseq_norm_plugin.model.direction import Direction, lengths_of
from fairseq_norm_plugin.model.translator import Translator
from fairseq_norm_plugin.text.tokenise import Line, SentencePair
from fairseq_norm_plugin.text.tokens import Vocabulary

#: Text, or token ids.
Sentence = str | Sequence[int]
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

    def encode(self, sentence: Sentence, which: int, name: str) -> Line:
        """Encode a source (``which`` 0) or a target (1), called ``name`` in messages."""
        if isinstance(sentence, str):
            line = self._direction.encode_line(self._direction.pipelines[which].read(sentence), which)
        else:
            line = self._of_ids(sentence, which, name)
        if not line.side.word_count:
            raise InputError(f"{name}: an empty sentence: expected at least one token")
        limit = self._direction.limits[which]
        if len(line.ids) > limit:
            raise InputError(f"{name}: {len(line.ids)} tokens with </s>: the model takes at most {limit}")
        return line

    def _of_ids(self, sentence: Sequence[int], which: int, name: str) -> Line:
        dictionary = self._vocabularies[which].dictionary
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

    def _spelled(self, ids: torch.Tensor, which: int) -> Line:
        spelling = self._vocabularies[which].spell(ids)
        return Line("", (), "", spelling.side, ids, spelling.unknown, spelling.certain)

    def read(
        self, sources: Sequence[Line], targets: Sequence[Line] | None, kinds: Sequence[str], beam: int, max_tokens: int
    ) -> list[DisplayMaps]:
        """Read the maps of ``kinds`` of encoded pairs, in order; without targets the model translates.

        ``max_tokens``: tokens of the longer sides of a batch.
        """
        pairs = dict(enumerate(map(SentencePair, sources, targets or [Line("", (), "")] * len(sources))))
        names = [MapName(layer) for layer in range(self._direction.layers)]
        maps = {}
        for ids in length_batches(lengths_of(pairs), max_tokens):
            batch = {id_: pairs[id_] for id_ in ids}
            if targets is None:
                for id_, best in self._translator.search(batch, beam).items():
                    translation = replace(self._spelled(best["tokens"].cpu(), 1), certain=True)
                    batch[id_] = batch[id_]._replace(target=translation)
            for id_, found in self._direction.maps(batch, kinds, names, log_probs=True).items():
                assert found.log_probs is not None
                status = status_of(*(line.certain for line in batch[id_]))
                maps[id_] = replace(DisplayMaps.of(found), status=status, score=float(found.log_probs.mean()))
        return [maps[id_] for id_ in pairs]
