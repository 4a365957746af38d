"""A file that may hold anything; JSON is read against a type, and whatever is wrong with it becomes one sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec

from alignment_eval.errors import InputError, printable, shown

#: A number of things, or one of them counted from 0.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
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
            value = msgspec.json.decode(content)
        except NOT_JSON as error:
            raise self.error(str(error)) from error
        for key, known in version.items():
            if isinstance(value, dict) and type(value.get(key)) is int and value[key] != known:
                raise self.error(f"{key} is {shown(value[key])}: expected version {known}")
        return self.convert(value, type_)

    def convert(self, value: Any, type_: type[T], path: str = "") -> T:
        """The value of type ``type_`` that decoded JSON holds; ``path`` is its place in the content.

        Raises:
            InputError: it has another form.
        """
        try:
            return msgspec.convert(value, type_, dec_hook=lambda custom, text: custom(text))
        except msgspec.ValidationError as error:
            raise self.error(_problem(str(error), value, path)) from error


def _problem(error: str, value: Any, path: str) -> str:
    """The problem that msgspec reports, with the value at the place that it names."""
    problem, _, where = error.partition(" - at `$")
    for key, position in re.findall(r"\.(\w+)|\[(\d+)\]", where.partition("[...]")[0]):
        value = value[key] if key else value[int(position)]
    where = f"{path}{where.rstrip('`')}".lstrip(".") or "the content"
    expected = problem.split(", got `")[0].replace("`", "")
    if expected.startswith("Invalid enum"):  # it repeats the value
        return f"{where} is {shown(value)}, which is unknown"
    shown_value = f" is {shown(value)}" if expected.startswith("Expected") else ""
    return f"{where}{shown_value}: {printable(expected[:1].lower() + expected[1:], 200)}"
