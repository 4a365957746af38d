"""``align-eval extract``: word alignments in Pharaoh format from recorded maps."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alignment_eval.align_pairs import align_pairs
from alignment_eval.command_line import Input, add_output
from alignment_eval.errors import InputError, UsageError, progress_bar, say, warn_skipped, warn_user
from alignment_eval.extraction.extract import WordMap, WordMaps, check_same_text, read_word_map
from alignment_eval.extraction.lexical_table import EMPTY, SAMPLE, check_match
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions
from alignment_eval.files import check_signed, signature, write_signed
from alignment_eval.links.files import Texts
from alignment_eval.maps.sentence import PairWords, SentenceMaps, words_of
from alignment_eval.maps.words import LEVELS
from alignment_eval.options import add_records, add_text_arguments, texts_of
from alignment_eval.profiles.chosen import (
    MAX_NORM,
    ChosenMethod,
    add_map_arguments,
    add_options,
    choose_method,
    given_options,
)
from alignment_eval.profiles.profile import Profile, find_profile, parse_profile
from alignment_eval.reading import check_sizes
from alignment_eval.records import Records
from alignment_eval.scoring.gold_corpus import confirmed_by_texts

EPILOG = """\
Examples, after make demo:
  align-eval extract out/demo/forced --heads 1 --setting awo --rule kobayashi2020
  align-eval extract out/demo/forced --heads 1.0,1.2,2 --combine product --setting awo \\
      --rule threshold=0.2 --confidences
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_records(parser)
    group = add_map_arguments(
        parser,
        f"default: the profile that the records carry; --heads {MAX_NORM} --setting awi: the layer of largest norms",
    )
    help_ = "link words (default) or subword tokens, as fairseq-preprocess --align-suffix reads them"
    group.add_argument("--level", choices=LEVELS, default="word", help=help_)
    add_text_arguments(parser)
    group = parser.add_argument_group("both directions")
    group.add_argument(
        "--reverse", type=Input, metavar="RECORDS", help="records of a target-source model on the same pairs"
    )
    add_options(group, "join", "reverse_heads")
    group = parser.add_argument_group("output")
    group.add_argument("--confidences", action="store_true", help="write i-j:p; p says how likely the link is right")
    add_output(group, "Pharaoh file", standard=True)


def run(args: argparse.Namespace) -> None:
    """Write one line a sentence in corpus order; the signature goes to a file beside it, and to stderr."""
    for name in ("join", "reverse_heads"):
        if args.reverse is None and getattr(args, name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} without --reverse: expected the records of the other direction too"
            )
    options = given_options(args)
    check_signed(args.output, args.overwrite)
    records = Records(args.records)
    runs = [records] if args.reverse is None else [records, Records(args.reverse)]
    texts = texts_of(args)
    for size in (runs[-1].size, *([texts.size] if texts else ())):
        check_sizes(size, records.size)
    by_norm = args.heads == MAX_NORM
    if by_norm:
        setting = replace(options, heads="0").named_maps(len(runs)).forward.setting
        options = replace(options, heads=str(max_norm_layer(records.best(), setting)))
    profiles = [] if options.heads is not None else [_profile(run, args.profile, run is not records) for run in runs]
    chosen = choose_method(options, len(runs), profiles, records.info.size if args.level == "word" else None)
    if chosen.reason:
        say(f"align-eval extract: {chosen.reason}")

    signed = signature(
        records=records.info.signature_hash,
        **({} if len(runs) == 1 else {"reverse": runs[1].info.signature_hash}),
        **chosen.fields,
        **({"layer_by": MAX_NORM} if by_norm else {}),
        **({} if args.level == "word" else {"level": args.level}),
    )
    lines, skipped = {}, {}
    pairs = directed_pairs(runs, chosen.method, args.level, texts)
    shown = progress_bar(pairs, records.info.size, "sentences")
    for alignment in align_pairs(_matching(shown, chosen), chosen.method, chosen.table or EMPTY):
        lines[alignment.id] = alignment.to_pharaoh(args.confidences)
        if not alignment.ok:
            skipped[alignment.id] = alignment.status
    write_signed(args.output, (lines[id_] for id_ in range(records.info.size)), signed)

    warn_skipped(skipped, records.info.size, "their lines are blank")
    if not records.info.forced:
        warn_user(
            f"{records.directory} holds maps of the model's own translations: these links are of their words, "
            f"and cannot be scored against gold of the references (record with --score-reference for that)"
        )
    say(signed)


def _matching(pairs: Iterable[WordMaps], chosen: ChosenMethod) -> Iterator[WordMaps]:
    """The same pairs; checks that a table that the user gave matches the text of the first ones."""
    arriving = iter(pairs)
    if chosen.table is not None and chosen.given:
        held = list(islice(arriving, SAMPLE))
        check_match(chosen.table, (words_of(one.sentence) for one, _ in held if one.scores is not None))
        yield from held
    yield from arriving


def _profile(records: Records, named: str | None, reverse: bool) -> Profile:
    """The profile of the model of a run: that of the file ``named``, else the one that the records carry."""
    info, profile = records.info, None
    if named is not None:
        found = find_profile(named)
        profile = found and found.of(str(info.signature.get("model")), reverse)
    elif info.profile is not None:
        profile = replace(parse_profile(info.profile, str(records.directory)), name=f"the one in {records.directory}")
        if (table := profile.table) is not None:
            profile = replace(profile, table=replace(table, name=str(records.directory / Path(table.name).name)))
    if profile is None:
        raise UsageError(f"{records.directory}: no profile; give --heads, or the --profile of norm-align calibrate")
    if beyond := profile.maps.heads.beyond(info.layers, info.heads, str(records.directory)):
        raise InputError(f"{profile.name}: reads {beyond}: expected records with its layers")
    return profile


def max_norm_layer(sentences: Iterable[SentenceMaps], setting: str) -> int:
    """Choose the layer (fairseq's number) whose heads have the largest mean norms; no gold is needed.

    The rule of Kobayashi et al. (2020), as in their ``calculate_aer.py``: the mean of ‖α^h f^h(x_j)‖ of each head
    (``attn_n``), summed over the heads of a layer; the first of equal layers.  The mean is over all cells of all
    sentences that have maps, ``</s>`` included.
    """
    if setting != "awi":
        raise UsageError(
            f"layer max-norm with setting {setting!r}: expected 'awi', where such a layer aligns; or name a layer"
        )
    sums: list[NDArray[np.float64]] = []
    layers: tuple[int, ...] = ()
    cells = 0
    for sentence in sentences:
        if sentence.ok:
            maps = sentence.head_maps("attn_n")  # [L, H, T, S]
            sums.append(maps.sum(axis=(1, 2, 3), dtype=np.float64))
            cells, layers = cells + maps[0, 0].size, sentence.layers
    if not cells:
        raise InputError("layer max-norm: no sentence has maps to take the mean of; name a layer")
    # fsum: the order in which the shards give the sentences does not change the layer
    means = [math.fsum(column) / cells for column in zip(*sums)]
    if not all(map(math.isfinite, means)):
        raise InputError("layer max-norm: the maps hold NaN or infinite values; record them again")
    return layers[means.index(max(means))]


def directed_pairs(
    runs: Sequence[Records], method: AlignmentMethod, level: str, texts: Texts | None
) -> Iterator[WordMaps]:
    """What the maps of one run or of two say of each sentence pair; at the end, both must have the same text.

    The pairs that a lexical table is counted on come first; if there are others, the records are read twice.  Otherwise
    the order is that of the first run.
    """
    records, *others = runs
    back: dict[int, WordMap] = {}
    for reverse in others:
        assert method.reverse is not None
        try:
            exchanged = None if texts is None else texts.exchanged
            sentences = _best_of_each(reverse, method.reverse, level, exchanged)
            back = {sentence.id: read_word_map(sentence, method.reverse) for sentence in sentences}
        except InputError as error:
            raise InputError(f"{reverse.directory}: {error}") from error
    words: list[tuple[PairWords, PairWords]] = []
    first = method.table_pairs or records.info.size
    for ids in (range(first), range(first, records.info.size)):
        for sentence in _best_of_each(records, method.forward, level, texts) if ids else ():
            if sentence.id in ids:
                forward, other = read_word_map(sentence, method.forward), back.get(sentence.id)
                if forward.scores is not None and other is not None and other.scores is not None:
                    words.append((words_of(sentence), words_of(other.sentence)))
                yield forward, other
    check_same_text(words)


def _best_of_each(
    records: Records, options: ExtractionOptions, level: str, texts: Texts | None
) -> Iterator[SentenceMaps]:
    """The best hypothesis of every sentence; with level ``token`` its tokens pass for words."""
    if beyond := options.heads.beyond(records.info.layers, records.info.heads, "the run"):
        raise UsageError(beyond)  # also if all sentences were skipped
    for sentence in records.best():
        checked = sentence if texts is None else confirmed_by_texts(sentence, texts)
        yield checked.by_tokens() if level == "token" else checked
