"""Manifests: what a directory must hold to count as a finished run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from alignment_eval.records.manifest import Manifest, Part, check_part, finished_run, read_manifests

MANIFEST = Manifest("alignments", {"model": "a", "generation": {"beam": 5}}, "beef", 4, 0, 2, finished=True)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two shards of a part each."""
    for shard in range(2):
        manifest = replace(MANIFEST, shard=shard)
        path = tmp_path / manifest.part_name(0)
        path.write_text(f"{shard}\t0-0\n{shard + 2}\t\n")
        replace(manifest, parts=(Part.of(path, 2),)).write(tmp_path)
    return tmp_path


def test_round_trip(run: Path) -> None:
    manifests = finished_run(run, "alignments")
    assert [manifest.shard for manifest in manifests] == [0, 1]
    assert manifests[0] == replace(MANIFEST, parts=manifests[0].parts)
    assert [part.name for part in manifests[1].parts] == ["part-00001-of-00002-00000.tsv"]
    for manifest in manifests:
        check_part(run, *manifest.parts)
    assert read_manifests(run / "none", "alignments") == []


def test_shards_missing_or_unfinished(run: Path) -> None:
    replace(MANIFEST, shard=1, finished=False).write(run)
    with pytest.raises(InputError, match=r"shards 1 of 2 are unfinished: .* run them again with --norm-records-resume"):
        finished_run(run, "alignments")
    (run / "_shard-00001-of-00002.json").unlink()
    with pytest.raises(InputError, match=r"shards 1 of 2 are missing: expected the output of each"):
        finished_run(run, "alignments")


def test_other_signature(run: Path) -> None:
    other = {"model": "b", "generation": {"beam": 4}}
    replace(MANIFEST, shard=1, signature=other, signature_hash="dead").write(run)
    with pytest.raises(
        InputError,
        match=r"00001-of-00002.json: of run dead, but .* of run beef \(their generation.beam, model differ\)",
    ):
        finished_run(run, "alignments")


def test_other_content(run: Path) -> None:
    with pytest.raises(InputError, match=r"holds alignments: expected records, the --norm-records directory of a run"):
        finished_run(run, "records")


def test_damaged(run: Path) -> None:
    (part,) = read_manifests(run, "alignments")[0].parts
    (run / part.name).write_text("0\t0-1\n2\t\n")
    with pytest.raises(InputError, match=rf"{part.name}: checksum \w+: expected {part.hash}, as the manifest says"):
        check_part(run, part)
    (run / part.name).unlink()
    with pytest.raises(InputError, match=rf"{part.name}: no such file, but _shard-00000-of-00002.json lists it"):
        finished_run(run, "alignments")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema_version": 2}', '{"schema_version": 2, "parts": [3]}', "\xff"]
)
def test_manifests_of_something_else(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST.name).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"00000-of-00002.json: cannot be read as the manifest of a shard"):
        read_manifests(tmp_path, "alignments")


def test_other_schema_version(tmp_path: Path) -> None:
    replace(MANIFEST, schema_version=7).write(tmp_path)
    with pytest.raises(InputError, match=r"schema version 7: expected 2; run it again with this version"):
        read_manifests(tmp_path, "alignments")


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match=r"f: is a file: expected a directory for --norm-alignments"):
        read_manifests(tmp_path / "f", "alignments")
