"""Reads the BPE codes of subword-nmt and of fastBPE, and cuts words by them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from operator import itemgetter
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError, printable, shown
from fairseq_norm_plugin.text.offsets import Span, blank_spans
from fairseq_norm_plugin.text.tokenise import CutText, Splitter, is_filler

#: fairseq's names for the programs whose codes can be read, and what each line of their files holds.
CODES = {"subword_nmt": "two subwords", "fastbpe": "two subwords and a count"}
#: The first line of codes in the form that subword-nmt has today.
_VERSION = "#version: 0.2\n"
#: The versions that subword-nmt applies.
_VERSIONS = ((0, 1), (0, 2))
#: The end of a word in codes: part of its last character, in version 0.1 a subword of its own.
_END = "</w>"
#: Words whose pieces are cached.
_CACHED = 100_000
#: A larger share of a dictionary that codes do not make shows other codes; the model's own leave out next to nothing.
_UNMADE = 0.1


class CodePieces(Splitter):
    """Byte-pair encoding by codes, of each word alone.

    Args:
        codes: file of subword-nmt's or fastBPE's codes.
        kind: whose codes (:func:`read_bpe`).
        separator: the mark of a piece that another follows.
    """

    def __init__(self, codes: str | Path, kind: str | None = None, separator: str = "@@") -> None:
        self._bpe = read_bpe(codes, kind, separator)
        self._mark = separator

    def cut(self, text: str, given: str) -> CutText:
        """The pieces of each word."""
        if len(self._bpe.cache) > _CACHED:
            self._bpe.cache = {}  # a new one: another thread may be reading the old one
        tokens, spans = list[str](), list[Span]()
        for start, end in blank_spans(text):
            pieces = self._bpe.segment_tokens([text[start:end]])
            tokens += pieces
            for piece in pieces[:-1]:
                spans.append((start, start := start + len(piece) - len(self._mark)))
            spans.append((start, end))
        return tokens, spans

    def joined(self, tokens: Sequence[str]) -> str:
        """The words."""
        return (" ".join(tokens) + " ").replace(f"{self._mark} ", "").rstrip()

    def unmade(self, entries: Iterable[str]) -> set[str]:
        """The entries of dictionaries that are longer than a character and that no line of the codes makes."""
        long = {entry for entry in entries if len(entry.removesuffix(self._mark)) > 1 and not is_filler(entry)}
        made = map("".join, self._bpe.bpe_codes)
        return long - {p.removesuffix(_END) if p.endswith(_END) else p + self._mark for p in made}


def check_codes(codes: Mapping[str, CodePieces], dictionaries: Iterable[Any]) -> None:
    """Check that codes, by their files, make the entries of a model's dictionaries."""
    entries = {entry for dictionary in dictionaries for entry in dictionary.symbols[dictionary.nspecial :]}
    unmade = set.intersection(*(pieces.unmade(entries) for pieces in codes.values()))
    if len(unmade) > _UNMADE * len(entries):
        raise InputError(
            f"{', '.join(codes)}: no line of the codes makes {len(unmade)} of the {len(entries)} entries of the "
            f"dictionaries, such as {shown(min(unmade))}; give all the codes that the model's text was cut with"
        )


def read_bpe(path: str | Path, kind: str | None = None, separator: str = "@@") -> Any:
    """The segmenter of a codes file, with ``segment_tokens``, ``process_line``, and a ``cache`` of all words so far.

    fastBPE learns and applies the same merges as subword-nmt and adds their counts to its file; so subword-nmt applies
    both.

    Args:
        path: the codes.
        kind: ``subword_nmt`` or ``fastbpe``; None: detected from the file (:func:`kind_of_codes`).
        separator: the mark of a piece that another follows.
    """
    try:
        from subword_nmt.apply_bpe import BPE
    except ImportError as error:
        raise InputError(
            "BPE codes need subword-nmt, which is not installed; pip install subword-nmt, or give text in subwords"
        ) from error
    said = io.StringIO()
    try:
        text = Path(path).read_text(encoding="utf-8")
        if _is_dictionary(text):
            raise InputError(
                f"{path}: a dictionary (each line has a token and its count), not BPE codes; give the codes that the "
                f"model's text was cut with"
            )
        found = kind_of_codes(text)
        if kind is not None and kind != found:
            raise InputError(
                f"{path}: these are codes of {found} (each line has {CODES[found]}), but --bpe {kind} expects "
                f"{CODES[kind]}; give --bpe {found}, or the other codes"
            )
        if found == "fastbpe":
            text = _VERSION + "".join(_without_counts(text, path))
        with redirect_stderr(said):
            bpe = BPE(io.StringIO(text), separator=separator)
    except SystemExit as error:  # subword-nmt exits at a line of another form
        wrong = said.getvalue().partition("\n")[0].removeprefix("Error: ")
        raise InputError(
            f"{path}: {printable(wrong, 200)}; each line must have two subwords, as subword-nmt learn-bpe writes"
        ) from error
    except (OSError, ValueError, IndexError) as error:
        raise InputError(
            f"{path}: cannot read BPE codes ({printable(str(error), 200)}); give a file that subword-nmt learn-bpe or "
            f"fastBPE wrote"
        ) from error
    if bpe.version not in _VERSIONS:
        raise InputError(
            f"{path}:1: version {shown('.'.join(map(str, bpe.version)))}: expected 0.1 or 0.2, as subword-nmt "
            f"learn-bpe writes"
        )
    _check_order(bpe, path, text.startswith("#version") and found == "subword_nmt")
    return bpe


def _check_order(bpe: Any, path: str | Path, has_version: bool) -> None:
    """Check that each line joins characters and subwords of earlier lines, as learning makes them."""
    made: set[str] = set()
    for pair, rank in sorted(bpe.bpe_codes.items(), key=itemgetter(1)):
        for part in pair:
            bare = part.removesuffix(_END)
            if part in made or len(part) == 1 or (part == _END if bpe.version == (0, 1) else len(bare) == 1):
                continue
            lost = len(bare) == 1 and bpe.version == (0, 1)
            advice = f"give its first line, {_VERSION.strip()}, back" if lost else "give the file as it was learned"
            raise InputError(
                f"{path}:{rank + 1 + has_version}: {shown(' '.join(pair))}: no earlier line makes {shown(part)}, so "
                f"lines of the codes are missing or in another order; {advice}"
            )
        made.add("".join(pair))


def kind_of_codes(text: str) -> str:
    """Whose codes these are: ``fastbpe`` if the first line has two subwords and a count, else ``subword_nmt``.

    Transformers leaves out the counts (``merges.txt``).  subword-nmt's codes without a version have ``</w>`` alone.
    """
    columns = text.partition("\n")[0].rstrip("\r").split(" ")
    counted = len(columns) == 3 and columns[2].isdecimal()
    uncounted = columns[0] != "#version:" and len(columns) == 2 and "</w>\n" in text and " </w>\n" not in text
    return "fastbpe" if counted or uncounted else "subword_nmt"


def _is_dictionary(text: str) -> bool:
    """Whether this is fairseq's dictionary instead: its first lines all end in a number."""
    lines = [line.split() for line in text.splitlines()[:20]]
    return bool(lines) and all(len(line) == 2 and line[1].isdecimal() for line in lines)


def _without_counts(text: str, path: str | Path) -> Iterator[str]:
    lines = [line.rstrip("\r").split(" ") for line in text.rstrip("\n").split("\n")]
    for number, columns in enumerate(lines, 1):
        if len(columns) != len(lines[0]) or not all(count.isdecimal() for count in columns[2:]):
            said = shown(" ".join(columns))
            raise InputError(f"{path}:{number}: {said}: expected two subwords and a count, as fastBPE writes")
        yield f"{columns[0]} {columns[1]}\n"
