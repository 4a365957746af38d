"""Translates lines by fairseq's own beam search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairseq_norm_plugin.capture.attention import one_thread
from fairseq_norm_plugin.hooks.generator import NormSequenceGenerator
from fairseq_norm_plugin.model.align import length_batches
from fairseq_norm_plugin.model.direction import Direction, count_tokens, lengths_of
from fairseq_norm_plugin.process import enough_threads
from fairseq_norm_plugin.text.tokenise import Line, SentencePair
from fairseq_norm_plugin.text.tokens import Vocabulary

#: What stands for an unknown subword in a translation until a source word is copied: no text has this character.
UNKNOWN = "\ue000"


@dataclass(frozen=True)
class Translation:
    """A translation.

    Attributes:
        text: the line, as fairseq-generate prints it (D-), but with :data:`UNKNOWN` for ``<unk>``; empty if the source
            was not translated.
        score: the model's score: mean log probability of a token, base e; None if the source was not translated.
    """

    text: str = ""
    score: float | None = None


class Translator:
    """Translates by the models of one direction.

    Args:
        models: the models of an ensemble.
        direction: the same models, with their text pipelines.
        vocabulary: of the target.
    """

    def __init__(self, models: Sequence[Any], direction: Direction, vocabulary: Vocabulary) -> None:
        self._models = models
        self._direction = direction
        self._vocabulary = vocabulary

    def translate(
        self,
        sources: Sequence[str],
        beam: int,
        max_tokens: int,
        progress: Callable[[int], object] = lambda _: None,
    ) -> list[Translation]:
        """The best translation of each raw line, in their order, by a beam search with batches of ``max_tokens``.

        A line of which the models read nothing, or one that is longer than they take, gets an empty translation.
        After each batch ``progress`` is called with its number of lines.
        """
        pairs: dict[int, SentencePair] = {}
        for id_, line in enumerate(map(self._direction.pipelines[0].read, sources)):
            source = self._direction.encode_line(line, 0)
            if not self._direction.refusal([source]):
                pairs[id_] = SentencePair(source, Line("", (), ""))
        found = [Translation()] * len(sources)
        progress(len(sources) - len(pairs))
        for ids in length_batches(lengths_of(pairs), max_tokens):
            batch = {id_: pairs[id_] for id_ in ids}
            for id_, best in self.search(batch, beam).items():
                found[id_] = Translation(self._text(best["tokens"].tolist()), float(best["score"]))
            progress(len(ids))
        return found

    def search(self, pairs: Mapping[int, SentencePair], beam: int) -> dict[int, dict[str, Any]]:
        """The best hypothesis of fairseq's beam search for the source of each pair of a batch, by id."""
        sample = self._direction.sample(pairs, targets=False)
        frames, dictionary = self._direction.frames, self._vocabulary.dictionary
        eos = frames.target.after[-1]
        source = sample["net_input"]["src_tokens"]
        forced = source.new_tensor(frames.target.before).expand(len(source), -1) if frames.target.before else None
        first = None if frames.first == eos else frames.first
        threads = enough_threads(self._models, count_tokens(pairs))
        with threads, one_thread(self._models):  # a generator sets its beam on the models
            generator = NormSequenceGenerator(self._models, dictionary, beam_size=beam, eos=eos)
            found = generator.generate(self._models, sample, prefix_tokens=forced, bos_token=first)
        return {id_: best for id_, (best, *_) in zip(sample["id"].tolist(), found)}

    def _text(self, ids: Sequence[int]) -> str:
        vocabulary = self._vocabulary
        tokens = [vocabulary.dictionary[number] for number in ids if number not in vocabulary.specials]
        text, unknown = self._direction.pipelines[1].raw(tokens), vocabulary.dictionary.unk()
        return text.replace(vocabulary.dictionary[unknown], UNKNOWN) if unknown in ids else text
