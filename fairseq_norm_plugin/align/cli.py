"""Word alignments of raw parallel text from a trained translation model: no binarising, no fairseq command line.

    python -m fairseq_norm_plugin.align --path CHECKPOINT --data DICTIONARIES -s de -t en --bpe-codes CODES \
        --source-text F.de --target-text F.en -o F.pharaoh

docs/align.md has the rest.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Optional

import torch
from tqdm import tqdm

from alignment_eval import __version__
from alignment_eval.arguments.maps import (
    MAX_NORM,
    add_lexicon_argument,
    add_map_arguments,
    check_lexicon_passes,
    given_map_options,
    stated_options,
)
from alignment_eval.arguments.numbers import finite_number
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.bidirectional import JOINS
from alignment_eval.extraction.extract import ExtractionOptions, parse_maps
from alignment_eval.files import STANDARD, check_new, file_hash, write_lines
from alignment_eval.formats.line_style import LineStyle
from alignment_eval.formats.reading import warn_on_stderr
from alignment_eval.links.symmetrize import DEFAULT_VARIANT, METHODS, VARIANTS
from alignment_eval.maps.subwords import MARKS
from alignment_eval.records.manifest import Manifest
from alignment_eval.selection.choice_file import Choice, other_model_warning, read_choice
from alignment_eval.signature import Value, signature
from fairseq_norm_plugin.align.aligner import Aligner, Both, Direction
from fairseq_norm_plugin.align.text import ParallelText, Segmenter
from fairseq_norm_plugin.api import NormModel, load
from fairseq_norm_plugin.options import default_layers
from fairseq_norm_plugin.output.identity import model_hash, signature_hash
from fairseq_norm_plugin.output.run import SUSPICIOUS_UNKNOWN
from fairseq_norm_plugin.output.writers import AlignmentParts, IfExists
from fairseq_norm_plugin.tokens import dictionary_mark

#: For whoever says nothing of it: chosen on cmu150, docs/reproduction.md; of layers: default_layers.
DEFAULT_RULE, PRODUCT_RULE = "two-way=0.3", "two-way=0.4"
DEFAULT_PASSES = 2
DEFAULT_JOIN = "product"

PROG = "python -m fairseq_norm_plugin.align"
_EPILOG = f"""\
Example, from the root of the repository:
  {PROG} --path data/demo/checkpoint.pt --data data/demo -s de -t en \\
      --bpe-codes data/demo/codes.bpe --source-text data/demo/demo.de --target-text data/demo/demo.en -o -

The signature goes to stderr.  Exit status: 0 success, 1 bad data, 2 bad usage.
"""


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run the command line ``argv`` (default: the process's) and return its exit status: 0, 1 bad data, 2 bad usage."""
    args = _parser().parse_args(argv)
    try:
        run(args)
        sys.stdout.flush()
    except (InputError, UsageError) as error:
        print(f"align: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except torch.OutOfMemoryError:
        print(f"align: --max-tokens {args.max_tokens}: too many for the memory of the GPU: give less", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROG,
        description="Word alignments of raw parallel text from a trained translation model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    group = parser.add_argument_group("model")
    group.add_argument("--path", required=True, metavar="CHECKPOINT", help="several, for an ensemble, separated by :")
    group.add_argument("--data", required=True, metavar="DIR", help="directory with dict.LANG.txt of both languages")
    group.add_argument("-s", "--source-lang", metavar="LANG", help="default: told from binarised data in DIR")
    group.add_argument("-t", "--target-lang", metavar="LANG", help="likewise")
    group.add_argument("--bpe", choices=("subword-nmt", "none"), default="subword-nmt", help="none: text in subwords")
    group.add_argument("--bpe-codes", nargs="+", metavar="CODES", help="subword-nmt codes: joint, or source and target")
    group.add_argument(
        "--subword-mark", choices=("auto", *MARKS), default="auto", help="with --bpe none; auto: told from dictionaries"
    )
    group = parser.add_argument_group("text", "tokenised (and lowercased, …) as for training; - is standard input")
    group.add_argument("--source-text", metavar="FILE", help="one sentence a line")
    group.add_argument("--target-text", metavar="FILE", help="their translations")
    group.add_argument("--text", metavar="FILE", help="both, as lines SOURCE ||| TARGET")
    add_map_arguments(
        parser, f"default: attn_n, the mean of the last two layers, awo, {DEFAULT_RULE} ({PRODUCT_RULE} of a product)"
    )
    group = parser.add_argument_group("both directions")
    group.add_argument("--reverse-path", metavar="CHECKPOINT", help="a target-source model")
    group.add_argument("--reverse-data", metavar="DIR", help="its dictionaries (default: --data)")
    group.add_argument(
        "--reverse-bpe-codes", nargs="+", metavar="CODES", help="its codes: joint, or source (TARGET-LANG) and target"
    )
    group.add_argument("--reverse-heads", metavar="MAPS", help="the maps read of it (default: of the same numbers)")
    group.add_argument(
        "--join",
        choices=JOINS,
        help="mutual links, or the rule on mean or product of word maps (default with a two-way rule: product)",
    )
    group.add_argument("--symmetrize", choices=METHODS, help="symmetrise the links of both")
    group.add_argument("--variant", choices=VARIANTS, default=DEFAULT_VARIANT, help="of --symmetrize (default: moses)")
    group = parser.add_argument_group("the text as a whole")
    add_lexicon_argument(group, f"{DEFAULT_PASSES} with a two-way rule")
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", required=True, metavar="FILE", help="Pharaoh file (-: standard output)")
    group.add_argument("--confidences", action="store_true", help="write i-j:p, p the share of the link in its row")
    group.add_argument("--min-confidence", type=finite_number, metavar="P", help="leave out links of a smaller share")
    group.add_argument("--resume", action="store_true", help="go on where a run of the same options was stopped")
    group.add_argument("--overwrite", action="store_true", help="replace FILE, and what a stopped run left")
    group = parser.add_argument_group("speed and memory")
    group.add_argument("--max-tokens", type=_positive, default=4000, metavar="N", help="in a batch (default: 4000)")
    group.add_argument(
        "--window",
        type=_positive,
        default=10000,
        metavar="N",
        help="sentences that are sorted by length together; what a stop can lose at most (default: 10000)",
    )
    group.add_argument("--cpu", action="store_true", help="do not use a GPU")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number, 1 or more")
    return int(text)


def run(args: argparse.Namespace) -> None:
    """Align the text that ``args`` name.

    Raises:
        UsageError: options that contradict each other, or a layer or head that the model has not.
        InputError: a file cannot be used as given, or there is an output already.
    """
    _check_usage(args)
    choice = None if args.choice is None else read_choice(args.choice)
    _fill_defaults(args, choice)
    both = None if args.reverse_path is None else Both(args.join, args.symmetrize, args.variant)
    if both is not None:
        both.check()
    check_new(args.output, args.overwrite)
    text = ParallelText(_text_files(args))
    forward = _direction(args, choice)
    reverse = None if args.reverse_path is None else _direction(args, choice, forward)
    style = LineStyle(args.confidences, args.min_confidence)
    aligner = Aligner(forward, style, reverse, both, args.max_tokens, args.lexicon)
    directions = [forward, *([] if reverse is None else [reverse])]
    fields: dict[str, Value] = {
        **forward.options.fields(),
        **({} if both is None or reverse is None else {**both.fields(), "reverse_heads": reverse.options.map_names}),
        # a lexicon is of a window, so that a run can be stopped and go on
        **({"lexicon": args.lexicon, "window": args.window} if args.lexicon else {}),
        **({"confidences": True} if args.confidences else {}),
        **({} if args.min_confidence is None else {"min_confidence": args.min_confidence}),
        **({} if choice is None else choice.fields()),
    }
    manifest = _manifest(args, text, directions, fields)
    with ExitStack() as stack:
        file = Path(args.output)
        if args.output == STANDARD:
            file = Path(stack.enter_context(TemporaryDirectory(prefix="align-"))) / "pharaoh"
        existing = IfExists(args.resume, args.overwrite, ("--resume", "--overwrite"), "-o")
        writer = AlignmentParts(file, manifest, aligner.line, existing)
        for direction in directions:
            _place(direction.model, args.cpu)
        start = time.monotonic()
        done = _align(text, aligner, writer, args.window)
        seconds = time.monotonic() - start
        if args.output == STANDARD:
            with file.open(encoding="utf-8") as made:
                write_lines(STANDARD, (line.rstrip("\n") for line in made))
    kept = f", {text.size - done} kept from before" if done < text.size else ""
    print(f"align: {done} sentences in {seconds:.1f} s, {done / seconds:.1f} sentences/s{kept}", file=sys.stderr)
    print(signature(run=manifest.signature_hash, sentences=text.size, **fields), file=sys.stderr)


def _check_usage(args: argparse.Namespace) -> None:
    pair = (args.source_text, args.target_text)
    if (args.text is None) == (None in pair) or (args.text is not None and pair != (None, None)):
        raise UsageError("the text is named by --source-text and --target-text or by --text: expected one of the two")
    if pair == (STANDARD, STANDARD):
        raise UsageError("both texts are - (standard input): expected one of them in a file; or --text -")
    if (args.bpe == "none") != (args.bpe_codes is None):
        raise UsageError("expected --bpe-codes CODES of the model, or --bpe none if the text is in subwords already")
    for name, codes in (("--bpe-codes", args.bpe_codes), ("--reverse-bpe-codes", args.reverse_bpe_codes)):
        if codes is not None and len(codes) > 2:
            raise UsageError(f"{name}: {len(codes)} files: expected joint codes, or those of source and target")
    if args.reverse_path is None:
        for name in ("reverse_data", "reverse_bpe_codes", "reverse_heads", "join", "symmetrize"):
            if getattr(args, name) is not None:
                raise UsageError(
                    f"--{name.replace('_', '-')} without --reverse-path: expected a model of both directions"
                )
    if args.symmetrize is not None and (args.confidences or args.min_confidence is not None):
        raise UsageError("--symmetrize has links without a share: expected no confidences with it; or take --join")
    if args.bpe == "none" and args.reverse_bpe_codes is not None:
        raise UsageError("--reverse-bpe-codes beside --bpe none: expected text in the subwords of both models")
    check_lexicon_passes(args)
    if args.layer == MAX_NORM:
        raise UsageError(f"--layer {MAX_NORM} reads all maps before the first link: expected a number; see align-eval")
    if args.resume and args.overwrite:
        raise UsageError("--resume and --overwrite contradict each other: give one")
    if args.resume and args.output == STANDARD:
        raise UsageError("--resume with -o -: nothing is left of a stopped run there: expected a file")
    if args.min_confidence is not None and not 0 <= args.min_confidence <= 1:
        raise UsageError(f"--min-confidence {args.min_confidence:g}: expected a share of a row, from 0 to 1")
    given_map_options(args)


def _fill_defaults(args: argparse.Namespace, choice: Optional[Choice]) -> None:
    """Give what is left out its default; a choice, which was made without a lexicon, goes without."""
    if choice is None:
        product = args.reverse_path is not None and args.symmetrize is None and args.join in (None, DEFAULT_JOIN)
        args.kind, args.setting = args.kind or "attn_n", args.setting or "awo"
        args.rule = args.rule or (PRODUCT_RULE if product else DEFAULT_RULE)
    rule = args.rule if choice is None else choice.extraction.rule
    two_way = rule.startswith("two-way=") and args.symmetrize is None
    if args.reverse_path is not None and args.join is None and two_way:
        args.join = DEFAULT_JOIN
    if args.lexicon is None:
        args.lexicon = DEFAULT_PASSES if two_way and choice is None and args.join != "mutual" else 0


def _text_files(args: argparse.Namespace) -> list[str]:
    return [args.text] if args.text is not None else [args.source_text, args.target_text]


def _direction(args: argparse.Namespace, choice: Optional[Choice], forward: Optional[Direction] = None) -> Direction:
    """The source-target model; of ``forward`` the opposite direction."""
    languages, path, data = (args.source_lang, args.target_lang), args.path, args.data
    codes = args.bpe_codes
    if forward is not None:
        languages, path, data = forward.languages[::-1], args.reverse_path, args.reverse_data or args.data
        codes = args.reverse_bpe_codes or (codes and codes[::-1])
    model = load(path, data, languages[0], languages[1], subword_mark=args.subword_mark)
    options = _options(args, choice, model, None if forward is None else forward.options)
    warning = choice and not forward and other_model_warning(choice, args.choice, model_hash(model.models), path)
    if warning:
        warn_on_stderr(str(warning))
    if codes is None:
        dictionaries = (model.task.source_dictionary, model.task.target_dictionary)
        source, target = (Segmenter(None, dictionary_mark(d, args.subword_mark)) for d in dictionaries)
    else:
        source, target = Segmenter(codes[0]), Segmenter(codes[-1])
    return Direction(model, (source, target), options, path)


def _options(
    args: argparse.Namespace, choice: Optional[Choice], model: NormModel, forward: Optional[ExtractionOptions]
) -> ExtractionOptions:
    if forward is not None:
        if args.reverse_heads is not None:
            return forward.with_maps(parse_maps(args.reverse_heads))
        return forward if choice is None else choice.reverse_extraction
    if choice is not None:
        return choice.extraction
    if args.layer is None and args.head is None and args.heads is None:
        args.heads = ",".join(map(str, default_layers(model.layers)))
    return stated_options(args)


def _manifest(
    args: argparse.Namespace, text: ParallelText, directions: Sequence[Direction], fields: dict[str, Value]
) -> Manifest:
    codes = [*(args.bpe_codes or []), *(args.reverse_bpe_codes or [])]
    signed = {
        "version": __version__,
        "models": [model_hash(direction.model.models) for direction in directions],
        "dictionaries": [file_hash(path) for direction in directions for path in direction.dictionary_files],
        "codes": [file_hash(Path(name)) for name in codes],
        "mark": args.subword_mark,
        "text": list(text.hashes),
        "extraction": fields,
    }
    return Manifest("alignments", signed, signature_hash(signed), size=text.size, shard=0, shards=1)


def _place(model: NormModel, cpu: bool) -> None:
    if torch.cuda.is_available() and not cpu:
        for one in model.models:
            one.cuda()


def _align(text: ParallelText, aligner: Aligner, writer: AlignmentParts, window: int) -> int:
    """Align what is not written yet, a part a window; the number of sentences."""
    reasons: Counter[str] = Counter()
    first: dict[str, int] = {}
    todo = int((~writer.written).sum())
    warned = False
    pairs = enumerate(text)
    with tqdm(total=todo, unit=" sentences", disable=None, file=sys.stderr) as progress:
        while ids_and_pairs := list(itertools.islice(pairs, window)):
            new = {id_: pair for id_, pair in ids_and_pairs if not writer.written[id_]}
            for sentences in aligner.batches(new, progress.update) if new else ():
                for sentence in sentences:
                    if not sentence.ok:
                        reasons[sentence.status] += 1
                        first.setdefault(sentence.status, sentence.id + 1)
                writer.write(sentences)
            writer.commit()
            warned = warned or _warn_unknown(aligner)
    writer.finish()
    if before := writer.manifest.skipped - sum(reasons.values()):
        warn_on_stderr(f"{before} lines were left blank before the stop")
    for reason, count in reasons.items():
        warn_on_stderr(
            f"{count} sentence pairs are {reason}, their lines are blank (the first is line {first[reason]})"
        )
    return todo


def _warn_unknown(aligner: Aligner) -> bool:
    """Warn of text that the models hardly know; whether it was."""
    warned = False
    for name, total in aligner.tokens.items():
        if aligner.unknown[name] > SUSPICIOUS_UNKNOWN * total:
            warned = True
            warn_on_stderr(
                f"{aligner.unknown[name]} of {total} {name} subwords so far are unknown to the model: are language, "
                f"tokenisation, case and BPE codes those it was trained with?"
            )
    return warned
