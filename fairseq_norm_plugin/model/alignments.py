"""Align sentence pairs by the models' profiles, as norm-align does."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

from tqdm import tqdm

from alignment_eval.errors import InputError, say, warn_on_stderr
from alignment_eval.extraction.corpus import AlignedPair
from alignment_eval.extraction.word_table import WordTable
from alignment_eval.files import file_hash
from alignment_eval.profiles.chosen import Overrides, chosen_method, few_pairs_warning
from alignment_eval.records.word_table_file import read_word_table
from alignment_eval.report.alignment_view import Alignment, Alignments
from alignment_eval.signature import Value
from fairseq_norm_plugin.aligner.aligner import Aligner
from fairseq_norm_plugin.aligner.calibration import profiles_of
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.aligner.mismatch import SAMPLE, check_parallel, sampled
from fairseq_norm_plugin.installed import signature
from fairseq_norm_plugin.model.sentences import MAX_TOKENS, GivenPair, check_whole
from fairseq_norm_plugin.text.tokenise import Line, LinePair

#: The words of each line of one side, if they are given.
GivenWords = Iterable[Sequence[str]] | None
#: Pairs that are sorted by length together, like the default of ``norm-align --window``.
_WINDOW = 10_000


class AlignOptions(TypedDict, total=False):
    """The options of ``NormModel.align``, which says what they mean."""

    profile: str | Path | None
    word_table: int | None
    word_table_file: str | Path | None
    max_tokens: int
    scores: bool
    source_contribution: bool


class ProfileAligner:
    """Aligns sentence pairs by the method of the models' profiles, and reports that method once.

    Args:
        directions: the source-target model, and the target-source model if there is one.
        models: their hashes.
    """

    def __init__(self, directions: Sequence[Direction], models: Sequence[str]) -> None:
        self._directions = directions
        self._models = models
        self._said = ""

    def align(
        self,
        given: Iterable[GivenPair],
        overrides: Overrides,
        profile: str | Path | None = None,
        max_tokens: int = MAX_TOKENS,
        quiet: bool = False,
        words: tuple[GivenWords, GivenWords] = (None, None),
        scores: bool = False,
        source_contribution: bool = False,
    ) -> Alignments:
        """Align sentence pairs, in their order, with the options of ``NormModel.align``.

        A progress bar is shown on a terminal; if ``quiet``, neither that nor warnings about the text.  ``words`` are
        those of each source and of each target, if they are given.
        """
        check_whole("max_tokens", max_tokens)
        first = self._directions[0]
        pairs = _line_pairs(given, first, words)
        word_table, word_table_fields = _word_table(overrides.word_table_file)
        named = None if profile is None else str(profile)
        profiles, names = profiles_of(self._directions, self._models, pairs, named, max_tokens)
        chosen = chosen_method(profiles, names, len(pairs), overrides)
        if chosen.reason != self._said:
            self._said = chosen.reason
            say(f"align: {chosen.reason}")
        check_parallel(sampled(pairs, len(pairs) if len(pairs) >= SAMPLE else 0), self._directions)
        aligner = Aligner(
            chosen.method,
            self._directions,
            max_tokens,
            word_table,
            _warn_of_few,
            scores=scores or source_contribution,
            contribution=source_contribution,
        )
        aligned = _align_all(aligner, pairs, quiet)
        fields = {**chosen.method.fields(), **word_table_fields, **chosen.fields}
        alignments = (Alignment.of(*pair, links) for pair, links in zip(pairs, aligned))
        return Alignments(alignments, signature(sentences=len(pairs), **fields))


def _word_table(file: str | None) -> tuple[WordTable | None, dict[str, Value]]:
    """The word table of a file, and what the signature says of it."""
    if file is None:
        return None, {}
    path = Path(file).resolve()
    state = path.stat() if path.is_file() else None
    word_table, hash_ = _read_word_table(path, state and (state.st_mtime_ns, state.st_size))
    return word_table, {"word_table_file": hash_}


@lru_cache(maxsize=1)  # single pairs are often aligned one by one with the word table of a large text
def _read_word_table(path: Path, state: object) -> tuple[WordTable, str]:
    """The word table of a file and the file's hash; ``state`` changes when the file does."""
    return read_word_table(path), file_hash(path)


def _line_pairs(
    given: Iterable[GivenPair], direction: Direction, words: tuple[GivenWords, GivenWords]
) -> list[LinePair]:
    def line(which: int, sentence: object, name: str, of_line: Sequence[str] | None) -> Line:
        if not isinstance(sentence, str):
            raise InputError(f"{name}: {sentence!r:.40}: expected text, since words are aligned")
        try:
            return direction.pipelines[which].read(sentence, of_line)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error

    pairs = list(given)
    of_sides = [[None] * len(pairs) if side is None else list(side) for side in words]
    for of_side, name in zip(of_sides, ("source_words", "target_words")):
        if len(of_side) != len(pairs):
            raise InputError(f"{name}: words of {len(of_side)} sentences, but {len(pairs)} pairs: expected as many")
    return [
        (line(0, pair.source, pair.names[0], of_source), line(1, pair.target, pair.names[1], of_target))
        for pair, of_source, of_target in zip(pairs, *of_sides)
    ]


def _warn_of_few(word_table: WordTable) -> None:
    if warning := few_pairs_warning(word_table.pairs):
        warn_on_stderr(warning)


def _align_all(aligner: Aligner, pairs: Sequence[LinePair], quiet: bool) -> list[AlignedPair]:
    """The alignments in the order of the pairs; ``quiet``: without progress bar and warnings about the text."""
    size = aligner.counted_pairs or _WINDOW
    windows = (enumerate(pairs[start : start + size], start) for start in range(0, len(pairs), size))
    disable = True if quiet else None  # None: unless there is a terminal
    with tqdm(total=len(pairs), unit=" pairs", disable=disable, leave=False, file=sys.stderr) as progress:
        by_id = {aligned.id: aligned for aligned in aligner.align(windows, progress.update)}
    if not quiet:
        for warning in (*_left_out(by_id.values()), aligner.unknown.warning(), aligner.links_warning()):
            if warning:
                warn_on_stderr(warning)
    return [by_id[number] for number in range(len(pairs))]


def _left_out(pairs: Collection[AlignedPair]) -> Iterator[str]:
    """Warnings about pairs that were not aligned."""
    for reason, count in Counter(pair.status for pair in pairs if pair.links is None).items():
        first = min(pair.id for pair in pairs if pair.status == reason)
        yield f"sentence pairs that are {reason}: {count}, without links (the first is number {first}, from 0)"
