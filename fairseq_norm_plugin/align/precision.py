"""Choose the type that a text is aligned in: a faster one for a long text, if it gives nearly the links of float32."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Sequence
from typing import Optional

import torch

from alignment_eval.errors import warn_on_stderr
from alignment_eval.extraction.lexicon import Lexicon
from alignment_eval.extraction.method import AlignmentMethod
from fairseq_norm_plugin.align.arguments import LONG_TEXT
from fairseq_norm_plugin.aligning.aligner import Aligner
from fairseq_norm_plugin.aligning.text import TokenPair
from fairseq_norm_plugin.api import NormModel
from fairseq_norm_plugin.loading.dtypes import fastest_dtype, is_emulated, use_dtype

#: The share of links that must be equal.  The bundled models have 99 % in 8 bits, at the same AER (docs/benchmarks.md).
LEAST_EQUAL = 0.98
#: Tokens of a batch of the sample: float32 takes more memory than the type that follows, and the process keeps it.
_SAMPLE_TOKENS = 500


def choose_dtype(
    args: argparse.Namespace,
    models: Sequence[NormModel],
    method: AlignmentMethod,
    lexicon: Optional[Lexicon],
    size: int,
    sample: Sequence[TokenPair],
) -> None:
    """Replace ``--dtype auto`` by a type, in ``args`` and in the models, which are loaded in float32.

    It is the type that the processor computes fastest, for a text of :data:`LONG_TEXT` pairs or more, if a sample of
    the pairs has the same links as in float32, but for 2 %; else ``float32``, as for any text on a GPU, or on a Ray
    cluster that is not started here, since it may have GPUs, unless ``--cpu`` is given.

    Args:
        args: the command line.
        models: the models of each direction.
        method: how links are made.
        lexicon: a lexicon that reweights all pairs.
        size: the number of pairs to be aligned.
        sample: some of them.
    """
    elsewhere = args.engine == "ray" and bool(args.ray_address or os.environ.get("RAY_ADDRESS"))
    on_cpu = args.cpu or not (elsewhere or torch.cuda.is_available())
    if on_cpu and is_emulated(args.dtype):
        warn_on_stderr(
            f"--dtype {args.dtype}: this processor has no instructions for it and takes many times as long as for "
            f"float32; leave the option out, which takes the fastest type"
        )
    if args.dtype != "auto":
        return
    args.dtype = "float32"
    fastest = fastest_dtype()
    if not on_cpu or fastest == "float32" or size < LONG_TEXT:
        return
    exact = _links(args, models, method, lexicon, sample)
    undo = [use_dtype(network, fastest) for network in itertools.chain.from_iterable(model.models for model in models)]
    found = _links(args, models, method, lexicon, sample)
    equal = len(exact & found) / max(1, len(exact | found))
    said = f"{100 * equal:.1f} % of the links of {len(sample)} sampled pairs are those of float32"
    if exact and equal >= LEAST_EQUAL:
        args.dtype = fastest
        print(f"norm-align: --dtype {fastest}, since {said} (--dtype float32: not)", file=sys.stderr)
        return
    for undo_one in reversed(undo):  # both directions may have one network
        undo_one()
    least = f"{100 * LEAST_EQUAL:.0f} % are needed"
    print(f"norm-align: --dtype float32, since in {fastest} only {said} ({least})", file=sys.stderr)


def _links(
    args: argparse.Namespace,
    models: Sequence[NormModel],
    method: AlignmentMethod,
    lexicon: Optional[Lexicon],
    pairs: Sequence[TokenPair],
) -> set[tuple[int, int, int]]:
    """The links of ``pairs``: number of the pair, source and target word."""
    directions = [model.direction for model in models]
    tokens = min(args.max_tokens, _SAMPLE_TOKENS)
    aligner = Aligner(method, directions, tokens, lexicon, check_lexicon=False)
    aligned = aligner.align([enumerate(pairs)])
    return {(pair.id, *link) for pair in aligned if pair.links is not None for link in pair.links.links}
