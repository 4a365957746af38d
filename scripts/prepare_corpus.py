"""Clean and tokenise a parallel corpus for training.

Writes PREFIX.SOURCE and PREFIX.TARGET (UTF-8, NFC, one sentence per line).  A pair is dropped from BOTH files if a side
is blank, if a side is in an --exclude text (compared without case, punctuation and spaces, so that another tokenisation
does not hide it), or if it is too long or too uneven after tokenisation.  The tokenisation is that of Moses, without
escaping (`'` stays `'`).  Works line by line; only the excluded sentences are kept in memory.  The counts go to stderr.
"""

from __future__ import annotations

import argparse
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from sacremoses import MosesPunctNormalizer, MosesTokenizer
from text_files import check_encoding, exit_status, fresh_files, text_lines
from tqdm import tqdm

from alignment_eval.errors import InputError, UsageError

#: Reasons for dropping a pair, in the order in which they are checked.
REASONS = ("a blank side", "in an excluded text", "too long", "too uneven")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="prepare_corpus.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, nargs="+", required=True, metavar="FILE", help="plain, .gz, .xz, .bz2")
    parser.add_argument(
        "--target", type=Path, nargs="+", required=True, metavar="FILE", help="in the order of --source"
    )
    parser.add_argument("--source-lang", required=True, metavar="LANG", help="ISO 639-1 code, e.g. de")
    parser.add_argument("--target-lang", required=True, metavar="LANG", help="ISO 639-1 code, e.g. en")
    parser.add_argument("--out", required=True, metavar="PREFIX", help="files to write are PREFIX.LANG")
    parser.add_argument("--encoding", default="utf-8", help="encoding of the corpus (default: utf-8)")
    parser.add_argument("--no-normalize", action="store_true", help="leave quotation marks and dashes as they are")
    parser.add_argument("--no-tokenize", action="store_true", help="the corpus is tokenised already")
    parser.add_argument("--lowercase", action="store_true")
    parser.add_argument("--max-tokens", type=int, default=100, help="longest side that is kept (default: 100)")
    parser.add_argument("--max-ratio", type=float, default=9.0, help="largest ratio of the two lengths (default: 9)")
    parser.add_argument(
        "--exclude", type=Path, nargs="+", default=[], metavar="FILE", help="UTF-8 texts whose lines are all dropped"
    )
    return parser.parse_args(argv)


def cleaner(language: str, normalize: bool, tokenize: bool, lowercase: bool) -> Callable[[str], str]:
    """A function that turns a raw line of ``language`` into words separated by one space."""
    normalizer = MosesPunctNormalizer(language)
    tokenizer = MosesTokenizer(language)

    def clean(line: str) -> str:
        line = one_spaced(line)
        if normalize:
            line = normalizer.normalize(line)
        if tokenize:
            line = tokenizer.tokenize(line, escape=False, return_str=True)
        return one_spaced(line.lower() if lowercase else line)

    return clean


def one_spaced(line: str) -> str:
    """``line`` with single spaces for white space and control characters, which later tools may read as line ends."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", line).split())


def comparison_key(line: str) -> str:
    """The letters, marks and digits of ``line``, in one case: the same for every tokenisation of a sentence."""
    folded = unicodedata.normalize("NFKC", line).casefold()
    return "".join(character for character in folded if unicodedata.category(character)[0] in "LMN")


def excluded_keys(paths: Sequence[Path]) -> frozenset[str]:
    keys: set[str] = set()
    for path in paths:
        found = {comparison_key(line) for line in text_lines(path, "utf-8")} - {""}
        if not found:
            raise InputError(f"{path}: the file has no sentences; give a text whose lines are to be excluded")
        keys |= found
    return frozenset(keys)


def raw_pairs(sources: Sequence[Path], targets: Sequence[Path], encoding: str) -> Iterator[tuple[str, str]]:
    for source, target in zip(sources, targets):
        for number, (ours, theirs) in enumerate(
            zip_longest(text_lines(source, encoding), text_lines(target, encoding)), 1
        ):
            if ours is None or theirs is None:
                short, long = (source, target) if ours is None else (target, source)
                raise InputError(
                    f"{short} ends after {number - 1} lines, but {long} goes on; check whether a line is missing"
                )
            yield ours, theirs


class Preparation:
    """Cleans pairs one at a time and counts why they are dropped."""

    def __init__(self, args: argparse.Namespace) -> None:
        steps = (not args.no_normalize, not args.no_tokenize, args.lowercase)
        self.source = cleaner(args.source_lang, *steps)
        self.target = cleaner(args.target_lang, *steps)
        self.excluded = excluded_keys(args.exclude)
        self.max_tokens: int = args.max_tokens
        self.max_ratio: float = args.max_ratio
        self.dropped = dict.fromkeys(REASONS, 0)
        self.kept = 0

    def pairs(self, raw: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """The cleaned pairs that are kept."""
        for pair in raw:
            source, target = self.source(pair[0]), self.target(pair[1])
            reason = self._reason(pair, source, target)
            if reason is None:
                self.kept += 1
                yield source, target
            else:
                self.dropped[reason] += 1

    def _reason(self, raw: tuple[str, str], source: str, target: str) -> str | None:
        shorter, longer = sorted((len(source.split()), len(target.split())))
        if shorter == 0:
            return REASONS[0]
        if self.excluded and not self.excluded.isdisjoint(map(comparison_key, raw)):
            return REASONS[1]
        if longer > self.max_tokens:
            return REASONS[2]
        return REASONS[3] if longer > self.max_ratio * shorter else None

    def __str__(self) -> str:
        read = self.kept + sum(self.dropped.values())
        dropped = ", ".join(f"{count} {reason}" for reason, count in self.dropped.items())
        return f"{read} pairs read, {self.kept} kept; dropped: {dropped}"


def check_options(args: argparse.Namespace) -> None:
    check_encoding(args.encoding)
    if args.source_lang == args.target_lang:
        raise UsageError(f"--source-lang and --target-lang are both {args.source_lang}; give two languages")
    if len(args.source) != len(args.target):
        raise UsageError(
            f"--source names {len(args.source)} files and --target {len(args.target)}; give the same number, in the "
            f"same order"
        )
    if args.max_tokens < 1 or not args.max_ratio >= 1:
        raise UsageError(f"--max-tokens {args.max_tokens} --max-ratio {args.max_ratio}: both must be 1 or more")


def prepare(args: argparse.Namespace) -> None:
    check_options(args)
    outputs = [Path(f"{args.out}.{language}") for language in (args.source_lang, args.target_lang)]
    with fresh_files(outputs) as (source_file, target_file):
        preparation = Preparation(args)
        raw = tqdm(raw_pairs(args.source, args.target, args.encoding), unit=" pairs", unit_scale=True, disable=None)
        with source_file.open("wb") as source_out, target_file.open("wb") as target_out:
            for source, target in preparation.pairs(raw):
                source_out.write(f"{source}\n".encode())
                target_out.write(f"{target}\n".encode())
        if not preparation.kept:
            raise InputError(f"{args.source[0]}: no pair is left ({preparation}); check the options")
    print(f"{args.out}: {preparation}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    return exit_status("prepare_corpus.py", lambda: prepare(args))


if __name__ == "__main__":
    sys.exit(main())
