"""Split text into the WordPiece tokens of a BERT model, for fairseq-preprocess with the dict.txt of its conversion.

Each line of input gives one line of output.  `[CLS]` and `[SEP]` are not written, because fairseq's masked-LM task adds
them as <s> and </s>.  `[MASK]` in the text becomes <mask>, and words that the vocabulary cannot spell become <unk>.
MODEL/tokenizer_config.json decides on lowercasing and other normalisation.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from text_files import exit_status, fresh_files
from tokenizers import BertWordPieceTokenizer

from alignment_eval.errors import InputError
from alignment_eval.files import write_lines
from alignment_eval.formats.text import TextFile

_SPECIALS = {"[MASK]": "<mask>", "[UNK]": "<unk>"}
_REFUSED = {"[CLS]", "[SEP]", "[PAD]"}


def load_tokenizer(model: Path) -> BertWordPieceTokenizer:
    """The tokenizer of a BERT model, from its vocab.txt and tokenizer_config.json.

    Raises:
        InputError: one of them is missing or has another form.
    """
    path = model / "tokenizer_config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        lowercase = bool(config["do_lower_case"])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: cannot read the file ({error!r}); give a JSON object with do_lower_case") from error
    if not (model / "vocab.txt").is_file():
        raise InputError(f"{model / 'vocab.txt'}: no such file; give the model's vocabulary")
    return BertWordPieceTokenizer(
        str(model / "vocab.txt"),
        lowercase=lowercase,
        strip_accents=config.get("strip_accents"),
        handle_chinese_chars=config.get("tokenize_chinese_chars", True),
    )


def token_lines(model: Path, text: str) -> Iterator[str]:
    """The lines of ``text`` (a path, or ``-`` for standard input) in WordPiece tokens.

    Raises:
        InputError: as :func:`load_tokenizer` and ``TextFile``; or a line holds ``[CLS]``, ``[SEP]`` or ``[PAD]``.
    """
    tokenizer, file = load_tokenizer(model), TextFile(text)
    lines = (line for chunk in file for line in chunk.decode().split("\n")[:-1])
    for number, line in enumerate(lines, 1):
        tokens = tokenizer.encode(line, add_special_tokens=False).tokens
        for token in _REFUSED.intersection(tokens):
            raise InputError(f"{file.name}:{number}: the line contains {token}; give plain text, one sentence per line")
        yield " ".join(_SPECIALS.get(token, token) for token in tokens)


def convert(model: Path, text: str, out: Path) -> None:
    """Write the tokens of ``text`` to ``out`` atomically."""
    with fresh_files([out]) as (path,):
        write_lines(path, token_lines(model, text))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="wordpiece.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="directory with vocab.txt and tokenizer_config.json")
    parser.add_argument("text", metavar="TEXT", help="text, one sentence per line; - is standard input")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write")
    args = parser.parse_args(argv)
    return exit_status("wordpiece.py", lambda: convert(args.model, args.text, args.out))


if __name__ == "__main__":
    sys.exit(main())
