"""Choose the type that a text is aligned in: 8 bits for a long text, where they give nearly the links of float32."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Sequence
from typing import Optional

import torch

from alignment_eval.extraction.lexicon import Lexicon
from alignment_eval.extraction.method import AlignmentMethod
from fairseq_norm_plugin.align.arguments import LONG_TEXT
from fairseq_norm_plugin.aligning.aligner import Aligner
from fairseq_norm_plugin.aligning.text import TokenPair
from fairseq_norm_plugin.api import NormModel
from fairseq_norm_plugin.loading.int8 import has_int8, use_float32, use_int8

#: The share of links that must be equal.  The bundled models have 99 %, at the same AER (docs/benchmarks.md).
LEAST_EQUAL = 0.98
#: Tokens of a batch of the sample: float32 takes more memory than the 8 bits that follow, and the process keeps it.
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

    It is ``int8`` on an x86 processor for a text of :data:`LONG_TEXT` pairs or more, if a sample of the pairs has the
    same links as in float32, but for 2 %; else ``float32``, as for any text on a GPU, or on a Ray cluster that is not
    started here, since it may have GPUs, unless ``--cpu`` is given.

    Args:
        args: the command line.
        models: the models of each direction.
        method: how links are made.
        lexicon: a lexicon that reweights all pairs.
        size: the number of pairs to be aligned.
        sample: some of them.
    """
    if args.dtype != "auto":
        return
    args.dtype = "float32"
    elsewhere = args.engine == "ray" and bool(args.ray_address or os.environ.get("RAY_ADDRESS"))
    on_cpu = args.cpu or not (elsewhere or torch.cuda.is_available())
    if not (on_cpu and has_int8()) or size < LONG_TEXT:
        return
    networks = list(itertools.chain.from_iterable(model.models for model in models))
    exact = _links(args, models, method, lexicon, sample)
    for network in networks:
        use_int8(network)
    found = _links(args, models, method, lexicon, sample)
    equal = len(exact & found) / max(1, len(exact | found))
    said = f"{100 * equal:.1f} % of the links of {len(sample)} sampled pairs are those of float32"
    if exact and equal >= LEAST_EQUAL:
        args.dtype = "int8"
        print(f"norm-align: --dtype int8, since {said} (--dtype float32: not)", file=sys.stderr)
        return
    for network in networks:
        use_float32(network)
    least = f"{100 * LEAST_EQUAL:.0f} % are needed"
    print(f"norm-align: --dtype float32, since in 8 bits only {said} ({least})", file=sys.stderr)


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
