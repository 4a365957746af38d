"""The parsers of alignment files: any text, and slow obvious parsers beside the fast ones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.formats import parsing
from alignment_eval.formats.naacl import parse_naacl
from alignment_eval.formats.parsing import RawLinks, parse_fairseq, parse_pairs, parse_scored
from alignment_eval.formats.reading import read_gold, read_hypothesis
from alignment_eval.links.table import LinkTable

SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(folder: Path, text: str | bytes, name: str = "x.talp") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# Fuzzing: a parser takes a text or raises InputError.  The alphabet makes near misses likely.

TEXTS = st.one_of(
    st.text(alphabet="019-p \n\t", max_size=40),
    st.text(alphabet="01-p SPA\n\r\t.e:,", max_size=40),
    st.lists(st.sampled_from(["1 1 1", "1-1", "0p2", "A-0\t0-0", "A-1", "S-0\tx", "", " ", "-"])).map("\n".join),
    st.text(alphabet="01-:.e+ \n", max_size=40),
    st.lists(st.sampled_from(["0-1:0.5", "1-0:1e-7", "2-2:-3", "1-1", "1:1", "\n", "1.2.3", "0-0:"])).map(" ".join),
    st.text(max_size=20),
)
PARSERS: dict[str, Callable[..., parsing.RawLinks]] = {
    "pairs": parse_pairs,
    "scored": parse_scored,
    "naacl": parse_naacl,
    "fairseq": parse_fairseq,
}


@pytest.mark.parametrize("parser", PARSERS)
@given(text=TEXTS, possible=st.booleans())
def test_any_text_is_parsed_or_refused(parser: str, text: str, possible: bool) -> None:
    with suppress(InputError):
        result = PARSERS[parser]([f"{text}\n".encode("utf-8", "replace")], "x", possible)
        assert len(result.keys) == len(result.possible)
        assert result.confidence is None or len(result.confidence) == len(result.keys)


@given(text=TEXTS)
@SAME_FOLDER
def test_any_file_is_read_or_refused(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text.encode("utf-8", "surrogatepass"))
    for read in (read_gold, read_hypothesis):
        with suppress(InputError):
            read(path, warn=lambda message: None)


def slow_pairs(lines: Sequence[str]) -> list[tuple[int, int, int, bool]] | None:
    """Token by token; None if one is no link."""
    links = []
    for n, line in enumerate(lines):
        for token in re.split(r"[ \t]+", line):
            match = re.fullmatch(r"([0-9]+)([-p])([0-9]+)", token)
            if token and (not match or max(int(match[1]), int(match[3])) > 999999):
                return None
            if match:
                links.append((n, int(match[1]), int(match[3]), match[2] == "p"))
    return links


def slow_scored(lines: Sequence[str]) -> list[tuple[int, int, int, bool, float]] | None:
    """Token by token; None if one is no link with a score."""
    links = []
    for n, line in enumerate(lines):
        for token in filter(None, re.split(r"[ \t]+", line)):
            pair, colon, score = token.partition(":")
            link = slow_pairs([pair])
            if not link or not colon or not re.fullmatch(r"[-+.eE0-9]+", score):
                return None
            try:
                value = float(score)
            except ValueError:
                return None
            if not math.isfinite(value):
                return None
            links.append((n, *link[0][1:], value))
    return links


@pytest.mark.parametrize(("parse", "slow"), [(parse_pairs, slow_pairs), (parse_scored, slow_scored)])
@given(text=TEXTS)
def test_vectorised_parsers_equal_the_slow_ones(
    parse: Callable[..., RawLinks], slow: Callable[..., Any], text: str
) -> None:
    content = f"{text}\n".encode("utf-8", "replace").replace(b"\r\n", b"\n")
    expected = slow(content.decode().split("\n")[:-1])
    try:
        raw = parse([content], "x", True)
    except InputError:
        assert expected is None
    else:
        links = LinkTable(raw.keys, raw.sentences)  # not a sorted one, but it takes numbers apart
        columns = [links.sentence, links.source, links.target, raw.possible]
        if slow is slow_scored:
            columns.append(np.empty(0) if raw.confidence is None else raw.confidence)
        assert sorted(zip(*(column.tolist() for column in columns))) == sorted(expected)
        assert raw.sentences == content.count(b"\n")
