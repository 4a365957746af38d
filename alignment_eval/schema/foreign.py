"""A file that may hold anything; JSON is read against a type, and whatever is wrong with it becomes one sentence."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec

from alignment_eval.errors import InputError, printable, shown

#: A number of things, or one of them counted from 0.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
#: How deep lists and objects may be nested: deeper than in our files, not too deep for code that walks them.
_DEEPEST = 50
#: Malformed, not UTF-8, a lone surrogate, NaN, a number out of range, or nested too deeply.
NOT_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
T = TypeVar("T")


@dataclass(frozen=True)
class ForeignFile:
    """A file that anyone may have written.

    Attributes:
        name: the file, for messages.
        what: what it should be, such as ``a profile``.
        advice: what to do if it is something else.
    """

    name: str
    what: str
    advice: str

    def error(self, problem: str) -> InputError:
        """The error for this problem."""
        return InputError(f"{self.name}: damaged, or not {self.what} ({problem}); {self.advice}")

    def decode(self, content: bytes | str, type_: type[T], **version: int) -> T:
        """The value of type ``type_`` that the JSON ``content`` holds.

        Args:
            content: the JSON.
            type_: a type that msgspec knows; a Struct says which keys are needed and which are known.
            version: the key that holds the version of the format, and the version that this program reads.

        Raises:
            InputError: it is not JSON, is of another version, or has another form.
        """
        try:
            found = msgspec.json.decode(content)
        except NOT_JSON as error:
            raise self.error(str(error)) from error
        if _deeper(found, _DEEPEST):
            raise self.error(f"nested more than {_DEEPEST} deep")
        for key, known in version.items():
            if isinstance(found, dict) and type(found.get(key)) is int and found[key] != known:
                raise self.error(f"{key} is {shown(found[key])}: expected version {known}")
        return self.convert(found, type_)

    def convert(self, found: Any, type_: type[T], path: str = "") -> T:
        """The value of type ``type_`` that decoded JSON holds; ``path`` is its place in the content.

        Raises:
            InputError: it has another form.
        """
        try:
            return msgspec.convert(found, type_, dec_hook=lambda custom, value: custom(value))
        except msgspec.ValidationError as error:
            raise self.error(_problem(str(error), found, path)) from error


def _deeper(found: Any, deepest: int) -> bool:
    """Whether lists and objects are nested deeper than that."""
    level = [found]
    for _ in range(deepest + 1):
        inner = [v.values() if isinstance(v, dict) else v for v in level if isinstance(v, (dict, list))]
        level = list(itertools.chain.from_iterable(inner))
    return any(isinstance(v, (dict, list)) for v in level)


def _problem(error: str, found: Any, path: str) -> str:
    """What msgspec says of ``found``, with the value at the place that it names."""
    said, _, where = error.partition(" - at `$")
    for key, position in re.findall(r"\.(\w+)|\[(\d+)\]", where.partition("[...]")[0]):
        found = found[key] if key else found[int(position)]
    where = f"{path}{where.rstrip('`')}".lstrip(".") or "the content"
    expected = said.split(", got `")[0].replace("`", "")
    if expected.startswith("Invalid enum"):  # it repeats the value
        return f"{where} is {shown(found)}, which is unknown"
    value = f" is {shown(found)}" if expected.startswith("Expected") else ""
    return f"{where}{value}: {printable(expected[:1].lower() + expected[1:], 200)}"
