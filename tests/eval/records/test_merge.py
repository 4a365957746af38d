"""Merging the parts of alignments: against sorting everything, and what is refused; as a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.records import merge
from alignment_eval.records.manifest import Manifest, Part, finished_run, json_hash
from alignment_eval.records.merge import merged_lines, part_ids, part_lines

SIGNATURE = {"extraction": {"kind": "attn_n", "layer": 1, "rule": "kobayashi2020"}}


def write(directory: Path, shards: Sequence[Sequence[dict[int, str]]], size: int, skipped: int = 0) -> Path:
    """Shards of parts of links."""
    directory.mkdir(exist_ok=True)
    for shard, contents in enumerate(shards):
        manifest = Manifest("alignments", SIGNATURE, size, shard, len(shards), skipped=skipped, finished=True)
        parts = []
        for number, links in enumerate(contents):
            path = directory / manifest.part_name(number)
            path.write_text("".join(f"{line}\n" for line in part_lines(links)))
            parts.append(Part.of(path, len(links)))
        replace(manifest, parts=tuple(parts)).write(directory)
    return directory


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
        ([[{0: "", 1: ""}], [{1: "", 2: ""}]], r"sentence 1 is there twice: expected each id once"),
        ([[{0: "", 1: ""}], [{3: ""}]], r"sentence 2 of 4 is missing: expected each id once; run the shards again"),
        ([[{0: "", 1: ""}, {2: ""}], []], r"sentence 3 of 4 is missing"),
        ([[{1: "", 2: ""}], [{3: ""}]], r"sentence 0 of 4 is missing"),
        ([[{0: "", 1: "", 2: ""}], [{3: "", 4: ""}]], r"sentence 4 is unknown: expected ids from 0 to 3"),
        ([[{0: "", 2: "", 1: ""}], [{3: "", 7: ""}]], r"sentence 7 is unknown"),
    ],
)
def test_ids_are_complete(tmp_path: Path, shards: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        merged(write(tmp_path, shards, 4))


@pytest.mark.parametrize("content", ["1\t\n0\t\n", "0\t\n0\t\n", "0 0-0\n", "-1\t\n", "x\t\n", "\n", "0\tä\n"])
def test_parts_of_something_else(tmp_path: Path, content: str) -> None:
    path = tmp_path / "part"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"part: a line b.*: expected an id larger than -?\d, a tab and links; the part"
    ):
        part_ids(path)
    with pytest.raises(InputError, match=r"none: cannot be read \(No such file"):
        part_ids(tmp_path / "none")


def test_command(tmp_path: Path, align_eval: Callable[..., Any]) -> None:
    directory = write(tmp_path / "run", [[{0: "0-0 1-1", 3: "2-0"}, {2: ""}], [{1: "0-1"}]], 4, skipped=1)
    out = tmp_path / "out.pharaoh"
    done = align_eval("merge", directory, "-o", out)
    assert (done.returncode, done.stdout) == (0, "")
    assert out.read_text() == "0-0 1-1\n0-1\n\n2-0\n"
    warning, signed = done.stderr.splitlines()
    assert warning == "warning: 2 of 4 sentences cannot be aligned, their lines are blank"
    assert signed.startswith(
        f"run:{json_hash(SIGNATURE)}|sentences:4|kind:attn_n|layer:1|rule:kobayashi2020|version:align-eval-"
    )
    done = align_eval("merge", directory, "-o", out)
    assert done.returncode == 1
    assert "out.pharaoh: already exists; choose another path or pass --overwrite" in done.stderr
    assert align_eval("merge", directory, "-o", out, "--overwrite").returncode == 0
    assert align_eval("merge", directory, "-o", "-").returncode == 2


def test_command_leaves_nothing_of_what_it_refuses(tmp_path: Path, align_eval: Callable[..., Any]) -> None:
    directory = write(tmp_path / "run", [[{0: "0-0", 1: ""}], [{2: "", 1: ""}]], 4)
    done = align_eval("merge", directory, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.startswith("align-eval merge: ")
    assert done.stderr.endswith(
        "sentence 1 is there twice: expected each id once; run the shards again with --norm-records-overwrite "
        "(align: --overwrite)\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
