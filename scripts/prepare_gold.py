"""Turn a downloaded gold alignment set into the layout that this project uses.

Writes OUT/NAME.SOURCE and OUT/NAME.TARGET (UTF-8, NFC) and OUT/alignment.talp (one line a sentence, words counted
from 1, `i-j` sure, `ipj` possible).  The three files are parallel: no sentence is dropped, and no word is split or
joined, because the links count the gold's own words.  The counts go to stderr.

Texts may be plain, one sentence per line, or in the markup of the WPT shared tasks (`<s snum=0001> text </s>`).
Alignments may be talp (`1-1 2p3`, one line per sentence; `2?3` is a possible link too) or NAACL (`0001 1 1 S`, one line
per link).  The format is detected from the content, not from the name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gold_links import Links, count_from_one, detect_base, read_links, talp_line
from gold_text import Text, check_parallel, read_text
from text_files import check_encoding, exit_status, fresh_files

from alignment_eval.errors import UsageError


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="prepare_gold.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, required=True, metavar="FILE", help="text of the source side")
    parser.add_argument("--target", type=Path, required=True, metavar="FILE", help="text of the target side")
    parser.add_argument("--alignment", type=Path, required=True, metavar="FILE", help="gold links, talp or NAACL")
    parser.add_argument("--source-lang", required=True, metavar="LANG", help="suffix of the source text, e.g. de")
    parser.add_argument("--target-lang", required=True, metavar="LANG", help="suffix of the target text, e.g. en")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory to write to")
    parser.add_argument("--name", default="test", help="stem of the text files (default: test)")
    parser.add_argument(
        "--encoding",
        default="auto",
        help="encoding of both texts: auto (UTF-8, else latin1; the default) or an encoding that Python knows",
    )
    parser.add_argument("--lowercase", action="store_true", help="lowercase both texts, for a lowercased model")
    parser.add_argument(
        "--base",
        type=int,
        choices=(0, 1),
        help="index base of a talp file (default: detected from its indices; an error if they do not show it)",
    )
    parser.add_argument("--reversed", action="store_true", help="the alignment file gives the target word first")
    parser.add_argument("--drop-null", action="store_true", help="drop NAACL links to NULL (word 0)")
    return parser.parse_args(argv)


def prepare(args: argparse.Namespace) -> None:
    if args.source_lang == args.target_lang:
        raise UsageError(f"--source-lang and --target-lang are both {args.source_lang}; give two languages")
    encoding = args.encoding if args.encoding == "auto" else check_encoding(args.encoding)
    outputs = [args.out / f"{args.name}.{args.source_lang}", args.out / f"{args.name}.{args.target_lang}"]
    outputs.append(args.out / "alignment.talp")
    with fresh_files(outputs) as files:
        source = read_text(args.source, encoding, args.lowercase)
        target = read_text(args.target, encoding, args.lowercase)
        check_parallel(source, target)
        table = links_of(args, source, target)
        for file, rows in zip(files, (source.sentences, target.sentences, map(talp_line, table))):
            file.write_bytes("".join(f"{row}\n" for row in rows).encode("utf-8"))
    report(args.out, source, target, table)


def links_of(args: argparse.Namespace, source: Text, target: Text) -> list[Links]:
    """The links of every sentence, source word first, counted from 1."""
    table, known_base = read_links(args.alignment, source.numbers, args.drop_null)
    if args.reversed:
        table = [{(i, j): sure for (j, i), sure in links.items()} for links in table]
    if args.base is not None and known_base not in (None, args.base):
        raise UsageError(
            f"--base {args.base}: {args.alignment} is a NAACL file, which counts words from 1; omit --base"
        )
    sizes = list(zip(source.lengths, target.lengths))
    base = args.base if known_base is None else known_base
    if base is None:
        base = detect_base(args.alignment, table, sizes)
    return count_from_one(args.alignment, table, sizes, base)


def report(out: Path, source: Text, target: Text, table: Sequence[Links]) -> None:
    total = sum(map(len, table))
    sure = sum(sum(links.values()) for links in table)
    print(
        f"{out}: {len(table)} sentences, {sum(source.lengths)} source words, {sum(target.lengths)} target words, "
        f"{sure} sure and {total - sure} possible links, {sum(not links for links in table)} sentences without links",
        file=sys.stderr,
    )


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    return exit_status("prepare_gold.py", lambda: prepare(args))


if __name__ == "__main__":
    sys.exit(main())
