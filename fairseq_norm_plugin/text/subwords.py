"""Text in subwords, given or cut by BPE codes, SentencePiece or an encoder of fairseq, with the place of each."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, printable, shown
from alignment_eval.maps.subwords import bare_piece, word_indices, word_strings
from fairseq_norm_plugin.text.offsets import Span, word_spans
from fairseq_norm_plugin.text.tokenise import Segmenter, Segments

#: fairseq's names for the programs whose codes can be read, and what each line of their files holds.
CODES = {"subword_nmt": "two subwords", "fastbpe": "two subwords and a count"}
#: The first line of codes in the form that subword-nmt has today.
_VERSION = "#version: 0.2\n"
#: The versions that subword-nmt applies.
_VERSIONS = ((0, 1), (0, 2))
#: The end of a word in codes: part of its last character, in version 0.1 a subword of its own.
_END = "</w>"
#: Words whose subwords are cached.
_CACHED = 100_000
#: A larger share of a dictionary that codes do not make shows other codes; the model's own leave out next to nothing.
_UNMADE = 0.1


@dataclass(frozen=True)
class MarkedSubwords(Segmenter):
    """Text that is in subwords already: their ``mark``, one of alignment_eval.maps.subwords.MARKS, shows the words."""

    mark: str
    reads_raw = False

    def cut(self, text: str, given: str) -> Segments:
        """The subwords as they are given."""
        tokens, numbers, words = self._read(given)
        spans: list[Span] = []
        end, word = -1, -1
        for token, number in zip(tokens, numbers.tolist()):
            if number > word:
                word, start = number, end + 1
                end = start + len(words[word])
            spans.append((start, start := min(end, start + len(self._bare(token)))))
        return tokens, spans

    def plain(self, given: str) -> str:
        """The words that the subwords spell, with spaces between."""
        return " ".join(self._read(given)[2])

    def joined(self, tokens: Sequence[str]) -> str:
        """The subwords as they are."""
        return " ".join(tokens)

    def _read(self, given: str) -> tuple[list[str], NDArray[np.int32], list[str]]:
        """The subwords, the word of each, and the words that they spell."""
        tokens = [given[start:end] for start, end in word_spans(given)]
        numbers = word_indices(tokens, self.mark)
        return tokens, numbers, tokens if self.mark == "none" else word_strings(tokens, numbers)

    def _bare(self, token: str) -> str:
        return token if self.mark == "none" else bare_piece(token)


class LineSegmenter(Segmenter):
    """Any encoder of fairseq's registry, which cuts a whole line.

    It gives the subwords with spaces between.  A subword belongs to the word with which it appears first, as the line
    grows word by word.
    """

    def __init__(self, encode: Callable[[str], str], decode: Callable[[str], str], name: str) -> None:
        self._encode = encode
        self._decode = decode
        self._name = name

    def cut(self, text: str, given: str) -> Segments:
        """Cut the words, joined by spaces; the span of a subword is its whole word."""
        places = word_spans(text)
        words = [text[start:end] for start, end in places]
        grown = [self._encode(" ".join(words[: count + 1])).split() for count in range(len(words))]
        subwords = grown[-1] if grown else []
        spans: list[Span] = []
        for place, word, part in zip(places, words, grown):
            if part != subwords[: len(part)]:
                raise InputError(
                    f"--bpe {self._name} cuts {word!r} differently before the next word, so its subwords belong "
                    f"to no single word; give text in subwords and --bpe none"
                )
            spans += [place] * (len(part) - len(spans))
        return subwords, spans

    def joined(self, tokens: Sequence[str]) -> str:
        """The text that the encoder's other half gives."""
        return self._decode(" ".join(tokens))


class SentencePieceSegmenter(Segmenter):
    """SentencePiece, which cuts the text itself and knows where its subwords are in it; ``entries``: all, by id."""

    def __init__(self, model: str | Path) -> None:
        self._processor, self.entries = _read_sentencepiece(model)
        self.name = str(model)

    def cut(self, text: str, given: str) -> Segments:
        """Cut the text."""
        cut = self._processor.EncodeAsOffsetMapping(text)  # in characters
        return cut["pieces"], cut["offsets"]

    def joined(self, tokens: Sequence[str]) -> str:
        """The text, with spaces where subwords have their mark."""
        return "".join(tokens).replace("▁", " ").strip()

    def check(self, dictionary: Any) -> None:
        """Check that a dictionary was made with this model, and perhaps with another of the other language."""
        entries = [entry for entry in dictionary.symbols[dictionary.nspecial :] if not is_filler(entry)]
        unknown = self._processor.unk_id()
        known = sum(self._processor.PieceToId(entry) != unknown for entry in entries)
        if 2 * known < min(len(entries), self._processor.GetPieceSize()):
            raise InputError(
                f"{self.name}: {len(entries) - known} of {len(entries)} entries of the dictionary are unknown to this "
                f"SentencePiece model; give the one that the translation model was trained with"
            )


def _read_sentencepiece(model: str | Path) -> tuple[Any, list[str]]:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise InputError("--bpe sentencepiece needs sentencepiece, which is not installed; pip install it") from error
    try:
        processor = SentencePieceProcessor(model_file=str(model))
        return processor, [processor.IdToPiece(number) for number in range(processor.GetPieceSize())]
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{model}: cannot be read as a SentencePiece model; give the file that spm_train wrote"
        ) from error


class BpeSegmenter(Segmenter):
    """Byte-pair encoding by codes, of each word alone.

    Args:
        codes: file of subword-nmt's or fastBPE's codes.
        kind: whose codes (:func:`read_bpe`).
        separator: the mark of a subword that another follows.
        vocabulary: file of subwords with their counts; others are cut further, as by subword-nmt's ``--vocabulary``.
        threshold: the least count of a subword of the vocabulary.
        glossaries: a regular expression of words that are not cut, as for subword-nmt's ``--glossaries``.
    """

    def __init__(
        self,
        codes: str | Path,
        kind: str | None = None,
        separator: str = "@@",
        vocabulary: str | Path | None = None,
        threshold: int = 0,
        glossaries: str = "",
    ) -> None:
        known = None if vocabulary is None else _read_vocabulary(vocabulary, threshold)
        self._bpe = read_bpe(codes, kind, separator, known, [f"(?:{glossaries})"] if glossaries else None)
        self._mark = separator

    def cut(self, text: str, given: str) -> Segments:
        """The subwords of each word."""
        if len(self._bpe.cache) > _CACHED:
            self._bpe.cache = {}  # a new one: another thread may be reading the old one
        tokens, spans = list[str](), list[Span]()
        for start, end in word_spans(text):
            subwords = self._bpe.segment_tokens([text[start:end]])
            tokens += subwords
            for subword in subwords[:-1]:
                spans.append((start, start := start + len(subword) - len(self._mark)))
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


def check_codes(codes: Mapping[str, BpeSegmenter], dictionaries: Iterable[Any]) -> None:
    """Check that codes, by their files, make the entries of a model's dictionaries."""
    entries = {entry for dictionary in dictionaries for entry in dictionary.symbols[dictionary.nspecial :]}
    unmade = set.intersection(*(subwords.unmade(entries) for subwords in codes.values()))
    if len(unmade) > _UNMADE * len(entries):
        raise InputError(
            f"{', '.join(codes)}: no line of the codes makes {len(unmade)} of the {len(entries)} entries of the "
            f"dictionaries, such as {shown(min(unmade))}; give all the codes that the model's text was cut with"
        )


def read_bpe(
    path: str | Path,
    kind: str | None = None,
    separator: str = "@@",
    vocabulary: Collection[str] | None = None,
    glossaries: Sequence[str] | None = None,
) -> Any:
    """The segmenter of a codes file, with ``segment_tokens``, ``process_line``, and a ``cache`` of all words so far.

    fastBPE learns and applies the same merges as subword-nmt and adds their counts to its file; so subword-nmt applies
    both.  ``kind`` is ``subword_nmt`` or ``fastbpe``; None: detected from the file.
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
            bpe = BPE(io.StringIO(text), separator=separator, vocab=vocabulary, glossaries=glossaries)
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


def _read_vocabulary(path: str | Path, threshold: int) -> set[str]:
    """The subwords of a file whose count is at least ``threshold``."""
    try:
        rows = [line.split(" ") for line in Path(path).read_text(encoding="utf-8").rstrip("\n").split("\n")]
        return {word for word, count in rows if int(count) >= threshold}
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot read a vocabulary ({printable(str(error), 200)}); expected lines with a subword and its "
            f"count, as subword-nmt get-vocab writes"
        ) from error


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
    lines = [line.split() for line in text.split("\n")[:20] if line]
    return bool(lines) and all(len(line) == 2 and line[1].isdecimal() for line in lines)


def _without_counts(text: str, path: str | Path) -> Iterator[str]:
    lines = [line.rstrip("\r").split(" ") for line in text.rstrip("\n").split("\n")]
    for number, columns in enumerate(lines, 1):
        if len(columns) != len(lines[0]) or not all(count.isdecimal() for count in columns[2:]):
            said = shown(" ".join(columns))
            raise InputError(f"{path}:{number}: {said}: expected two subwords and a count, as fastBPE writes")
        yield f"{columns[0]} {columns[1]}\n"


def is_filler(entry: str) -> bool:
    """Whether an entry of a dictionary stands for no text: fairseq fills up with them, and tags name languages."""
    return entry.startswith(("madeupword", "__")) or (entry[:1] + entry[-1:]) in ("[]", "<>", "><")
