"""Aligns lists of lines, for the Python interface."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import nullcontext

from alignment_eval.alignment import Alignment, Alignments
from alignment_eval.errors import InputError, progress_meter, warn_skipped, warn_user
from alignment_eval.profiles.chosen import AlignmentOptions
from fairseq_norm_plugin.model.aligner import WINDOW, Aligner, choose, signed
from fairseq_norm_plugin.model.model import Model
from fairseq_norm_plugin.model.text_check import FEWEST, check_parallel, sample_lines
from fairseq_norm_plugin.text.lines import GivenWords, PairReader, of_lists
from fairseq_norm_plugin.text.tokenise import splitter_name

logger = logging.getLogger(__name__)
#: The maps of so many pairs, the first of a list, are kept (``Alignment.word_map``): some 50 KB each.
KEPT = 1000


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
    strings: re.Pattern[str] | None = None,
    quiet: bool = False,
) -> Alignments:
    """Align two lists of lines, in their order, with the models of one direction, or of both.

    A target may be given as its sentences.  ``words`` are those of each source and of each target, if they are given.
    Copies of ``strings`` are linked.
    ``quiet``: without progress, and without messages about text and method.
    """
    if not sources:
        raise InputError("source: an empty list: expected at least one sentence")
    if len(sources) != len(targets):
        raise InputError(f"{len(sources)} sources, but {len(targets)} targets: expected as many")
    text = of_lists(sources, targets, words)
    pairs = list(PairReader.of(text, models[0].pipelines_for(options.split_sentences), strings).read_all(text))
    if not quiet and len(pairs) >= FEWEST:
        sample = ((number, pairs[number]) for number in sample_lines(len(pairs)))
        check_parallel(sample, models, options.force)
    chosen = choose(options, models, pairs, len(pairs))
    if not quiet and chosen.reason:
        logger.info("align: %s", chosen.reason)
    aligner = Aligner(chosen, models, options, KEPT)
    aligner.check_table(pairs)
    counted = chosen.method.table_pairs
    starts = range(0, len(pairs), counted or WINDOW)
    aligned: list[Alignment] = []
    quietly = nullcontext(lambda _: None)
    with quietly if quiet or len(pairs) == 1 else progress_meter(len(pairs), "pairs") as progress:
        if counted:
            aligner.count([(0, pairs[:counted])], progress)
        for start in starts:
            aligned += aligner.align(start, pairs[start : start + starts.step], progress)
    if not quiet:
        for warning in aligner.tally.warnings():
            warn_user(warning)
    if not quiet and len(pairs) > 1:
        warn_skipped({each.id: each.status for each in aligned if not each.ok}, len(pairs), "so they have no links")
        if uncertain := aligner.tally.subwords.warning():
            warn_user(uncertain)
    fields = {**chosen.fields, **({"split": splitter_name()} if options.split_sentences else {})}
    return Alignments(aligned, signed(models, text.hashes, len(pairs), fields))
