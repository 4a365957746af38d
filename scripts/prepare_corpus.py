"""Clean and tokenise a parallel corpus for training, or decode the texts of a gold set.

Writes PREFIX.SOURCE and PREFIX.TARGET (UTF-8, NFC, one sentence per line).  A pair is dropped from BOTH files if a side
is blank, if a side is in an --exclude text (compared without case, punctuation and spaces, so that another tokenisation
does not hide it), or if after tokenisation a side has more than 100 tokens, or 9 times as many as the other.  The
tokenisation is that of Moses, without escaping (`'` stays `'`).  Works line by line; only the excluded sentences are
kept in memory.  The counts go to stderr.

With --gold every line stays, and so do its words, which the links count; the markup of the WPT shared tasks
(`<s snum=0001> text </s>`) goes.
"""

import argparse
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from sacremoses import MosesPunctNormalizer, MosesTokenizer

from alignment_eval.command_line import exit_status
from alignment_eval.errors import InputError, UsageError
from alignment_eval.files import check_distinct, check_new, new_file

#: Reasons for dropping a pair, in the order in which they are checked.
REASONS = ("a blank side", "in an excluded text", "too long", "too uneven")
#: The largest side that is kept, and the largest ratio of the two.
MAX_TOKENS, MAX_RATIO = 100, 9
_MARKED = re.compile(r"\s*<s\s+snum=\"?(\d+)\"?\s*>(.*)</s>\s*")


def text_lines(path: Path, encoding: str) -> Iterator[str]:
    """Lines of a file as Unicode in NFC, without line ends and byte-order marks.

    Only a line feed, with or without a carriage return before it, ends a line.  Readers that also end a line at
    U+0085 or U+2028 would shift the two sides of a corpus against each other.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                where = f"{path}:{number}"
                text = line.removesuffix(b"\n").removesuffix(b"\r").decode(encoding)
                yield unicodedata.normalize("NFC", text.replace("\ufeff", ""))
    except LookupError:
        raise UsageError(f"--encoding {encoding}: unknown encoding; give utf-8, latin1 or another of Python") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: byte 0x{error.object[error.start]:02x} is not {encoding}; give --encoding, or convert the file"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}); give a text") from error


def gold_lines(path: Path, encoding: str) -> Iterator[str]:
    """Lines of a gold text without the markup of WPT; blank lines between marked ones are no sentences."""
    rows = list(text_lines(path, encoding))
    marked, count = any(re.match(r"\s*<s\s+snum=", row) for row in rows), 0
    for line, row in enumerate(rows, 1):
        if marked and not row.strip():
            continue
        count += 1
        match = _MARKED.fullmatch(row)
        if marked and (match is None or int(match[1]) != count):
            raise InputError(f"{path}:{line}: expected <s snum={count}> text </s> on one line; correct the line")
        text = row if match is None else match[2]
        if one_spaced(text) != " ".join(re.split(r"[ \t]+", text.strip(" \t"))):
            raise InputError(
                f"{path}:{line}: a word contains a space or control character, at which fairseq would split it; "
                f"replace the character"
            )
        yield text


def cleaner(language: str, args: argparse.Namespace) -> Callable[[str], str]:
    """A function that turns a raw line of ``language`` into words separated by one space."""
    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)

    def clean(line: str) -> str:
        line = one_spaced(line)
        if not (args.tokenized or args.gold):
            line = tokenizer.tokenize(normalizer.normalize(line), escape=False, return_str=True)
        return one_spaced(line.lower() if args.lowercase else line)

    return clean


def one_spaced(line: str) -> str:
    """``line`` with single spaces for white space and control characters, which later tools may read as line ends."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", line).split())


def comparison_key(line: str) -> str:
    """The letters, marks and digits of ``line``, in one case: the same for every tokenisation of a sentence."""
    folded = unicodedata.normalize("NFKC", line).casefold()
    return "".join(character for character in folded if unicodedata.category(character)[0] in "LMN")


def excluded_keys(paths: Sequence[Path]) -> frozenset[str]:
    """The keys of all lines of some texts."""
    keys: set[str] = set()
    for path in paths:
        of_file = {comparison_key(line) for line in text_lines(path, "utf-8")} - {""}
        if not of_file:
            raise InputError(f"{path}: the file has no sentences; give a text whose lines are to be excluded")
        keys |= of_file
    return frozenset(keys)


def raw_pairs(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The pairs of lines of all files."""
    read = gold_lines if args.gold else text_lines
    for source, target in zip(args.source, args.target):
        both = zip_longest(read(source, args.encoding), read(target, args.encoding))
        for number, (source_line, target_line) in enumerate(both):
            if source_line is None or target_line is None:
                short, long = (source, target) if source_line is None else (target, source)
                raise InputError(f"{short} ends after {number} lines, but {long} goes on; check if a line is missing")
            yield source_line, target_line


def reason(raw: tuple[str, str], pair: Sequence[str], excluded: frozenset[str]) -> str:
    """Why a pair is dropped, or ``kept``."""
    shorter, longer = sorted(len(side.split()) for side in pair)
    if not shorter:
        return REASONS[0]
    if excluded and not excluded.isdisjoint(map(comparison_key, raw)):
        return REASONS[1]
    if longer > MAX_TOKENS:
        return REASONS[2]
    return REASONS[3] if longer > MAX_RATIO * shorter else "kept"


def prepare(args: argparse.Namespace) -> None:
    """Write the pairs that are kept, and count the others."""
    if len(args.source) != len(args.target):
        raise UsageError(
            f"--source names {len(args.source)} files and --target {len(args.target)}; give the same number, in the "
            f"same order"
        )
    languages = (args.source_lang, args.target_lang)
    outputs = [Path(f"{args.out}.{language}") for language in languages]
    for path in outputs:
        check_new(path, args.overwrite, parents=True)
    check_distinct(outputs, [*args.source, *args.target, *args.exclude])
    cleaners = [cleaner(language, args) for language in languages]
    excluded = excluded_keys(args.exclude)
    counts: Counter[str] = Counter()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with new_file(outputs[0]) as source, new_file(outputs[1]) as target:
        with source.open("wb") as source_out, target.open("wb") as target_out:
            for raw in raw_pairs(args):
                pair = [clean(side) for clean, side in zip(cleaners, raw)]
                counts[why := "kept" if args.gold else reason(raw, pair, excluded)] += 1
                if why == "kept":
                    source_out.write(f"{pair[0]}\n".encode())
                    target_out.write(f"{pair[1]}\n".encode())
        dropped = ", ".join(f"{counts[why]} {why}" for why in REASONS)
        report = f"{sum(counts.values())} pairs read, {counts['kept']} kept; dropped: {dropped}"
        if not counts["kept"]:
            raise InputError(f"{args.source[0]}: no pair is left ({report}); check the options")
    print(f"{args.out}: {report}", file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    files: dict[str, Any] = {"type": Path, "nargs": "+", "metavar": "FILE"}
    parser.add_argument("--source", required=True, **files)
    parser.add_argument("--target", required=True, help="in the order of --source", **files)
    parser.add_argument("--source-lang", required=True, metavar="LANG", help="ISO 639-1 code, e.g. de")
    parser.add_argument("--target-lang", required=True, metavar="LANG", help="ISO 639-1 code, e.g. en")
    parser.add_argument("--out", type=Path, required=True, metavar="PREFIX", help="files to write are PREFIX.LANG")
    parser.add_argument("--overwrite", action="store_true", help="replace them")
    parser.add_argument("--gold", action="store_true", help="keep all lines and words; only decode, and --lowercase")
    parser.add_argument("--encoding", default="utf-8", help="encoding of the corpus (default: utf-8)")
    parser.add_argument("--tokenized", action="store_true", help="the corpus is: leave words and marks as they are")
    parser.add_argument("--lowercase", action="store_true")
    parser.add_argument("--exclude", default=[], help="UTF-8 texts whose lines are all dropped", **files)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(exit_status("prepare_corpus.py", parse, prepare))
