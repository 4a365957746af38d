"""Text in subwords, given or cut by BPE codes, SentencePiece or an encoder of fairseq, with the place of each."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, printable, shown
from alignment_eval.maps.sentence import Span, bare_piece, word_indices, word_strings
from fairseq_norm_plugin.text.offsets import word_spans

#: fairseq's names for the programs whose codes can be read.
CODES = ("subword_nmt", "fastbpe")
#: How subword-nmt applies codes: the end of a word is part of its last character; before, a subword of its own.
_PRESENT, _BEFORE = (0, 2), (0, 1)
#: The end of a word in codes.
_END = "</w>"
#: The counts that fastBPE adds to the lines of codes.
_COUNTS = re.compile(r"(?m)^([^ \n]+ [^ \n]+) [0-9]+\r?$")
#: Words whose subwords are cached.
_CACHED = 100_000
#: A larger share of a dictionary that codes do not make shows other codes; the model's own leave out next to nothing.
_UNMADE = 0.1


#: The subwords of a text, and the characters of it that each subword is of.
Segments = tuple[list[str], list[Span]]


class Segmenter:
    """Cuts text into subwords; subclasses say how.

    Attributes:
        reads_raw: whether the text is given in words.
    """

    reads_raw = True

    def cut(self, text: str, given: str) -> Segments:
        """Cut the ``text`` that the model reads; ``given`` is the line that the user gave."""
        raise NotImplementedError

    def text_of(self, given: str) -> str:
        """The text of a line that was given."""
        return given

    def joined(self, tokens: Sequence[str]) -> str:
        """The text that subwords spell, as fairseq's decoder of these subwords joins them."""
        raise NotImplementedError


@dataclass(frozen=True)
class MarkedSubwords(Segmenter):
    """Text that is in subwords already: their ``mark``, one of alignment_eval.maps.sentence.MARKS, shows the words."""

    mark: str
    reads_raw = False

    def cut(self, text: str, given: str) -> Segments:
        """The subwords as they are given."""
        tokens, numbers, words = self._read(given)
        bare = str if self.mark == "none" else bare_piece
        spans: list[Span] = []
        end, word = -1, -1
        for token, number in zip(tokens, numbers.tolist()):
            if number > word:
                word, start = number, end + 1
                end = start + len(words[word])
            spans.append((start, start := start + len(bare(token))))
        return tokens, spans

    def text_of(self, given: str) -> str:
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
                    f"--bpe {self._name} cuts {word!r} differently before the next word, so its subwords are of "
                    f"no single word; give text in subwords and --bpe none"
                )
            spans += [place] * (len(part) - len(spans))
        return subwords, spans

    def joined(self, tokens: Sequence[str]) -> str:
        """The text that the encoder's other half gives."""
        return self._decode(" ".join(tokens))


class WholeLineSegmenter(Segmenter):
    """Cuts the text itself, and knows where its subwords are in it; ``entries``: all, by id; ``name``: of its file."""

    name: str
    entries: list[str]

    def check(self, dictionary: Any) -> None:
        """Check that a dictionary was made with this model, and perhaps with another of the other language."""
        entries = [entry for entry in dictionary.symbols[dictionary.nspecial :] if not is_filler(entry)]
        known = len({*entries} & {*self.entries})
        if 2 * known < min(len(entries), len(self.entries)):
            raise InputError(
                f"{self.name}: {len(entries) - known} of {len(entries)} entries of the dictionary are unknown to these "
                f"subwords; give those of the translation model's training"
            )


class SentencePieceSegmenter(WholeLineSegmenter):
    """SentencePiece."""

    def __init__(self, model: str | Path) -> None:
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError as error:
            raise InputError("--bpe sentencepiece needs sentencepiece: pip install sentencepiece") from error
        try:
            self._processor = SentencePieceProcessor(model_file=str(model))
            self.entries = [self._processor.IdToPiece(number) for number in range(self._processor.GetPieceSize())]
        except (OSError, RuntimeError, UnicodeDecodeError) as error:
            raise InputError(f"{model}: cannot be read as a SentencePiece model, which spm_train writes") from error
        self.name = str(model)

    def cut(self, text: str, given: str) -> Segments:
        """Cut the text."""
        cut = self._processor.EncodeAsOffsetMapping(text)  # in characters
        return cut["pieces"], cut["offsets"]

    def joined(self, tokens: Sequence[str]) -> str:
        """The text, with spaces where subwords have their mark."""
        return "".join(tokens).replace("▁", " ").strip()


class TokenizersSegmenter(WholeLineSegmenter):
    """The ``tokenizer.json`` of a model of Transformers, read by the library ``tokenizers``.

    Special tokens are no subwords of a text: one that spells ``</s>`` does not end the sentence.
    """

    def __init__(self, file: str | Path) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise InputError("--bpe tokenizers needs tokenizers: pip install tokenizers") from error
        self.name = str(file)
        try:
            content = json.loads(Path(file).read_text(encoding="utf-8"))
            ids = Tokenizer.from_str(json.dumps(content)).get_vocab()
            added = content.get("added_tokens") or []
            special = {token["content"] for token in added if token.get("special")}
            added = [token for token in added if token["content"] not in special]
            content.update(added_tokens=added, post_processor=None, truncation=None, padding=None)
            if isinstance(vocabulary := content["model"]["vocab"], list):  # Unigram, which would find them in the text
                hidden = ((f"\0{piece}\0" if piece in special else piece, score) for piece, score in vocabulary)
                content["model"]["vocab"] = list(hidden)
            self._tokenizer: Any = Tokenizer.from_str(json.dumps(content))
            self._unknown = content["model"].get("unk_token")
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # of Rust, which may be no Exception
            raise InputError(
                f"{file}: cannot be read as a tokenizer of Transformers ({printable(str(error), 120)}); save it again"
            ) from error
        #: The id of each token, special ones too.
        self.ids: dict[str, int] = ids
        self.entries = sorted(ids, key=lambda token: ids[token])

    def cut(self, text: str, given: str) -> Segments:
        """Cut the text."""
        cut = self._tokenizer.encode(text, add_special_tokens=False)
        tokens = zip(cut.tokens, (text[start:end].replace(" ", "▁") for start, end in cut.offsets))
        return [own if token == self._unknown else token for token, own in tokens], cut.offsets

    def joined(self, tokens: Sequence[str]) -> str:
        """The text, as the file says."""
        decoder = self._tokenizer.decoder
        return " ".join(tokens) if decoder is None else str(decoder.decode(list(tokens))).strip()


class BpeSegmenter(Segmenter):
    """Byte-pair encoding by codes, of each word alone.

    ``separator`` marks a subword that another follows.  The others are options of subword-nmt: subwords that the
    ``vocabulary`` lacks are cut further; words that ``glossaries`` match are not cut.
    """

    def __init__(
        self, codes: str | Path, separator: str = "@@", vocabulary: frozenset[str] | None = None, glossaries: str = ""
    ) -> None:
        self._bpe = read_bpe(codes, separator, vocabulary, (f"(?:{glossaries})",) if glossaries else None)
        self._mark = separator
        self._cut_word = lru_cache(_CACHED)(lambda word: self._bpe.segment_tokens([word]))

    def cut(self, text: str, given: str) -> Segments:
        """The subwords of each word."""
        if len(self._bpe.cache) > _CACHED:
            self._bpe.cache = {}  # a new one: another thread may be reading the old one
        tokens, spans = list[str](), list[Span]()
        for start, end in word_spans(text):
            subwords = self._cut_word(text[start:end])
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
    separator: str = "@@",
    vocabulary: frozenset[str] | None = None,
    glossaries: tuple[str, ...] | None = None,
) -> Any:
    """The segmenter of a codes file, with ``segment_tokens``, ``process_line``, and a ``cache`` of all words so far.

    fastBPE learns and applies the same merges as subword-nmt and adds their counts to its file, and Transformers leaves
    out counts and version; so subword-nmt applies all of them.
    """
    try:
        from subword_nmt.apply_bpe import BPE
    except ImportError as error:
        raise InputError("BPE codes need subword-nmt: pip install subword-nmt, or give text in subwords") from error
    said = io.StringIO()
    try:
        text = Path(path).read_text(encoding="utf-8")
        has_version = text.startswith("#version")
        uncounted = text if has_version else _COUNTS.sub(r"\1", text)
        with redirect_stderr(said):
            bpe = BPE(io.StringIO(uncounted), separator=separator, vocab=vocabulary, glossaries=glossaries)
    except SystemExit as error:  # subword-nmt exits at a line of another form
        wrong = said.getvalue().partition("\n")[0].removeprefix("Error: ")
        raise InputError(f"{path}: {printable(wrong, 200)}; expected two subwords, as subword-nmt writes") from error
    except (OSError, ValueError, IndexError) as error:
        raise InputError(
            f"{path}: cannot read BPE codes ({printable(str(error), 200)}); give a file of subword-nmt or fastBPE"
        ) from error
    ends = {part for pair in bpe.bpe_codes for part in pair if part.endswith(_END)}
    if not has_version and (uncounted != text or (ends and _END not in ends)):
        bpe.version = _PRESENT
    if bpe.version not in (_BEFORE, _PRESENT):
        raise InputError(
            f"{path}:1: version {shown('.'.join(map(str, bpe.version)))}: expected 0.1 or 0.2, as of subword-nmt"
        )
    _check_order(bpe, path, has_version)
    return bpe


def read_vocabulary(path: str | Path, threshold: int) -> frozenset[str]:
    """The subwords of a file whose count is at least ``threshold``."""
    try:
        rows = [line.split(" ") for line in Path(path).read_text(encoding="utf-8").rstrip("\n").split("\n")]
        return frozenset(word for word, count in rows if int(count) >= threshold)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot read a vocabulary ({printable(str(error), 200)}); expected that of subword-nmt get-vocab"
        ) from error


def _check_order(bpe: Any, path: str | Path, has_version: bool) -> None:
    """Check that each line joins characters and subwords of earlier lines, as learning makes them."""
    made: set[str] = set()
    for pair, rank in sorted(bpe.bpe_codes.items(), key=itemgetter(1)):
        for part in pair:
            bare = part.removesuffix(_END)
            if part in made or len(part) == 1 or (part == _END if bpe.version == _BEFORE else len(bare) == 1):
                continue
            lost = ", after a first line #version: 0.2" if len(bare) == 1 and bpe.version == _BEFORE else ""
            raise InputError(
                f"{path}:{rank + 1 + has_version}: {shown(' '.join(pair))}: no earlier line makes {shown(part)}; "
                f"expected BPE codes as they were learned, with all lines in their order{lost}"
            )
        made.add("".join(pair))


def is_filler(entry: str) -> bool:
    """Whether an entry of a dictionary stands for no text: fairseq fills up with them, and tags name languages."""
    return entry.startswith(("madeupword", "__")) or (entry[:1] + entry[-1:]) in ("[]", "<>", "><")
