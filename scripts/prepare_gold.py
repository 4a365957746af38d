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
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from text_files import fresh_files, text_lines

from alignment_eval.errors import InputError, UsageError
from alignment_eval.links.parse import Tokens, detect_format
from alignment_eval.links.parse import parse as parse_links
from alignment_eval.links.sets import GoldSentence
from alignment_eval.links.write import format_talp_line
from alignment_eval.options.common import exit_status

_MARKED = re.compile(r"\s*<s\s+snum=\"?(\d+)\"?\s*>(.*)</s>\s*")
_NAACL = re.compile(rb"\s*(\d+)\s+(\d+)\s+(\d+)\b")


def read_text(path: Path, encoding: str, lowercase: bool) -> dict[int, list[str]]:
    """The words of each sentence by its number, from the WPT markup or of the line.

    Raises:
        InputError: the text cannot be read, its markup is broken, or a word contains white space.
    """
    rows = list(text_lines(path, encoding))
    marked = any(re.match(r"\s*<s\s+snum=", row) for row in rows)
    sentences: dict[int, list[str]] = {}
    for line, row in enumerate(rows, 1):
        number, text = line, row
        if marked and not row.strip():
            continue
        if marked:
            match = _MARKED.fullmatch(row)
            if match is None:
                raise InputError(f"{path}:{line}: expected <s snum=NUMBER> text </s> on one line; correct the line")
            number, text = int(match[1]), match[2]
        if number in sentences:
            raise InputError(f"{path}:{line}: duplicate sentence number {number}; give each sentence its own number")
        words = [word for word in re.split(r"[ \t]+", text.lower() if lowercase else text) if word]
        # fairseq splits at every Unicode space, and every later link would point to the wrong word
        if spaces := [word for word in words if len(word.split()) != 1]:
            space = next(character for character in spaces[0] if character.isspace())
            raise InputError(
                f"{path}:{line}: a word contains the space character U+{ord(space):04X}, at which fairseq would split "
                f"it; replace the character"
            )
        sentences[number] = words
    return sentences


def read_links(args: argparse.Namespace, numbers: Sequence[int]) -> list[GoldSentence]:
    """The links of each sentence, source-target from 0; the first line that is not blank shows the format.

    Raises:
        InputError: a line has neither format, a sentence is unknown, a link points to NULL, or the number of lines is
            wrong.
        UsageError: the base of a talp file is missing, or a NAACL file has one.
    """
    path, base = args.alignment, args.base
    rows = [row.encode() for row in text_lines(path, "utf-8")]
    if detect_format(b"\n".join(rows)) == "naacl":
        if base is not None:
            raise UsageError(f"--base {base}: {path} is a NAACL file, which counts words from 1; omit --base")
        lines = naacl_lines(path, rows, numbers, args.drop_null)
        parsed = parse_links("naacl", lines, str(path), Tokens(1, args.reversed), True)
    elif base is None:
        raise UsageError(f"{path}: a talp file counts words from 0 or from 1; give --base")
    elif len(rows) != len(numbers):
        raise InputError(
            f"{path}: the file has {len(rows)} lines, but the texts have {len(numbers)} sentences; check whether a "
            f"blank line is missing"
        )
    else:
        lines = enumerate((row.replace(b"?", b"p") for row in rows), 1)
        parsed = parse_links("talp", lines, str(path), Tokens(base, args.reversed), True)
    table = [sentence for sentence, _ in parsed]
    return table + [GoldSentence(frozenset())] * (len(numbers) - len(table))


def naacl_lines(
    path: Path, rows: Sequence[bytes], numbers: Sequence[int], drop_null: bool
) -> Iterator[tuple[int, bytes]]:
    """The lines with sentences counted from 1 in the order of ``numbers``, without links to NULL."""
    places = {number: place for place, number in enumerate(numbers, 1)}
    dropped = 0
    for line, row in enumerate(rows, 1):
        match = _NAACL.match(row)
        if match is None:  # blank, or the parser says what is wrong
            yield line, row
            continue
        sentence, i, j = map(int, match.groups())
        if sentence not in places:
            raise InputError(f"{path}:{line}: sentence {sentence} is not one of the {len(places)} of the texts")
        if i and j:
            yield line, b"%d%s" % (places[sentence], row[match.end(1) :])
        elif not drop_null:
            raise InputError(
                f"{path}:{line}: the link points to word 0, which is NULL in NAACL files; give the file without links "
                f"to NULL (nonullalign), or give --drop-null"
            )
        dropped += not (i and j)
    if dropped:
        print(f"{path}: {dropped} links to NULL dropped", file=sys.stderr)


def prepare(args: argparse.Namespace) -> None:
    """Read everything, check that it belongs together, and write the three files."""
    outputs = [args.out / f"{args.name}.{args.source_lang}", args.out / f"{args.name}.{args.target_lang}"]
    with fresh_files([*outputs, args.out / "alignment.talp"]) as files:
        source, target = (read_text(path, args.encoding, args.lowercase) for path in (args.source, args.target))
        if list(source) != list(target):
            raise InputError(
                f"{args.target} has {len(target)} sentences, {args.source} {len(source)}: expected the same numbers in "
                f"the same order; check whether a blank line is missing in one of them"
            )
        table = read_links(args, list(source))
        for number, (links, *sides) in enumerate(zip(table, source.values(), target.values()), 1):
            for i, j in links.possible:
                if not (0 <= i < len(sides[0]) and 0 <= j < len(sides[1])):
                    raise InputError(
                        f"{args.alignment}: sentence {number}: the link of source word {i + 1} and target word "
                        f"{j + 1}, counted from 1, is outside the pair of {len(sides[0])} and {len(sides[1])} words; "
                        f"give another --base, or --reversed if the file gives the target first"
                    )
        if not any(links.possible for links in table):
            raise InputError(f"{args.alignment}: the file has no links; give a gold alignment in talp or NAACL format")
        texts = [[" ".join(words) for words in side.values()] for side in (source, target)]
        for file, rows in zip(files, (*texts, [format_talp_line(links, 1) for links in table])):
            file.write_bytes("".join(f"{row}\n" for row in rows).encode())
    sure, either = (sum(len(getattr(links, kind)) for links in table) for kind in ("sure", "possible"))
    print(
        f"{args.out}: {len(table)} sentences, {sum(map(len, source.values()))} source words, "
        f"{sum(map(len, target.values()))} target words, {sure} sure and {either - sure} possible links, "
        f"{sum(not links.possible for links in table)} sentences without links",
        file=sys.stderr,
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, metavar="FILE", help="text of the source side")
    parser.add_argument("--target", type=Path, required=True, metavar="FILE", help="text of the target side")
    parser.add_argument("--alignment", type=Path, required=True, metavar="FILE", help="gold links, talp or NAACL")
    parser.add_argument("--source-lang", required=True, metavar="LANG", help="suffix of the source text, e.g. de")
    parser.add_argument("--target-lang", required=True, metavar="LANG", help="suffix of the target text, e.g. en")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory to write to")
    parser.add_argument("--name", default="test", help="stem of the text files (default: test)")
    parser.add_argument("--encoding", default="utf-8", help="encoding of both texts (default: utf-8)")
    parser.add_argument("--lowercase", action="store_true", help="lowercase both texts, for a lowercased model")
    parser.add_argument("--base", type=int, choices=(0, 1), help="number of the first word in a talp file")
    parser.add_argument("--reversed", action="store_true", help="the alignment file gives the target word first")
    parser.add_argument("--drop-null", action="store_true", help="drop NAACL links to NULL (word 0)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(exit_status("prepare_gold.py", parse, prepare))
