"""``norm-align calibrate``: how to align with a model, chosen on sentence pairs and kept beside its checkpoint."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alignment_eval.command_line import CommandParser, add_output, check_outputs, exit_status
from alignment_eval.errors import InputError, UsageError, printable, progress_meter, say
from alignment_eval.extraction.extract import combined_map
from alignment_eval.extraction.lexical_table import (
    CountedPair,
    LexicalTable,
    count_lexical_table,
    write_lexical_table,
)
from alignment_eval.extraction.method import DEFAULTS
from alignment_eval.files import check_new, signature, write_bytes, write_lines
from alignment_eval.profiles.chosen import OF_TEXT, AlignmentOptions, choose_method, described
from alignment_eval.profiles.profile import FORMED, NO_PROFILE, Profile, TableFile, reverse_profile_path
from alignment_eval.reading import file_hash
from fairseq_norm_plugin.align.job import (
    add_model_arguments,
    add_raw_text_arguments,
    add_reverse_arguments,
    add_speed_arguments,
    check_input,
    load_model,
    model_options,
    other_inputs,
    read_text,
    text_paths,
)
from fairseq_norm_plugin.environment import versions

if TYPE_CHECKING:
    from fairseq_norm_plugin.model.model import Model
    from fairseq_norm_plugin.text.lines import PairReader, Text

PROG = "norm-align calibrate"
_DESCRIPTION = f"""\
Choose the maps that a model aligns with: the two that agree most on sentence pairs, or those that it was trained to
align with (--guided-maps).  No gold is needed.

The first {DEFAULTS.profile_pairs} different pairs of the text are read; {DEFAULTS.fewest_pairs} are enough.  The choice
becomes a profile beside the checkpoint, which every command then uses.  With --reverse-path each of the two models gets
one.  A lexical table, counted on more pairs, sharpens the maps; give text like that of the model's training.
The profile also says how the model's text is made (tokenizer, case, subwords), so that nobody needs to state it again.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command line ``argv`` and return its exit status."""
    return exit_status("norm-align calibrate", lambda: _parser().parse_args(argv), run)


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog=PROG, description=_DESCRIPTION)
    add_model_arguments(parser)
    add_raw_text_arguments(parser)
    add_reverse_arguments(parser)
    parser.add_argument_group("lexical table").add_argument(
        "--table-pairs",
        type=int,
        default=DEFAULTS.table_pairs,
        metavar="N",
        help=f"count it on the first N pairs of the text (0: none; default: {DEFAULTS.table_pairs}) and write it "
        f"beside the profile",
    )
    group = parser.add_argument_group("output")
    add_output(
        group,
        "the profile (default: CHECKPOINT.align.json); its table, its codes, and that of a second model go beside it",
    )
    add_speed_arguments(parser)
    return parser


def run(args: argparse.Namespace) -> None:
    """Write a profile for each model."""
    from fairseq_norm_plugin.model.model import usable_pairs
    from fairseq_norm_plugin.model.text_check import check_parallel
    from fairseq_norm_plugin.model.windows import WindowAligner

    check_input(args)
    if args.table_pairs < 0:
        raise UsageError(f"--table-pairs {args.table_pairs}: expected a number of sentence pairs, or 0 for no table")
    text = read_text(text_paths(args), args.words)
    # the subwords that are stated may be other ones than those of the profile that is replaced
    former = NO_PROFILE if args.bpe is not None or args.bpe_codes else None
    models = load_model({**model_options(args), "profile": former}, args.cpu).both
    files = [model.profile for model in models]
    if args.output is not None:
        files = [Path(args.output), reverse_profile_path(args.output)][: len(models)]
    name = f"{Path(files[0]).name.removesuffix('.json')}.parquet"
    tables = [Path(file).with_name(name) for file in files] if args.table_pairs else []
    of_text = (file for model in models for file in model.text.paths)
    copies: dict[Path, str] = {}  # a profile names no file elsewhere, and may be moved with its directory
    for model, file in zip(models, files):
        copies = model.text.missing_in(Path(file).parent, copies)
    outputs = [*files[args.output is not None :], *dict.fromkeys(tables), *copies]
    check_outputs(args, [*other_inputs(args), *of_text], map(str, outputs))
    for file in [*files, *tables, *copies]:
        check_new(file, args.overwrite)
    of_windows = WindowAligner(text, models, AlignmentOptions(max_tokens=args.max_tokens))
    recipes = [model.text.kept(model.languages) for model in models]
    pairs = usable_pairs(of_windows.first_pairs(), models)
    if len(pairs) < DEFAULTS.fewest_pairs:
        raise InputError(
            f"{', '.join(text_paths(args))}: {len(pairs)} different sentence pairs that can be aligned, of "
            f"{text.size}: expected {DEFAULTS.fewest_pairs} or more to choose maps by; pass more text of them"
        )
    check_parallel(of_windows.sample(), models[0], refused=["exchanged"])  # an early checkpoint knows no pair
    profiles = [model.fit_profile(own, args.max_tokens) for model, own in zip(models, zip(*pairs))]
    table = _count_table(args, text, of_windows.reader, models, profiles) if args.table_pairs else None
    text.check_unchanged()
    if len(profiles) > 1:
        profiles = [profiles[0].with_reverse(profiles[1]), profiles[1].with_reverse(profiles[0])]
    for place, original in copies.items():
        write_bytes(place, [Path(original).read_bytes()])
        say(f"norm-align calibrate: {original} is copied to {place}, beside the profile that names it")
    found = versions()
    for number, (file, profile, recipe) in enumerate(zip(files, profiles, recipes)):
        named = signature(pairs=profile.pairs, **profile.fields(), torch=found["torch"], fairseq=found["fairseq"])
        of_table = None
        if table is not None:
            if tables[number] not in tables[:number]:
                write_lexical_table(tables[number], table, named)
            of_table = TableFile(name, file_hash(tables[number]), exchanged=number > 0)
        profile = replace(profile, signature=named, text_recipe=recipe, table=of_table)
        write_lines(file, [profile.to_json()])
        print(f"{printable(str(file))}: {_described(profile)}")
        if not profile.formed:
            say(
                f"norm-align calibrate: no AWI and AWO map agree to {100 * FORMED:.0f} % or more: the alignment of "
                f"this model has not formed, or the text is not its languages'; the profile reads the upper layers, "
                f"whose links may still be good"
            )


def _count_table(
    args: argparse.Namespace, text: Text, reader: PairReader, models: Sequence[Model], profiles: Sequence[Profile]
) -> LexicalTable:
    """The lexical table of the first pairs of the text, counted with the maps of all models."""
    from fairseq_norm_plugin.model.aligner import WINDOW, Aligner

    chosen = choose_method(AlignmentOptions(table=OF_TEXT), len(profiles), profiles, text.size)
    aligner = Aligner(chosen, models, AlignmentOptions(max_tokens=args.max_tokens))
    size = min(args.table_pairs, text.size)
    pairs, maps = itertools.islice(reader.read_all(), size), list[CountedPair]()
    with progress_meter(size, "sentences") as progress:
        while window := list(itertools.islice(pairs, WINDOW)):
            for _, of_pair in aligner.word_maps(0, window, progress):
                combined = combined_map(of_pair, chosen.method)
                if combined.scores is not None:
                    words, word_map = combined.counted
                    maps.append((words, word_map.astype(np.float32)))
    assert chosen.method.sharpening is not None
    return count_lexical_table(maps, chosen.method.sharpening)[0]


def _described(profile: Profile) -> str:
    """What a profile reads, how that was chosen, and by which rule words are linked."""
    agreement = "no two maps agree" if profile.figure is None else f"{100 * profile.figure:.1f} % agreement"
    chosen = f"chosen by {profile.chosen_by} on {profile.pairs} pairs, {agreement}"
    if profile.chosen_by == "training":
        chosen = f"which it was trained to align with; on {profile.pairs} pairs"
    table = "" if profile.table is None else f"; lexical table {profile.table.name}"
    return f"{described(profile.maps)}, {chosen}; rule {profile.extraction().rule}{table}"
