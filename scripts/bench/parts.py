"""What ``norm-align`` does beside the models' pass, in processor time: ``python scripts/bench/parts.py SOURCE TARGET``.

The passes run once; their quantities are kept for the repetitions.  The texts are tokenised, for the bundled models.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

from alignment_eval.extraction.defaults import both_directions
from alignment_eval.extraction.options import ExtractionOptions, parse_maps
from alignment_eval.formats.line_style import LineStyle
from fairseq_norm_plugin.aligning import direction as passes
from fairseq_norm_plugin.aligning.aligner import Aligner
from fairseq_norm_plugin.aligning.text import ParallelText
from fairseq_norm_plugin.api.loading import load

DEMO = Path(__file__).resolve().parents[2] / "data" / "demo"


class Timed:
    """Calls a function and takes the processor time; with ``keep``, a later round gets what the first one gave."""

    def __init__(self, run: Callable[..., Any], keep: bool = False) -> None:
        self._run = run
        self._keep = keep
        self._given: list[Any] = []
        self._next = 0
        self.seconds = 0.0

    def rewind(self) -> None:
        """Begin a round."""
        self._next, self.seconds = 0, 0.0

    def __call__(self, *args: Any) -> Any:
        """The next call."""
        start = process_time()
        if self._keep and self._next < len(self._given):
            given = self._given[self._next]
        else:
            given = self._run(*args)
            self._given += [given] if self._keep else []
        self._next += 1
        self.seconds += process_time() - start
        return given


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    model = load(
        DEMO / "checkpoint.pt",
        data=DEMO,
        source_lang="de",
        target_lang="en",
        bpe_codes=DEMO / "codes.bpe",
        reverse_path=DEMO / "checkpoint.en-de.pt",
    )
    directions = [each.direction for each in model.with_reverse]
    maps = ExtractionOptions("attn_n", heads=parse_maps("0.0:awi,2"), setting="awo", combine="product")
    aligner = Aligner(both_directions(maps, maps, lexicon=False), directions)
    text = ParallelText([args.source, args.target]).through(directions[0].pipelines)
    pairs = list(enumerate(itertools.islice(text, args.pairs)))
    kept = Timed(vars(passes)["forced_maps"], keep=True)
    text_work = [Timed(aligner._sides), *(Timed(direction.encoded) for direction in directions)]
    vars(passes)["forced_maps"] = kept
    vars(aligner)["_sides"] = text_work[0]
    for direction, timed in zip(directions, text_work[1:]):
        vars(direction)["encoded"] = timed
    rounds = [one_round(aligner, pairs, kept, text_work) for _ in range(args.runs + 1)][1:]
    for name, each in zip(("text to tokens and ids", "maps to links and lines"), zip(*rounds)):
        print(f"{name}: {1000 * min(each) / len(pairs):.2f} ms a pair (least of {args.runs}; {len(pairs)} pairs)")


def one_round(aligner: Aligner, pairs: list[Any], kept: Timed, text_work: list[Timed]) -> tuple[float, float]:
    """Seconds for the text, and for links and lines; the caches of words are empty at first."""
    for timed in (kept, *text_work):
        timed.rewind()
    start = process_time()
    for pair in aligner.align([pairs]):
        LineStyle().line(pair.links)
    whole = process_time() - start
    text = sum(timed.seconds for timed in text_work)
    return text, whole - text - kept.seconds


if __name__ == "__main__":
    main()
