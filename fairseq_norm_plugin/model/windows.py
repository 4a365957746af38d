"""Aligns a text window by window: lists of the Python interface, and the files of norm-align."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from alignment_eval.alignment import Alignment, Alignments
from alignment_eval.errors import InputError, progress_meter, warn_skipped, warn_user
from alignment_eval.extraction.method import DEFAULTS
from alignment_eval.profiles.chosen import AlignmentOptions, ChosenMethod
from alignment_eval.transfer.pieces import Strings
from fairseq_norm_plugin.model.aligner import WINDOW, Aligner, Progress, Tally, choose, signed, unseen
from fairseq_norm_plugin.model.model import Model
from fairseq_norm_plugin.model.text_check import FEWEST, REFUSED, check_parallel, sample_lines
from fairseq_norm_plugin.model.translate import Translation
from fairseq_norm_plugin.text.lines import GivenWords, PairReader, RawPair, Text, of_lists
from fairseq_norm_plugin.text.pair import SentencePair, splitter_name

logger = logging.getLogger(__name__)
#: Makes the translations of source lines, with ``progress``.
Translate = Callable[..., Sequence[Translation]]
#: The maps of so many pairs, the first of a list, are kept (``Alignment.word_map``): some 50 KB each.
KEPT = 1000


class Window(NamedTuple):
    """A window of a text: its number, the number of its first pair, and its pairs."""

    number: int
    first: int
    pairs: Sequence[RawPair]


class WindowAligner:
    """Reads or translates, and aligns the windows of a text: in memory, in norm-align, in a process of Ray.

    Args:
        text: the text; of another process what messages name is enough.
        models: of one direction, or of both.
        options: how pairs are aligned.
        strings: what is not translated, and linked to its copy; None: nothing.
        plain: takes the markup out of a source line; None: there is none.
        translate: makes the targets; None: the text has them.
        window: pairs of a window.
        kept: as of :class:`Aligner`.

    Attributes:
        reader: reads the pairs of the text.
        ends: where each window ends.  A lexical table is counted on whole windows.
        counted: how many windows the lexical table is counted on.
    """

    def __init__(
        self,
        text: Text,
        models: Sequence[Model],
        options: AlignmentOptions,
        strings: Strings | None = None,
        plain: Callable[[str], str] | None = None,
        translate: Translate | None = None,
        window: int = WINDOW,
        kept: int = 0,
    ) -> None:
        self._text, self._models, self._options = text, models, options
        self._translate, self._kept = translate, kept
        self.reader = PairReader(text, models[0].pipelines_for(options.split_sentences), strings, plain)
        size = text.size
        self.ends: list[int] = sorted({*range(window, size, window), min(DEFAULTS.table_pairs, size), size} - {0})
        self._aligner: Aligner | None = None
        self.counted = 0
        #: What was read of windows that are not aligned yet, by their numbers.
        self._read: dict[int, tuple[list[SentencePair], list[float | None]]] = {}

    def windows(self, numbers: Iterable[int] | None = None) -> Iterator[Window]:
        """The windows of these numbers, ascending; default: all."""
        pairs, place, starts = iter(self._text.pairs()), 0, [0, *self.ends]
        for number in range(len(self.ends)) if numbers is None else numbers:
            first, end = starts[number : number + 2]
            of_window = list(islice(pairs, first - place, end - place))
            place = end
            yield Window(number, first, of_window)

    def sample(self) -> list[tuple[int, SentencePair]]:
        """Pairs to check the text by (:func:`.text_check.check_parallel`), with their numbers; translations also."""
        numbers = sample_lines(self._text.size)
        if len(self.ends) == 1 and self._translate is None:
            pairs = list(self.first_pairs())
            return [(number, pairs[number]) for number in numbers]
        some = dict(self._text.some(numbers))
        if self._translate is None or len(some) < FEWEST:  # of few, none is scored
            return [(number, self.reader.read(number, raw)) for number, raw in some.items()]
        return list(zip(some, self._pairs_of(some)[0]))

    def first_pairs(self) -> Iterator[SentencePair]:
        """The pairs of the text, as far as they are needed; those of an only window, and translations, are kept."""
        if self._translate is None and len(self.ends) > 1:
            return self.reader.read_all()
        return chain.from_iterable(map(self.pairs, self.windows()))

    def pairs(self, window: Window, progress: Progress = unseen) -> list[SentencePair]:
        """The pairs of a window, which are kept until they are aligned."""
        if window.number not in self._read:
            self._read[window.number] = self._pairs_of(dict(enumerate(window.pairs, window.first)), progress)
        return self._read[window.number][0]

    def _pairs_of(
        self, raw: dict[int, RawPair], progress: Progress = unseen
    ) -> tuple[list[SentencePair], list[float | None]]:
        scores: list[float | None] = [None] * len(raw)
        if self._translate is not None:
            found = self._translate(list(map(self.reader.source_of, raw, raw.values())), progress=progress)
            raw = {id_: raw[id_]._replace(target=own.sentences or own.text) for id_, own in zip(raw, found)}
            scores = [own.score for own in found]
        return list(map(self.reader.read, raw, raw.values())), scores

    def begin(self, chosen: ChosenMethod) -> Aligner:
        """Align by this method from now on."""
        self._aligner = Aligner(chosen, self._models, self._options, self._kept)
        self.counted = bisect_right(self.ends, chosen.method.table_pairs)
        return self._aligner

    def prepare(self, progress: Progress) -> None:
        """Count the lexical table on the first windows, or check the one that is given."""
        assert self._aligner is not None
        if self.counted:
            windows = self.windows(range(self.counted))
            self._aligner.count(((window.first, self.pairs(window, progress)) for window in windows), progress)
        else:
            self._aligner.check_table(self.first_pairs())

    def align(self, window: Window, progress: Progress = unseen) -> tuple[list[Alignment], Tally]:
        """The alignments of a window, with the scores of translations, and what was seen since the last one.

        A pair is a step of ``progress`` when it is translated, else when it is aligned.
        """
        assert self._aligner is not None
        while_read, while_aligned = (unseen, progress) if self._translate is None else (progress, unseen)
        pairs = self.pairs(window, while_read)
        _, scores = self._read.pop(window.number)
        aligned = self._aligner.align(window.first, pairs, while_aligned)
        tally, self._aligner.tally = self._aligner.tally, Tally()
        return [one if score is None else replace(one, score=score) for one, score in zip(aligned, scores)], tally


def text_lines(lines: object, name: str) -> list[str]:
    """The lines of a list, which is called ``name`` in messages."""
    if isinstance(lines, (str, bytes)) or not isinstance(lines, Iterable):
        raise InputError(f"{name}: {lines!r:.40} ({type(lines).__name__}): expected a list of lines")
    given = list(lines)
    for number, line in enumerate(given):
        if not isinstance(line, str):
            raise InputError(f"{name}[{number}]: {line!r:.40}: expected text")
        try:
            line.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{name}[{number}]: character {error.start}, {line[error.start]!r}, is a surrogate: read UTF-8"
            ) from error
    return given


def align_lists(
    models: Sequence[Model],
    sources: Sequence[str],
    targets: Sequence[str | Sequence[str]],
    options: AlignmentOptions,
    words: tuple[GivenWords, GivenWords] = (None, None),
    strings: Strings | None = None,
    quiet: bool = False,
) -> Alignments:
    """Align two lists of lines, in their order, with the models of one direction, or of both.

    A target may be given as its sentences.  ``words`` are those of each source and of each target, if they are given.
    Copies of ``strings`` are linked.  ``quiet``: without progress, and without messages about text and method.
    """
    if not sources:
        raise InputError("source: an empty list: expected at least one sentence")
    if len(sources) != len(targets):
        raise InputError(f"{len(sources)} sources, but {len(targets)} targets: expected as many")
    text = of_lists(sources, targets, words)
    own = WindowAligner(text, models, options, strings, kept=KEPT)
    if not quiet and text.size >= FEWEST:
        check_parallel(own.sample(), models[0], () if options.force else REFUSED)
    chosen = choose(options, models, own.first_pairs(), text.size)
    if not quiet and chosen.reason:
        logger.info("align: %s", chosen.reason)
    own.begin(chosen)
    aligned, tally = list[Alignment](), Tally()
    with nullcontext(unseen) if quiet or text.size == 1 else progress_meter(text.size, "pairs") as progress:
        own.prepare(progress)
        for window in own.windows():
            found, seen = own.align(window, progress)
            aligned += found
            tally.add(seen)
    for warning in () if quiet else tally.warnings():
        warn_user(warning)
    if not quiet and text.size > 1:
        warn_skipped({each.id: each.status for each in aligned if not each.ok}, text.size, "so they have no links")
        if uncertain := tally.subwords.warning():
            warn_user(uncertain)
    fields = {**chosen.fields, **({"split": splitter_name()} if options.split_sentences else {})}
    return Alignments(aligned, signed(models, text.hashes, text.size, fields))
