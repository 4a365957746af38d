"""``norm-align --translate``: translate the source text before it is aligned, so that a stopped run can go on."""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alignment_eval.files import is_stream
from alignment_eval.progress import progress_meter
from fairseq_norm_plugin.align.unfinished import UnfinishedOutput, translations_of
from fairseq_norm_plugin.installed import signature
from fairseq_norm_plugin.model.norm_model import NormModel
from fairseq_norm_plugin.text.pairs import TranslatedText


@contextmanager
def translated(args: argparse.Namespace, text: TranslatedText, model: NormModel, hash_: str) -> Iterator[None]:
    """Translate the source lines of a text, which has its translations inside the block.

    Args:
        args: the options of ``norm-align``.
        text: the text.
        model: the source-target model.
        hash_: of everything that decides the translations.
    """
    with tempfile.TemporaryDirectory() as directory:
        output = str(Path(directory) / "text") if is_stream(args.output) else args.output
        described = signature(run=hash_, sentences=text.size, beam=args.translate)
        ends = sorted({*range(args.window, text.size, args.window), text.size})
        with UnfinishedOutput(translations_of(output), described, ends, args.resume, args.overwrite) as unfinished:
            kept = unfinished.kept
            sources = itertools.islice(text.sources(), kept, None)
            with progress_meter(text.size - kept, "translations") as progress:
                for start, end in zip([0, *ends], ends):
                    if end > kept:
                        window = list(itertools.islice(sources, end - start))
                        found = model.translator.translate(window, args.translate, args.max_tokens, progress)
                        unfinished.append(("" if t.score is None else repr(t.score), t.text) for t in found)
            text.translations = unfinished.rows
            yield
