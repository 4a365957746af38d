"""Aligns the windows of a text: what one process does of a run of norm-align."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from alignment_eval.alignment import Alignment
from alignment_eval.errors import InputError
from alignment_eval.profiles.chosen import ChosenMethod
from alignment_eval.transfer.pairs import Markup
from fairseq_norm_plugin.align.job import Job
from fairseq_norm_plugin.model.aligner import Aligner, Progress, Tally
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.text.lines import PairReader, RawPair, Text
from fairseq_norm_plugin.text.pair import SentencePair, strings_of


class Window(NamedTuple):
    """A window of a text: its number, the number of its first pair, and its pairs."""

    number: int
    first: int
    pairs: Sequence[RawPair]


def windows_of(text: Text, ends: Sequence[int], wanted: Iterable[int]) -> Iterator[Window]:
    """The windows of a text that are wanted, by their numbers, ascending; ``ends``: of all windows."""
    pairs, place = iter(text.pairs()), 0
    for number in wanted:
        first = ends[number - 1] if number else 0
        of_window = list(islice(pairs, first - place, ends[number] - place))
        place = ends[number]
        yield Window(number, first, of_window)


@dataclass
class Done:
    """What became of a window, or of several.

    Attributes:
        tally: what the aligner has seen.
        untagged: pairs that are written without tags, and why.
        uncopied: pairs whose target has not each protected string of the source once.
    """

    tally: Tally = field(default_factory=Tally)
    untagged: dict[int, str] = field(default_factory=dict)
    uncopied: list[int] = field(default_factory=list)

    def add(self, other: Done) -> None:
        """Add what became of others."""
        self.tally.add(other.tally)
        self.untagged |= other.untagged
        self.uncopied += other.uncopied


class WindowAligner:
    """Translates or reads, and aligns the windows of a text.

    Args:
        job: the run.
        model: of one direction or of both.
        text: the text; of another process what messages name is enough.
    """

    def __init__(self, job: Job, model: NormModel, text: Text) -> None:
        self._job, self._model = job, model
        plain = None if job.markup is None else partial(job.markup.plain, keep_going=job.options.force)
        pipelines = model.forward.pipelines_for(job.options.split_sentences)
        self.reader = PairReader.of(text, pipelines, job.strings, plain)
        self._form = job.form(text)
        self._aligner: Aligner | None = None
        #: What was read of windows that are not aligned yet, by their numbers.
        self._read: dict[int, tuple[list[SentencePair], list[float | None]]] = {}

    def begin(self, chosen: ChosenMethod) -> Aligner:
        """Align by this method from now on."""
        self._aligner = Aligner(chosen, self._model.both, self._job.options)
        return self._aligner

    def pairs(self, window: Window, progress: Progress = lambda _: None) -> list[SentencePair]:
        """The pairs of a window, translated if the job says so; they are kept until they are aligned."""
        if window.number not in self._read:
            raw: Sequence[RawPair] = window.pairs
            scores: list[float | None] = [None] * len(raw)
            if self._job.beam is not None:
                raw, scores = self._translated(window, progress)
            pairs = list(map(self.reader.read, range(window.first, window.first + len(raw)), raw))
            self._read[window.number] = pairs, scores
        return self._read[window.number][0]

    def _translated(self, window: Window, progress: Progress) -> tuple[list[RawPair], list[float | None]]:
        job = self._job
        sources = list(map(self.reader.source_of, range(window.first, window.first + len(window.pairs)), window.pairs))
        strings = None if job.markup else job.strings
        found = self._model.translations(sources, job.beam or 1, job.options, strings, progress)
        targets = [translation.sentences or translation.text for translation in found]
        raw = [pair._replace(target=target) for pair, target in zip(window.pairs, targets)]
        return raw, [translation.score for translation in found]

    def align(self, window: Window, progress: Progress = lambda _: None) -> tuple[pa.Table, Done]:
        """The rows of a window, and what became of its pairs."""
        assert self._aligner is not None
        while_read, while_aligned = (progress, _unseen) if self._job.beam is not None else (_unseen, progress)
        pairs = self.pairs(window, while_read)
        _, scores = self._read.pop(window.number)
        aligned = self._aligner.align(window.first, pairs, while_aligned)
        uncopied = [window.first + place for place, pair in enumerate(pairs) if self._lacks_copies(pair)]
        done, self._aligner.tally = Done(self._aligner.tally, uncopied=uncopied), Tally()
        written = [self._written(*each, done) for each in zip(aligned, pairs, scores)]
        return self._form.table([pair.id for pair in window.pairs], written), done

    def _lacks_copies(self, pair: SentencePair) -> bool:
        strings = self.reader.strings
        counts = {len(strings_of(line.text, strings)) for line in pair} if strings and pair.target else set()
        return bool(counts - {len(pair.source.copies)})

    def _written(self, alignment: Alignment, pair: SentencePair, score: float | None, done: Done) -> Alignment:
        """The alignment as it is written: with the score of its translation, and with markup."""
        if score is not None:
            alignment = replace(alignment, score=score)
        if self._job.markup is None:
            return alignment
        return self._with_markup(self._job.markup, pair.source.marked, alignment, done)

    def _with_markup(self, markup: Markup, marked: str, alignment: Alignment, done: Done) -> Alignment:
        try:
            return markup.put(marked, alignment, f"{self.reader.names[0]}:{alignment.id + 1}")
        except InputError as error:
            if not self._job.options.force:
                raise
            done.untagged[alignment.id] = str(error)
            return replace(alignment, marked=escape(alignment.target, quote=False))


def _unseen(_: int) -> None:
    """Show no progress."""
