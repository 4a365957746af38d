"""Where the windows of a text are aligned: in this process, or, once each pair stands alone, on a Ray cluster."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Optional

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from alignment_eval.arguments.maps import line_style
from alignment_eval.extraction.lexicon import Lexicon
from alignment_eval.extraction.lexicon_match import SAMPLE, check_match
from alignment_eval.extraction.method import AlignmentMethod
from fairseq_norm_plugin.align.on_ray import Job, ray_windows
from fairseq_norm_plugin.align.windows import Text, aligned_windows, window_ends
from fairseq_norm_plugin.aligning.aligner import Aligner
from fairseq_norm_plugin.api import NormModel
from fairseq_norm_plugin.output.alignment_parts import AlignmentLine


class Way:
    """Aligns a text by one method, on the engine that the command line names.

    Args:
        args: the command line.
        models: the models, loaded in this process.
        method: how links are made.
        lexicon: a lexicon that reweights all pairs; then none is counted.
        on_count: called with a counted lexicon.

    Attributes:
        aligner: aligns in this process, and counts the subwords of the text.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        models: Sequence[NormModel],
        method: AlignmentMethod,
        lexicon: Optional[Lexicon],
        on_count: Callable[[Lexicon], object],
    ) -> None:
        self._args = args
        self._models = models
        self._method = method
        self._lexicon = lexicon
        self._on_count = on_count
        directions = [model.direction for model in models]
        self.aligner = Aligner(method, directions, args.max_tokens, lexicon, self._counted)

    def _counted(self, lexicon: Lexicon) -> None:
        self._on_count(lexicon)
        self._lexicon = lexicon

    def windows(self, text: Text, todo: NDArray[np.bool_]) -> Iterator[list[AlignmentLine]]:
        """The lines of each window with pairs that are to be aligned.

        Args:
            text: the pairs.
            todo: which of them, [pairs].
        """
        if not todo.any():  # a lexicon would be counted on no pairs
            return
        counted = min(self.aligner.counted_pairs, text.size)
        todo[:counted] = True  # after a stop, a lexicon is counted again on all its pairs, so that it is the same
        ends = window_ends(text.size, self._args.window, counted)
        here = ends if self._args.engine == "local" else [end for end in ends if end <= counted]
        with tqdm(total=int(todo.sum()), unit=" sentences", disable=None, file=sys.stderr) as progress:
            if here:
                self._say_counted(counted)
                style = line_style(self._args)
                yield from aligned_windows(text, self.aligner, style, here, todo, progress.update)
            jobs = _jobs(text, ends, len(here), todo)
            if jobs:
                yield from self._on_ray(text, jobs, progress)

    def _say_counted(self, counted: int) -> None:
        if self._args.engine != "local":
            print(
                f"norm-align: the lexicon is counted first, in this process, on {counted} pairs; the actors align the "
                f"others (--lexicon-file: all)",
                file=sys.stderr,
            )

    def _on_ray(self, text: Text, jobs: Sequence[Job], progress: tqdm[None]) -> Iterator[list[AlignmentLine]]:
        if self._lexicon is not None and not self.aligner.counted_pairs:
            first = itertools.islice(text, SAMPLE)
            direction = self._models[0].direction
            words = ((direction.words(source, 0), direction.words(target, 1)) for source, target in first)
            check_match(self._lexicon, words)
        for model in self._models:  # the actors have models of their own
            model.to("cpu")
        for window in ray_windows(jobs, self._args, self._method, self._lexicon):
            self.aligner.tokens.update(window.tokens)
            self.aligner.unknown.update(window.unknown)
            progress.update(len(window.lines))
            yield window.lines


def _jobs(text: Text, ends: Sequence[int], done: int, todo: NDArray[np.bool_]) -> list[Job]:
    """The windows after the first ``done`` that hold pairs to be aligned; they are aligned whole."""
    if done == len(ends):
        return []
    starts = [0, *ends[:-1]]
    spans = zip(starts, ends, text.spans(ends))
    return [Job(start, span) for start, end, span in list(spans)[done:] if todo[start:end].any()]
