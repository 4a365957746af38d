from __future__ import annotations

import argparse

import pytest

from alignment_eval.options.common import add_format, add_output


def parsed(*words: str, **options: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_output(parser, "links", **options)
    add_format(parser, ("text", "json"))
    return parser.parse_args(words)


def test_defaults() -> None:
    assert vars(parsed()) == {"output": None, "overwrite": False, "format": "text"}
    assert parsed(standard=True).output == "-"


@pytest.mark.parametrize("name", ["-o", "--output", "--out"])
def test_an_older_name_is_the_same_option(name: str) -> None:
    found = parsed(name, "x", "--overwrite", "--format", "json", also=("--out",))
    assert vars(found) == {"output": "x", "overwrite": True, "format": "json"}


def test_what_must_be_given() -> None:
    with pytest.raises(SystemExit):
        parsed(required=True)
    with pytest.raises(SystemExit):
        parsed("--format", "html")
