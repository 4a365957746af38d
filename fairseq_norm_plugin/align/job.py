"""A run of norm-align as its command line asks for it, checked once, and the options that calibrate has, too.

Imports no torch: a wrong line ends at once.
"""

from __future__ import annotations

import argparse
import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alignment_eval.alignment import Form
from alignment_eval.command_line import Input, add_fields, named_files
from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import rule_of
from alignment_eval.files import STANDARD, check_distinct, is_stream
from alignment_eval.links.symmetrize import METHODS
from alignment_eval.profiles.chosen import MAX_NORM, AlignmentOptions, add_options, given_options
from alignment_eval.profiles.profile import WORDS, TextRecipe
from alignment_eval.transfer.pairs import Markup
from alignment_eval.transfer.pieces import NO_PROTECTION, Strings, protected_strings
from fairseq_norm_plugin.checkpoints.files import DEMO, NO_REVERSE, NO_SUBWORDS
from fairseq_norm_plugin.environment import DTYPES

if TYPE_CHECKING:
    from fairseq_norm_plugin.model.norm_model import NormModel
    from fairseq_norm_plugin.text.lines import Text

#: The options that :func:`fairseq_norm_plugin.load` has by the same names.
_OF_MODELS = (
    *("path", "data", "source_lang", "target_lang", "tokenizer", "normalize", "lowercase", "bpe", "bpe_codes"),
    *("user_dir", "reverse_path", "dtype"),
)
#: Endings of outputs that hold the text too.
WITH_TEXT = (".jsonl", ".parquet")


@dataclass(frozen=True)
class Job:
    """A run of norm-align."""

    load_options: Mapping[str, Any]  #: the arguments of :func:`fairseq_norm_plugin.load`
    on_cpu: bool  #: whether a GPU is left alone
    options: AlignmentOptions  #: how pairs are aligned
    paths: tuple[str, ...]  #: the text: of source and target, of both, or of the source if the model translates
    words: tuple[str, ...]  #: what words are, or the files that give them
    output: str
    in_directory: bool  #: whether the output is a directory of parts
    shard: int  #: the windows that are aligned: of so many ``shards``, those of the one with this number, from 0
    shards: int
    overwrite: bool
    resume: bool
    window: int
    tokens_out: Sequence[str]
    scores_out: str | None  #: the file of scores; empty: they are in the output only; None: there are none
    confidences: bool  #: whether links have them
    beam: int | None  #: beam size of a translation; None: the target is given
    markup: Markup | None  #: how markup is read; None: the text has none
    protected: Sequence[str]  #: what ``--protect`` states
    strings: Strings | None  #: those that are not translated, or linked to their copies; None: there are none
    actors: int | None  #: processes of Ray, 0 for as many as it has; None: this process aligns
    inputs: tuple[str, ...]  #: all files that are read
    outputs: tuple[str, ...]  #: all files that are written

    @classmethod
    def of(cls, args: argparse.Namespace) -> Job:
        """Check which options go together.

        Raises:
            UsageError: some do not.
        """
        check_input(args)
        in_directory = args.ray is not None or args.output.endswith("/") or Path(args.output).is_dir()
        options, with_text = given_options(args), in_directory or args.output.endswith(WITH_TEXT)
        if in_directory and args.output == STANDARD:
            raise UsageError("--ray: expected a directory as -o")
        symmetrised = options.join in METHODS
        if args.reverse_path not in (None, NO_REVERSE):
            check_directions(options, 2)
        if symmetrised and args.confidences:
            raise UsageError(f"--join {args.join} makes links without confidences: give another, or omit --confidences")
        if args.opaque and args.markup is None:
            raise UsageError("--opaque without --markup: give that too")
        if args.markup is not None and args.confidences and not with_text:
            raise UsageError("--confidences with --markup, which writes text: leave it out, or give -o FILE.jsonl")
        if args.translate and not (args.markup or with_text):
            raise UsageError("--translate with links only loses the translations: expected -o FILE.jsonl or .parquet")
        if args.scores_out == "" and not with_text:
            raise UsageError("--scores without FILE.tsv: expected -o FILE.jsonl or .parquet, which have scores, too")
        if args.source_contribution and args.scores_out is None:
            raise UsageError("--source-contribution without --scores: give that too")
        if args.resume and args.overwrite:
            raise UsageError("--resume and --overwrite contradict each other: give one")
        if (args.resume or args.shard) and not in_directory and is_stream(args.output):
            option = "--resume" if args.resume else "--shard"
            raise UsageError(f"{option} with -o -: standard output keeps nothing of a run; give a file")
        if args.shard and (args.tokens_out or args.scores_out):
            option = "--tokens-out" if args.tokens_out else f"--scores {args.scores_out}"
            raise UsageError(
                f"{option} with --shard: no shard has all lines; expected -o FILE.parquet, which has these"
            )
        if args.heads == MAX_NORM:
            raise UsageError(f"--heads {MAX_NORM} needs all maps before the first link: name the maps")
        if args.heads is not None:
            reverse = NO_REVERSE if args.reverse_path is None and args.path != DEMO else args.reverse_path
            options.named_maps(directions=1 if reverse == NO_REVERSE else 2)
        protected = _protected(args.protect or ())
        # a tag beside a placeholder that is linked elsewhere would go to a wrong place without a word
        protects = protected or args.translate or args.markup
        strings = protected_strings(protected) if protects else None
        read, written = named_files(args)
        parts = [] if in_directory or is_stream(args.output) else [f"{os.path.realpath(args.output)}.parts"]
        inputs, outputs = (*read, *other_inputs(args)), (*written, *parts)
        check_distinct(outputs, inputs)
        return cls(
            load_options={**model_options(args), "profile": args.profile},
            on_cpu=args.cpu,
            options=options,
            paths=text_paths(args),
            words=tuple(args.words),
            output=args.output,
            in_directory=in_directory,
            shard=args.shard[0] if args.shard else 0,
            shards=args.shard[1] if args.shard else 1,
            overwrite=args.overwrite,
            resume=args.resume,
            window=args.window,
            tokens_out=args.tokens_out or (),
            scores_out=args.scores_out,
            confidences=args.confidences or (with_text and not symmetrised),
            beam=args.translate,
            markup=args.markup and Markup.of(args.markup, args.opaque, strings if args.translate else None),
            protected=protected,
            strings=strings,
            actors=args.ray,
            inputs=inputs,
            outputs=outputs,
        )

    def form(self, text: Text) -> Form:
        """What the rows of this text hold."""
        return Form(self.confidences, self.options.scores, self.markup is not None, text.text_ids)


def _protected(stated: Sequence[str]) -> Sequence[str]:
    """The regular expressions, of which none excludes others."""
    if len(stated) > 1 and NO_PROTECTION in stated:
        raise UsageError(f"--protect {NO_PROTECTION} with another --protect: give one of them")
    return stated


# ---- what norm-align and calibrate have in common


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the source-target model and its subwords."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--path",
        required=True,
        metavar="CHECKPOINT",
        help="a fairseq checkpoint; those of an ensemble, separated by :; the directory of a released model; or demo, "
        "the included models of both directions",
    )
    help_ = "directory with dict.LANG.txt of both languages (default: the directory of CHECKPOINT)"
    group.add_argument("--data", metavar="DIR", help=help_)
    default = "(default: by the profile, the names of binarised files in DIR, or CHECKPOINT)"
    group.add_argument("-s", "--source-lang", metavar="LANG", help=f"source language {default}")
    group.add_argument("-t", "--target-lang", metavar="LANG", help="target language (default: likewise)")
    group.add_argument(
        "--model-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another option of the model's tokenizer, subwords or languages, by its name in fairseq, such as "
        "sentencepiece_model=FILE, moses_no_escape=true or lang_pairs=de-en; subword_mark=@@ of text in subwords; "
        "target_tag=fra of a model that expects >>fra<<; may be given again",
    )
    help_ = "as in fairseq, a directory with the code of the model's architecture, which is run"
    group.add_argument("--user-dir", type=Input, metavar="DIR", help=help_)
    group = parser.add_argument_group("words and subwords", "default: as the model's profile says")
    add_fields(group, TextRecipe, "tokenizer", "normalize", "lowercase", "bpe")
    help_ = "codes of subword-nmt or fastBPE: one file, or those of source and target"
    group.add_argument("--bpe-codes", nargs="+", type=Input, metavar="CODES", help=help_)
    add_fields(group, TextRecipe, "words")


def add_raw_text_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare the text; returns its group."""
    group = parser.add_argument_group("text", "raw, or as --tokenizer and --bpe say (-: standard input)")
    group.add_argument("--source-text", type=Input, metavar="FILE", help="source text, one sentence a line")
    group.add_argument("--target-text", type=Input, metavar="FILE", help="its translation, line by line")
    group.add_argument(
        "--text",
        type=Input,
        metavar="PATH",
        help="both texts: a file with lines SOURCE ||| TARGET; one with tabs, whose first two columns are read; or "
        "FILE.parquet, a directory or a glob, with columns source, target and perhaps id",
    )
    return group


def add_reverse_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare the target-source model; returns its group."""
    group = parser.add_argument_group("both directions")
    group.add_argument(
        "--reverse-path",
        metavar="CHECKPOINT",
        help="a model of the other direction, target-source; none: read one direction (default: CHECKPOINT if it has "
        "both, as demo and multilingual models; else none)",
    )
    return group


def add_speed_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare batches and device; returns their group."""
    group = parser.add_argument_group("speed and memory")
    add_options(group, "max_tokens")
    group.add_argument("--cpu", action="store_true", help="do not use a GPU")
    help_ = "what the model is computed in; maps and links stay in float32 (default: float32)"
    group.add_argument("--dtype", choices=DTYPES, default="float32", help=help_)
    return group


def is_parquet(text: str | None) -> bool:
    """Whether ``--text`` names Parquet files: by their ending, as a directory, or by a glob."""
    if text is None or Path(text).is_file():
        return str(text).endswith(".parquet")
    return text.endswith(".parquet") or Path(text).is_dir() or any(character in text for character in "*?[")


def text_paths(args: argparse.Namespace) -> tuple[str, ...]:
    """The files of the text: of source and target, of both, or of the source only."""
    given = (args.source_text, args.target_text) if args.text is None else (args.text,)
    return tuple(filter(None, given))


def read_text(paths: Sequence[str], words: Sequence[str], translated: bool = False) -> Text:
    """The text of these :func:`text_paths`, whose ``words`` may be given in files; or one that a model translates."""
    from fairseq_norm_plugin.text import lines

    if len(paths) == 1 and not translated and is_parquet(paths[0]):
        text = lines.of_parquet(paths[0])
    else:
        text = lines.of_files(paths, has_targets=not translated)
    files = [None if what in WORDS else what for what in words]
    return lines.with_words(text, (files[0], files[-1])) if any(files) else text


def shard_of(text: str) -> tuple[int, int]:
    """The value of ``--shard``, K/N: the number of the shard, from 0, and of all shards."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if found is None or int(found[1]) >= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r}: expected K/N, shard K of N, from 0/N to N-1/N, such as 0/4")
    return int(found[1]), int(found[2])


def check_input(args: argparse.Namespace) -> None:
    """Check that the options of text and models go together."""
    pair = (args.source_text, args.target_text)
    if getattr(args, "translate", None):
        if args.text is not None or args.target_text is not None or args.source_text is None:
            raise UsageError("--translate: expected --source-text, and no other text")
    elif args.text is not None and pair != (None, None):
        raise UsageError("--text with another text: expected --source-text and --target-text, or --text")
    elif args.text is None and None in pair:
        missing = "--target-text" if args.target_text is None else "--source-text"
        raise UsageError(f"{missing} is missing: expected --source-text and --target-text, or --text")
    for path in text_paths(args):
        if re.search(r"\.(tmx|xlf|\w*xliff)$", path, re.IGNORECASE):
            raise UsageError(f"{path}: XLIFF and TMX are not read: expected lines of source and of target")
    if len(args.words) > 2:
        raise UsageError(f"--words is given {len(args.words)} values: expected one, or two, of source and target")
    for what in args.words:
        if what not in WORDS and not Path(what).is_file():
            raise UsageError(f"--words {what}: no such file, and none of {', '.join(WORDS)}")
    if args.bpe == "none" and (args.bpe_codes or "reverse_bpe_codes" in _further_options(args)):
        raise UsageError(NO_SUBWORDS)


def other_inputs(args: argparse.Namespace) -> Iterator[str]:
    """The files that are read and that no option names by themselves: checkpoints, dictionaries, text."""
    for path in filter(None, (args.path, args.reverse_path)):
        members = [path] if Path(path).exists() else path.split(":")
        yield from members
        data = Path(args.data or (path if Path(path).is_dir() else Path(members[0]).parent))
        yield from map(str, data.glob("*dict*.txt"))
    yield from (what for what in args.words if what not in WORDS)
    if is_parquet(args.text):
        yield from glob.glob(args.text)  # noqa: PTH207  # a pattern


def check_directions(options: AlignmentOptions, directions: int) -> None:
    """Check the options that need a model of one direction, or of both."""
    if directions == 1:
        for name in ("reverse_heads", "join"):
            if getattr(options, name) is not None:
                raise UsageError(
                    f"--{name.replace('_', '-')} without --reverse-path: expected a model of both directions"
                )
    elif not (options.join or options.rule is None or rule_of(options.rule).two_way):
        raise UsageError(
            f"--rule {options.rule} links one direction, but there are two models: give --join mutual, or "
            f"--reverse-path none"
        )


def model_options(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of :func:`fairseq_norm_plugin.load`, but the profile."""
    words = [what if what in WORDS else "tokens" for what in args.words]
    of_models = {name: getattr(args, name) for name in _OF_MODELS}
    return {**of_models, "words": (words[0], words[-1]), **_further_options(args)}


def _further_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of ``--model-option``; one that is given twice has a list of values."""
    options: dict[str, Any] = {}
    for pair in args.model_option:
        key, separator, value = pair.partition("=")
        key = key.replace("-", "_")
        if not (separator and key.isidentifier()):
            raise UsageError(f"--model-option {pair}: expected KEY=VALUE, such as sentencepiece_model=FILE")
        if key == "bpe_codes":
            raise UsageError(f"--model-option {pair}: expected --bpe-codes CODES instead")
        options[key] = [*options[key], value] if key in options else [value]
    return {key: values[0] if len(values) == 1 else values for key, values in options.items()}


def load_model(options: Mapping[str, Any], on_cpu: bool) -> NormModel:
    """The model, on a GPU if there is one."""
    import torch

    from fairseq_norm_plugin.model.load import load

    model = load(**options)
    if torch.cuda.is_available() and not on_cpu:
        model.to("cuda")
    return model
