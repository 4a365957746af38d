"""Split text into the WordPiece tokens of a BERT model, for fairseq-preprocess with the dict.txt of its conversion.

Each line of input gives one line of output.  `[CLS]` and `[SEP]` are not written, because fairseq's masked-LM task adds
them as <s> and </s>.  `[MASK]` in the text becomes <mask>, and words that the vocabulary cannot spell become <unk>.
MODEL/tokenizer.json, or tokenizer_config.json without it, decides on lowercasing and other normalisation.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import BertWordPieceTokenizer, Tokenizer

from alignment_eval.command_line import exit_status
from alignment_eval.errors import InputError
from alignment_eval.files import check_distinct, check_new, write_lines
from alignment_eval.reading import TextFile

_SPECIALS = {"[MASK]": "<mask>", "[UNK]": "<unk>"}
_REFUSED = {"[CLS]", "[SEP]", "[PAD]"}


def run(args: argparse.Namespace) -> None:
    """Write the tokens of a text."""
    check_distinct([args.out], [args.text])
    check_new(args.out, args.overwrite)
    write_lines(args.out, cut(args.text, read_tokenizer(args.model)))


def read_tokenizer(model: Path) -> Any:
    """The tokenizer of a model: its tokenizer.json, or what older files say."""
    if (model / "tokenizer.json").is_file():
        return Tokenizer.from_file(str(model / "tokenizer.json"))
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


def cut(text: Path, tokenizer: Tokenizer) -> Iterator[str]:
    """The tokens of each line."""
    for number, line in TextFile(text).lines():
        tokens = tokenizer.encode(line.decode(), add_special_tokens=False).tokens
        for token in _REFUSED.intersection(tokens):
            raise InputError(f"{text}:{number}: the line contains {token}; give plain text")
        yield " ".join(_SPECIALS.get(token, token) for token in tokens)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="directory with tokenizer.json, or vocab.txt and tokenizer_config.json",
    )
    parser.add_argument("text", type=Path, metavar="TEXT", help="text, one sentence per line")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(exit_status("wordpiece.py", parse, run))
