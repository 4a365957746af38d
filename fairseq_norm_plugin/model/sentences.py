"""Check the sentences of a caller: one pair, or the pairs of two lists; text, or token ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from contextlib import suppress
from itertools import zip_longest
from numbers import Integral
from typing import Any, NamedTuple

import torch

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.defaults import DEFAULTS

#: Text, or token ids.
Sentence = str | Sequence[int]
#: One sentence, or several.
Sentences = Sentence | Iterable[Sentence]

_EXPECTED = "expected text or token ids"
#: Fills the end of the shorter list.
_END = object()
#: Tokens that go through a model together; of a list of maps, those that are held together.
MAX_TOKENS = DEFAULTS.max_tokens


def check_whole(option: str, value: object) -> None:
    """Check that an option is a whole number of 1 or more; raises UsageError if it is not."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{option} {value}: expected a whole number, 1 or more")


class GivenPair(NamedTuple):
    """A sentence pair as it was given; if there is no target, the model translates.

    ``names`` are the names of source and target in messages: ``source``, or in a list ``source[3]``.
    """

    source: Sentence
    target: Sentence | None
    names: tuple[str, str] = ("source", "target")


def given_lines(lines: Iterable[str], name: str) -> list[str]:
    """The lines of a list."""
    if isinstance(lines, (str, bytes)) or not isinstance(lines, Iterable):
        raise InputError(f"{name}: {lines!r:.40} ({type(lines).__name__}): expected a list of lines")
    given = list(lines)
    for number, line in enumerate(given):
        if not isinstance(line, str):
            raise InputError(f"{name}[{number}]: {line!r:.40}: expected text")
        _check_unicode(line, f"{name}[{number}]")
    return given


def _check_unicode(line: str, name: str) -> None:
    """Check that a line can be written; raises InputError if it has half a character of UTF-16."""
    try:
        line.encode()
    except UnicodeEncodeError as error:
        half = line[error.start]
        raise InputError(
            f"{name}: character {error.start} is a surrogate, {half!r}: expected Unicode text; read the text as UTF-8"
        ) from error


def empty_sentence(name: str) -> InputError:
    """The error of an empty sentence."""
    return InputError(f"{name}: an empty sentence: expected at least one token")


def is_one_pair(source: Sentences, target: Sentences | None) -> bool:
    """Whether one sentence pair is given, rather than two lists."""
    is_one = _is_sentence(source, "source")
    if target is not None and is_one != _is_sentence(target, "target", empty=is_one):
        what = ("one sentence", "several") if is_one else ("several", "one sentence")
        raise InputError(f"source is {what[0]}, target {what[1]}: expected two sentences, or two lists of them")
    return is_one


def given_pairs(
    source: Iterable[Sentence], target: Iterable[Sentence] | None, blanks: bool = False
) -> Iterator[GivenPair]:
    """Yield the pairs of two lists, in order.

    Lists are checked completely before the first pair is yielded.  Iterables without a length, such as generators, are
    read and checked pair by pair.

    Args:
        source: the source sentences.
        target: the target sentences; None: the model translates.
        blanks: whether sentences may be empty.
    """
    pairs = _paired(source, target, blanks)
    return iter(list(pairs)) if all(side is None or isinstance(side, Sized) for side in (source, target)) else pairs


def _paired(source: Iterable[Sentence], target: Iterable[Sentence] | None, blanks: bool) -> Iterator[GivenPair]:
    pair: GivenPair | None = None
    both: Iterable[tuple[Any, Any]] = ((sentence, None) for sentence in source)
    if target is not None:
        both = zip_longest(source, target, fillvalue=_END)
    for number, (given, translation) in enumerate(both):
        if given is _END or translation is _END:
            raise InputError(
                f"{'source' if given is _END else 'target'} ends after {number} sentences: expected as many as on the "
                f"other side, with the sentences of a pair at the same place"
            )
        pair = GivenPair(given, translation, (f"source[{number}]", f"target[{number}]"))
        for sentence, name in zip(pair[: 1 if target is None else 2], pair.names):
            if not _is_sentence(sentence, name, empty=True):
                raise InputError(f"{name}: is a list of sentences: {_EXPECTED}")
            if isinstance(sentence, str) and not blanks and not sentence.strip():
                raise empty_sentence(name)
        yield pair
    if pair is None:
        raise InputError("source: an empty list: expected at least one sentence")


def _is_sentence(given: object, name: str, empty: bool = False) -> bool:
    """Whether ``given`` is one sentence rather than several; ``empty`` decides for an empty list."""
    if isinstance(given, str):
        _check_unicode(given, name)
        return True
    with suppress(TypeError):  # arrays without an axis have neither length nor elements
        if isinstance(given, Iterable) and not isinstance(given, (bytes, Mapping, Set)):
            if not isinstance(given, Sized):
                return False
            first = next(iter(given), None)
            is_number = isinstance(first, Integral) or (torch.is_tensor(first) and first.dim() == 0)
            return is_number if len(given) else empty
    raise InputError(f"{name}: {given!r:.40} ({type(given).__name__}): {_EXPECTED}, or a list of them")
