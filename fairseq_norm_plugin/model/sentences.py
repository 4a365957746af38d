"""Check the sentences of a caller: one pair, or the pairs of two lists; text, or token ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from contextlib import suppress
from itertools import zip_longest
from numbers import Integral
from typing import Any, NamedTuple, Optional, Union

import torch

from alignment_eval.errors import InputError
from fairseq_norm_plugin.text.tokenise import words_of_text

#: Text, or token ids.
Sentence = Union[str, Sequence[int]]
#: One sentence, or several.
Sentences = Union[Sentence, Iterable[Sentence]]

_EXPECTED = "expected text or token ids"
#: Fills the end of the shorter list.
_END = object()


class GivenPair(NamedTuple):
    """A sentence pair as it was given; if there is no target, the model translates.

    ``names`` are the names of source and target in messages: ``source``, or in a list ``source[3]``.
    """

    source: Sentence
    target: Optional[Sentence]
    names: tuple[str, str] = ("source", "target")


def empty_sentence(name: str) -> InputError:
    """The error of an empty sentence."""
    return InputError(f"{name}: an empty sentence: expected at least one token")


def is_one_pair(source: Sentences, target: Optional[Sentences]) -> bool:
    """Whether one sentence pair is given, rather than two lists.

    Raises:
        InputError: one side is a sentence and the other a list, or a side is neither.
    """
    one = _is_sentence(source, "source")
    if target is not None and one != _is_sentence(target, "target", empty=one):
        found = ("one sentence", "several") if one else ("several", "one sentence")
        raise InputError(f"source is {found[0]}, target {found[1]}: expected two sentences, or two lists of them")
    return one


def given_pairs(
    source: Iterable[Sentence], target: Optional[Iterable[Sentence]], blanks: bool = False
) -> Iterator[GivenPair]:
    """Yield the pairs of two lists, in order.

    Lists are checked completely before the first pair is yielded.  Iterables without a length, such as generators, are
    read and checked pair by pair.

    Args:
        source: the source sentences.
        target: the target sentences; None: the model translates.
        blanks: whether sentences may be empty.

    Raises:
        InputError: the lists are empty or differ in length, or an element is not a sentence.
    """
    sides = [side for side in (source, target) if side is not None]
    lengths = [len(side) for side in sides if isinstance(side, Sized)]
    if len(lengths) == len(sides):
        if len(set(lengths)) > 1:
            raise _unequal(f"source has {lengths[0]} sentences and target {lengths[1]}")
        return iter(list(_paired(source, target, blanks)))
    return _paired(source, target, blanks)


def _paired(source: Iterable[Sentence], target: Optional[Iterable[Sentence]], blanks: bool) -> Iterator[GivenPair]:
    pair: Optional[GivenPair] = None
    both: Iterable[tuple[Any, Any]] = ((one, None) for one in source)
    if target is not None:
        both = zip_longest(source, target, fillvalue=_END)
    for number, (one, other) in enumerate(both):
        if one is _END or other is _END:
            raise _unequal(f"{'source' if one is _END else 'target'} ends after {number} sentences")
        pair = GivenPair(one, other, (f"source[{number}]", f"target[{number}]"))
        for sentence, name in zip(pair[: 1 if target is None else 2], pair.names):
            _check_sentence(sentence, name, blanks)
        yield pair
    if pair is None:
        raise InputError("source: an empty list: expected at least one sentence")


def _check_sentence(given: object, name: str, blanks: bool) -> None:
    if not _is_sentence(given, name, empty=True):
        raise InputError(f"{name}: is a list of sentences: {_EXPECTED}")
    if isinstance(given, str) and not blanks and not words_of_text(given):
        raise empty_sentence(name)


def _unequal(found: str) -> InputError:
    return InputError(f"{found}: expected the same number, with the sentences of a pair at the same place")


def _is_sentence(given: object, name: str, empty: bool = False) -> bool:
    """Whether ``given`` is one sentence rather than several; ``empty`` decides for an empty list.

    Raises:
        InputError: it is neither.
    """
    if isinstance(given, str):
        return True
    with suppress(TypeError):  # arrays without an axis have neither length nor elements
        if isinstance(given, Iterable) and not isinstance(given, (bytes, Mapping, Set)):
            if not isinstance(given, Sized):
                return False
            return _is_number(next(iter(given))) if len(given) else empty
    raise InputError(f"{name}: {given!r:.40} ({type(given).__name__}): {_EXPECTED}, or a list of them")


def _is_number(value: object) -> bool:
    return isinstance(value, Integral) or (torch.is_tensor(value) and value.dim() == 0)
