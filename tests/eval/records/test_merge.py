"""Merging the parts of alignments: against sorting everything, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.records import merge
from alignment_eval.records.manifest import finished_run
from alignment_eval.records.merge import merged_lines, part_ids
from tests.eval.records.shards import write
from tests.facts import facts


def merged(directory: Path) -> list[str]:
    return list(merged_lines(directory, finished_run(directory, "alignments")))


@given(places=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=30), block=st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_any_distribution_gives_the_lines_in_order(
    tmp_path_factory: pytest.TempPathFactory, places: list[tuple[int, int]], block: int
) -> None:
    lines = [" ".join(f"{i}-{j}" for j in range(i % 4)) for i in range(len(places))]
    shards: list[list[dict[int, str]]] = [[{} for _ in range(4)] for _ in range(3)]
    for id_, (shard, part) in enumerate(places):
        shards[shard][part][id_] = lines[id_]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "_BLOCK_BYTES", block)
        assert merged(write(tmp_path_factory.mktemp("run"), shards, len(lines))) == lines


@pytest.mark.parametrize(
    ("shards", "text"),
    [
        ([[{0: "", 1: ""}], [{1: "", 2: ""}]], "duplicate sentence 1"),
        ([[{0: "", 1: ""}], [{3: ""}]], "sentence 2 … missing … run the shards again"),
        ([[{0: "", 1: ""}, {2: ""}], []], "sentence 3 … missing"),
        ([[{1: "", 2: ""}], [{3: ""}]], "sentence 0 … missing"),
        ([[{0: "", 1: "", 2: ""}], [{3: "", 4: ""}]], "sentence 4 is … 0 to 3"),
        ([[{0: "", 2: "", 1: ""}], [{3: "", 7: ""}]], "sentence 7 is not"),
    ],
)
def test_ids_are_complete(tmp_path: Path, shards: Any, text: str) -> None:
    with pytest.raises(InputError, match=facts(text)):
        merged(write(tmp_path, shards, 4))


@pytest.mark.parametrize("content", ["1\t\n0\t\n", "0\t\n0\t\n", "0 0-0\n", "-1\t\n", "x\t\n", "\n", "0\tä\n"])
def test_parts_of_something_else(tmp_path: Path, content: str) -> None:
    path = tmp_path / "part"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=facts("part: … line b … an id above … a tab and links")):
        part_ids(path)
    with pytest.raises(InputError, match=facts("none: … (No such file")):
        part_ids(tmp_path / "none")
