"""Options of the commands that read raw text: models, subwords, text, batches."""

from __future__ import annotations

import argparse
from typing import Any

import torch

from alignment_eval.arguments.numbers import positive_integer
from alignment_eval.errors import UsageError
from alignment_eval.extraction.rules import rule_of
from alignment_eval.files import STANDARD
from alignment_eval.maps.subwords import MARKS
from fairseq_norm_plugin.align.windows import Text
from fairseq_norm_plugin.aligning.parquet_text import ParquetText
from fairseq_norm_plugin.aligning.text import ParallelText
from fairseq_norm_plugin.api import NormModel, load
from fairseq_norm_plugin.loading.dtypes import DTYPES
from fairseq_norm_plugin.loading.languages import STATED
from fairseq_norm_plugin.pipeline.settings import SIDED, names_of, options_of
from fairseq_norm_plugin.pipeline.text import WORDS

#: ``--dtype auto`` looks at a faster type for texts of this many pairs or more; shorter ones take seconds in float32.
LONG_TEXT = 2_000
_NO_SUBWORDS = "expected --bpe-codes CODES of the model, or --bpe none for text that is in subwords"


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the source-target model and its subwords."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--path",
        required=True,
        metavar="CHECKPOINT",
        help="an ensemble: several, separated by :; or the directory of a released model",
    )
    group.add_argument(
        "--data", metavar="DIR", help="directory with dict.LANG.txt of both languages (default: --path, if a directory)"
    )
    group.add_argument("-s", "--source-lang", metavar="LANG", help="default: detected from binarised data in DIR")
    group.add_argument("-t", "--target-lang", metavar="LANG", help="default: likewise")
    _add_language_arguments(parser.add_argument_group("multilingual models", "default: as the checkpoint says"))
    _add_pipeline_arguments(parser.add_argument_group("words and subwords", "as fairseq-interactive takes them"))


def _add_language_arguments(group: argparse._ArgumentGroup) -> None:
    """Declare what fairseq's multilingual tasks are told of their languages."""
    group.add_argument(
        "--langs", metavar="LANG,LANG,…", help="all languages of the model, in the order of its training"
    )
    group.add_argument("--lang-dict", metavar="FILE", help="the same, one a line")
    group.add_argument("--lang-pairs", metavar="SRC-TGT,…", help="language pairs, also those it was not trained on")
    group.add_argument("--fixed-dictionary", metavar="FILE", help="a dictionary of all languages")
    group.add_argument(
        "--target-tag",
        metavar="TAG",
        help="tag that each source begins with, of Marian's models of several target languages: fra for >>fra<< "
        "(default: that of --target-lang; none: no tag)",
    )


def _add_pipeline_arguments(group: argparse._ArgumentGroup) -> None:
    """Declare fairseq's tokenizers and subwords, with the options that they declare themselves."""
    group.add_argument("--tokenizer", choices=("none", *names_of("tokenizer")), help="links are between its tokens")
    group.add_argument(
        "--bpe",
        choices=("none", "subword-nmt", *names_of("bpe")),
        help="none: the text is in subwords (default: by --bpe-codes)",
    )
    group.add_argument(
        "--bpe-codes", nargs="+", metavar="CODES", help="of subword-nmt or fastBPE: joint, or source and target"
    )
    declared = {"bpe_codes"}
    for registry in ("tokenizer", "bpe"):
        for name in names_of(registry):
            for option in options_of(registry, name):
                if option.name not in declared:
                    declared.add(option.name)
                    _add_option(group, option, f"--{registry} {name}")
    group.add_argument(
        "--subword-mark",
        choices=("auto", *MARKS),
        default="auto",
        help="subword mark of the text with --bpe none (default: auto, detected from the dictionaries)",
    )
    for side in ("source", "target"):
        group.add_argument(
            f"--{side}-words",
            choices=WORDS,
            default="blanks",
            help=f"words of the {side} text: what blanks separate; characters, in scripts without blanks; segmented: "
            "what blanks separate that the model does not read (default: blanks)",
        )


def _add_option(group: argparse._ArgumentGroup, option: Any, owner: str) -> None:
    flag, text = f"--{option.name.replace('_', '-')}", f"{owner}: {option.metadata.get('help', '')}".replace("%", "%%")
    if option.type is bool:
        group.add_argument(flag, action="store_const", const=True, help=text)
    else:
        group.add_argument(flag, metavar="VALUE", help=text, nargs="+" if option.name in SIDED else None)


def _stated_options(args: argparse.Namespace) -> dict[str, Any]:
    """The stated options of tokenizer and subwords, except for codes, and those of multilingual models."""
    names = {o.name for registry in ("tokenizer", "bpe") for n in names_of(registry) for o in options_of(registry, n)}
    names |= set(STATED)
    return {name: getattr(args, name) for name in names - {"bpe_codes"} if getattr(args, name) is not None}


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the text."""
    group = parser.add_argument_group("text", "tokenised, cased, … as for training (-: standard input)")
    group.add_argument("--source-text", metavar="FILE", help="source text, one sentence a line")
    group.add_argument("--target-text", metavar="FILE", help="target text, the translations line by line")
    group.add_argument("--text", metavar="FILE", help="both texts, as lines SOURCE ||| TARGET")
    group.add_argument(
        "--parquet",
        metavar="PATH",
        help="both texts, in columns source and target (and id, if there is one): a file, a directory or a glob",
    )


def add_reverse_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare the target-source model; returns its group."""
    group = parser.add_argument_group("both directions")
    group.add_argument(
        "--reverse-path",
        metavar="CHECKPOINT",
        help="a target-source model; a multilingual model is its own (none: only one direction of it)",
    )
    group.add_argument("--reverse-data", metavar="DIR", help="its dictionaries (default: --data)")
    group.add_argument(
        "--reverse-bpe-codes",
        nargs="+",
        metavar="CODES",
        help="its codes: joint, or of TARGET-LANG and SOURCE-LANG",
    )
    return group


def add_speed_arguments(parser: argparse.ArgumentParser, auto: bool = False) -> argparse._ArgumentGroup:
    """Declare batches and device; returns their group.

    Args:
        parser: the command line.
        auto: whether the type may be chosen for a text (align.precision), which is then the default.
    """
    group = parser.add_argument_group("speed and memory")
    group.add_argument(
        "--max-tokens",
        type=positive_integer,
        default=4000,
        metavar="N",
        help="tokens in a batch (default: 4000)",
    )
    group.add_argument("--cpu", action="store_true", help="do not use a GPU")
    precision = group.add_mutually_exclusive_group()
    precision.add_argument(
        "--dtype",
        choices=["auto", *DTYPES] if auto else DTYPES,
        default="auto" if auto else "float32",
        help="compute the model in 16 bits, or its matrix products in 8 bits, on a CPU; maps and links stay in float32 "
        + (
            f"(default: auto: float32; for {LONG_TEXT} pairs or more the processor's fastest type, where a sample "
            f"keeps 98 %% of its links)"
            if auto
            else "(default: float32)"
        ),
    )
    for flag, dtype in (("--fp16", "float16"), ("--bf16", "bfloat16")):
        precision.add_argument(flag, dest="dtype", action="store_const", const=dtype, help=f"--dtype {dtype}")
    return group


def text_paths(args: argparse.Namespace) -> list[str]:
    """The files of the text, as they are named."""
    joined = args.text if args.parquet is None else args.parquet
    return [joined] if joined is not None else [args.source_text, args.target_text]


def read_text(args: argparse.Namespace) -> Text:
    """The text.

    Raises:
        InputError: it cannot be used as given.
    """
    return ParallelText(text_paths(args)) if args.parquet is None else ParquetText(args.parquet)


def check_input(args: argparse.Namespace) -> None:
    """Check that the options of text and models go together.

    Raises:
        UsageError: an option is missing, or two contradict each other.
    """
    pair = (args.source_text, args.target_text)
    ways = [way for way in (args.text, args.parquet) if way is not None] + ([pair] if pair != (None, None) else [])
    if len(ways) != 1 or (ways == [pair] and None in pair):
        raise UsageError("no text, or more than one: expected --source-text and --target-text, --text, or --parquet")
    if pair == (STANDARD, STANDARD):
        raise UsageError("both texts are - (standard input): expected a file for one of them, or --text -")
    if args.bpe == "none" and args.bpe_codes is not None:
        raise UsageError(_NO_SUBWORDS)
    for name, codes in (("--bpe-codes", args.bpe_codes), ("--reverse-bpe-codes", args.reverse_bpe_codes)):
        if codes is not None and len(codes) > 2:
            raise UsageError(f"{name}: {len(codes)} files: expected joint codes, or those of source and target")
    if args.bpe == "none" and args.reverse_bpe_codes is not None:
        raise UsageError("--reverse-bpe-codes with --bpe none: expected text in the subwords of both models")
    if args.reverse_path is None:
        for name in ("reverse_data", "reverse_bpe_codes"):
            if getattr(args, name) is not None:
                raise UsageError(
                    f"--{name.replace('_', '-')} without --reverse-path: expected a model of both directions"
                )


def check_directions(args: argparse.Namespace, directions: int) -> None:
    """Check the options of two directions, now that the models are known.

    Raises:
        UsageError: they need a model of the other direction, or say too little for two.
    """
    if directions == 1:
        for name in ("reverse_heads", "join", "symmetrize"):
            if getattr(args, name, None) is not None:
                raise UsageError(
                    f"--{name.replace('_', '-')} without --reverse-path: expected a model of both directions"
                )
    elif not (args.join or args.symmetrize or args.rule is None or rule_of(args.rule).two_way):
        raise UsageError(f"--rule {args.rule} with two directions: give --join or --symmetrize too")


def load_models(args: argparse.Namespace) -> list[NormModel]:
    """The source-target model, and the target-source model if there is one, on their device.

    Raises:
        InputError: a checkpoint, a dictionary or BPE codes cannot be used.
    """
    model = load(
        args.path,
        args.data,
        args.source_lang,
        args.target_lang,
        args.bpe_codes,
        args.subword_mark,
        reverse_path=args.reverse_path,
        reverse_data=args.reverse_data,
        reverse_bpe_codes=args.reverse_bpe_codes,
        tokenizer=args.tokenizer,
        bpe=args.bpe,
        source_words=args.source_words,
        target_words=args.target_words,
        dtype="float32" if args.dtype == "auto" else args.dtype,
        **_stated_options(args),
    )
    if not model.text.is_stated:
        raise UsageError(_NO_SUBWORDS)
    if torch.cuda.is_available() and not args.cpu and args.dtype != "int8":
        model.to("cuda")
    return model.both
