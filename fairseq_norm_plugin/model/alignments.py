"""Align sentence pairs by the models' profiles, as norm-align does."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tqdm import tqdm

from alignment_eval.alignment import Alignment, Alignments
from alignment_eval.errors import InputError, say, warn_on_stderr
from alignment_eval.profiles.chosen import AlignmentOptions
from alignment_eval.signature import Value
from fairseq_norm_plugin.model.align import Aligner
from fairseq_norm_plugin.model.calibrate import choose
from fairseq_norm_plugin.model.direction import Direction
from fairseq_norm_plugin.model.signed import lines_hash, signed
from fairseq_norm_plugin.model.text_check import FEWEST, check_parallel, sampled
from fairseq_norm_plugin.text.tokenise import Line, SentencePair, TextPipeline, with_copies

#: The words of each line of one side, if they are given.
GivenWords = Iterable[Sequence[str]] | None
#: Tokens that go through a model together.
MAX_TOKENS = 4000
#: Pairs that are sorted by length together, like the default of ``norm-align --window``.
_WINDOW = 10_000
#: The maps of so many pairs, the first of a list, are kept (``Alignment.word_map``): some 50 KB each.
KEPT = 1000


def text_lines(lines: Iterable[str], name: str) -> list[str]:
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
                f"{name}[{number}]: character {error.start} is a surrogate, {line[error.start]!r}: expected Unicode "
                f"text; read the text as UTF-8"
            ) from error
    return given


class ProfileAligner:
    """Aligns sentence pairs by the method of the models' profiles, and reports that method once.

    Args:
        directions: the source-target model, and the target-source model if there is one.
        models: their hashes.
        facts: what signatures say of them.
    """

    def __init__(
        self, directions: Sequence[Direction], models: Sequence[str], facts: Sequence[Mapping[str, Value]]
    ) -> None:
        self._directions = directions
        self._models = models
        self._facts = facts
        self._said = ""

    def align(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        options: AlignmentOptions,
        words: tuple[GivenWords, GivenWords] = (None, None),
        strings: re.Pattern[str] | None = None,
        quiet: bool = False,
    ) -> Alignments:
        """Align sentence pairs, in their order.

        Of several pairs, a progress bar is shown on a terminal, and warnings about the text; not if it is ``quiet``.
        ``words`` are those of each source and of each target, if they are given.  Copies of ``strings`` are linked.
        """
        if not sources:
            raise InputError("source: an empty list: expected at least one sentence")
        if len(sources) != len(targets):
            raise InputError(
                f"{len(sources)} sources, but {len(targets)} targets: expected as many, with the sentences of a pair "
                f"at the same place"
            )
        pipelines = self._directions[0].pipelines
        given = (None if side is None else [list(line) for line in side] for side in words)
        words = next(given), next(given)
        read = map(_lines, pipelines, (sources, targets), words, ("source", "target"))
        pairs = list(map(SentencePair, *read))
        if strings is not None and all(pipeline.reads_raw for pipeline in pipelines):
            pairs = [with_copies(pair, strings) for pair in pairs]
        if not quiet:
            check_parallel(sampled(pairs, len(pairs) if len(pairs) >= FEWEST else 0), self._directions, options.force)
        chosen = choose(options, self._directions, self._models, pairs, len(pairs))
        if not quiet and chosen.reason not in ("", self._said):
            self._said = chosen.reason
            say(f"align: {chosen.reason}")
        aligner = Aligner(
            chosen.method,
            self._directions,
            options.max_tokens,
            chosen.table,
            chosen.given,
            scores=options.scores or options.source_contribution,
            contribution=options.source_contribution,
            kept=KEPT,
        )
        texts = [lines_hash(side) for side in (sources, targets)]
        texts += [lines_hash(map(" ".join, side)) for side in words if side is not None]
        return Alignments(_align_all(aligner, pairs, quiet), signed(self._facts, texts, len(pairs), chosen.fields))


def _lines(pipeline: TextPipeline, side: Sequence[str], given: GivenWords, name: str) -> Iterator[Line]:
    """The lines of a side, called ``name`` in messages, with their words if they are ``given``."""
    words: list[Sequence[str] | None] = [None] * len(side) if given is None else list(given)
    if len(words) != len(side):
        raise InputError(f"{name}_words: words of {len(words)} sentences, but {len(side)} pairs: expected as many")
    for number, (line, own) in enumerate(zip(side, words)):
        try:
            yield pipeline.read(line, own)
        except InputError as error:
            raise InputError(f"{name}[{number}]: {error}") from error


def _align_all(aligner: Aligner, pairs: Sequence[SentencePair], quiet: bool) -> list[Alignment]:
    """The alignments in the order of the pairs."""
    size = aligner.counted_pairs or _WINDOW
    windows = (enumerate(pairs[start : start + size], start) for start in range(0, len(pairs), size))
    quiet = quiet or len(pairs) == 1
    disable = True if quiet else None  # None: unless there is a terminal
    with tqdm(total=len(pairs), unit=" pairs", disable=disable, leave=False, file=sys.stderr) as progress:
        aligned = sorted(aligner.align(windows, progress.update), key=lambda alignment: alignment.id)
    warnings = (*_left_out(aligned), aligner.unknown.warning(), aligner.links_warning()) if not quiet else ()
    for warning in filter(None, warnings):
        warn_on_stderr(warning)
    return aligned


def _left_out(alignments: Collection[Alignment]) -> Iterator[str]:
    """Warnings about pairs that were not aligned."""
    left_out = [alignment for alignment in alignments if not alignment.ok]
    for reason, count in Counter(alignment.status for alignment in left_out).items():
        first = next(alignment.id for alignment in left_out if alignment.status == reason)
        yield f"sentence pairs that are {reason}: {count}, without links (the first is number {first}, from 0)"
